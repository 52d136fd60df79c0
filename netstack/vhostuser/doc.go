// Package vhostuser has the back end of the vhost-user protocol: a hypervisor, the front
// end, hands over the memory and the rings of one device of a guest through a unix socket,
// and the gateway serves that device itself. The protocol is QEMU's
// docs/interop/vhost-user.rst, "the protocol" below, devices and rings are those of Virtual I/O
// Device version 1.2, "virtio 1.2".
//
//	front end                 front                          Device, as NIC
//	messages ---- socket ---> memory, rings, eventfds
//	                          all rings are started  ------> Start(rings)
//	guest                     Ring
//	kick ------- eventfd ---> Wait                   ------> Do: takes from its queue, gives to it
//	interrupt <- eventfd ----                        <------ what Do has finished
//	                          a ring is stopped      ------> Stop()
//
// A Backend serves one front end after the other. One that breaks a rule of the protocol
// loses its connection; a guest that breaks one of its rings has the rings stopped, until
// its front end starts them anew, as when it reboots. Either way the cause is in Status,
// and nothing else is harmed: addresses, lengths, indexes and file descriptors are checked
// before use, and access to memory that the front end took away is an error.
//
// Whoever of the two comes back finds the other: after a front end has gone the next is
// waited for, and a back end that comes back goes on where the guest's used ring ends.
//
// Limits: one queue for each direction of a device, split rings only, no in-band
// notifications, no IOMMU, no migration. Guest memory is of tmpfs (memfd_create(2) or
// /dev/shm) or hugetlbfs; Linux from 5.8 on, on little-endian processors. A NIC of which
// MAC or MTU are configured offers CONFIG, by which crosvm asks for them; QEMU, which
// knows a NIC's itself, warns of the offer at each start, and is served all the same.
package vhostuser
