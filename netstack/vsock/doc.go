// Package vsock has the host's side of stream sockets between guests and the gateway in
// their hypervisor (Virtual I/O Device version 1.2, "virtio 1.2" below, section 5.10;
// vsock(7)), for guests without a NIC. A Host is whom guests reach as CID 2. They come in
// one of three ways, and are reached in the same:
//
//	guest of QEMU ...   rings --- session ---+
//	                    a port, from Plug    |
//	guest of vhost-vsock    AF_VSOCK --------+--- Host.Listen, Host.Dial   net.Conn
//	                    the host's kernel    |
//	guest of Firecracker,   unix sockets ----+
//	Cloud Hypervisor        PATH_PORT, PATH
//
// A session is what lies between the driver of a guest and its end: its table has the
// streams, each with what was received and not read, and with what a Write has not handed
// on yet. The table knows no clock, lock or ring, and each packet is copied out of the
// guest's memory before it gets there.
//
//	packet of the guest --- table.receive ---> stream: bytes, credit, ends
//	packet to the guest <-- table.next ------- streams with something to say, in turn
//
// What a guest can have is bounded: the credit that it is given is at most 32 MiB over all
// streams, of which it may open 1024 itself; resets of what belongs to no stream wait in
// a list of 128, and its driver until there is room in that. What it sends against the
// rules of a stream resets the stream, what it does against those of a ring stops its port,
// and either harms nothing else.
//
// Limits: no datagrams and no SOCK_SEQPACKET; guests do not reach one another. A driver's
// event queue stays with the front end, as with QEMU.
package vsock
