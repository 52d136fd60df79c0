package vsock

import "encoding/binary"

// headerLen is the length of struct virtio_vsock_hdr (virtio 1.2 section 5.10.6), in bytes.
const headerLen = 44

// typeStream is the type of packets of stream sockets (section 5.10.6).
const typeStream = 1

// Operations of packets (section 5.10.6).
const (
	opRequest       = 1 // connect
	opResponse      = 2 // connected
	opReset         = 3 // refused, broken, or the answer to the end of both directions
	opShutdown      = 4 // the sender receives or sends no more
	opData          = 5 // RW: a payload
	opCreditUpdate  = 6 // only the credit that each header has
	opCreditRequest = 7 // asks for an opCreditUpdate
)

// Flags of opShutdown (section 5.10.6.5). One that was set stays so.
const (
	noReceive = 1 << 0
	noSend    = 1 << 1
	noMore    = noReceive | noSend
)

// A header is the header of a packet.
type header struct {
	srcCID, dstCID   uint64
	srcPort, dstPort uint32
	length           uint32 // of the payload
	kind             uint16 // typeStream or unknown
	op               uint16
	flags            uint32
	alloc            uint32 // buf_alloc: bytes of payload for which the sender has room in all
	forwarded        uint32 // fwd_cnt: bytes of payload that have left that room, modulo 2^32
}

// put writes the header into b.
func (h *header) put(b *[headerLen]byte) {
	binary.LittleEndian.PutUint64(b[0:], h.srcCID)
	binary.LittleEndian.PutUint64(b[8:], h.dstCID)
	binary.LittleEndian.PutUint32(b[16:], h.srcPort)
	binary.LittleEndian.PutUint32(b[20:], h.dstPort)
	binary.LittleEndian.PutUint32(b[24:], h.length)
	binary.LittleEndian.PutUint16(b[28:], h.kind)
	binary.LittleEndian.PutUint16(b[30:], h.op)
	binary.LittleEndian.PutUint32(b[32:], h.flags)
	binary.LittleEndian.PutUint32(b[36:], h.alloc)
	binary.LittleEndian.PutUint32(b[40:], h.forwarded)
}

// parseHeader is the inverse of put.
func parseHeader(b *[headerLen]byte) header {
	return header{
		srcCID:    binary.LittleEndian.Uint64(b[0:]),
		dstCID:    binary.LittleEndian.Uint64(b[8:]),
		srcPort:   binary.LittleEndian.Uint32(b[16:]),
		dstPort:   binary.LittleEndian.Uint32(b[20:]),
		length:    binary.LittleEndian.Uint32(b[24:]),
		kind:      binary.LittleEndian.Uint16(b[28:]),
		op:        binary.LittleEndian.Uint16(b[30:]),
		flags:     binary.LittleEndian.Uint32(b[32:]),
		alloc:     binary.LittleEndian.Uint32(b[36:]),
		forwarded: binary.LittleEndian.Uint32(b[40:]),
	}
}
