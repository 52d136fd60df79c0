// Package virtio is the device's side of split virtqueues over the memory of a guest that
// nobody trusts (Virtual I/O Device version 1.2, "virtio 1.2" below; section 2.7). Whoever
// has a device, a NIC or a socket device, maps the guest's memory, makes a Memory of the
// mappings and a Queue of each ring that the driver set up:
//
//	driver          Queue                          device
//	chain ------->  Take    copies the bytes out   parses its own copy
//	chain ------->  Give    copies the bytes in    <- frame
//	used  <-------  Publish once a batch           -> interrupt, if the driver wants one
//	kick  ------->  Arm     before it waits
//
// The guest may rewrite each byte of its memory at any time. So each field is loaded once
// into a variable, checked there and used from there; no slice of guest memory leaves the
// package. A guest that breaks a rule gets an error from the Queue, whose device then
// stops; nothing else is harmed, and no call takes more steps than the ring is long plus
// the bytes that it copies.
//
// Limits: packed rings (section 2.8) and addresses behind an IOMMU are refused. Each of
// the three parts of a ring lies in one region of the memory; buffers and indirect tables
// may cross into a region that adjoins. The host is little-endian, as the rings are.
package virtio
