package vsock

import (
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A phase is how far a stream is.
type phase uint8

const (
	offered    phase = iota // the guest asks for it; admit or refuse comes next
	connecting              // the guest was asked for it, or is about to be
	open
	closing // both directions have ended here; the guest's reset is to confirm it
	broken  // a reset is to be sent
	gone    // no longer in the table
)

// What a stream has to say, beside bytes.
type need uint8

const (
	needRequest need = 1 << iota
	needResponse
	needShutdown
	needCredit // ask for it
	needUpdate // tell of it
)

// A stream is one connection as the host's side sees it.
type stream struct {
	local, peer uint32 // ports
	call        bool   // the guest asked for it
	phase       phase
	held        bool  // by a Conn, which may still read
	err         error // of Write, and of Read behind the bytes; set once broken or gone

	in        buffer
	received  uint32 // bytes, modulo 2^32 like all of these
	forwarded uint32 // of them, read
	told      uint32 // forwarded, as the guest knows it

	out           []byte // borrowed from a Write: what is left of it; at most maxWrite
	sent          uint32
	peerAlloc     uint32
	peerForwarded uint32
	asked         bool // for credit, since there was some

	ends     uint32 // noReceive and noSend, of this side
	peerEnds uint32 // and of the guest
	needs    need

	queued     bool // in the table's list of streams with something to say
	prev, next *stream
	deadline   time.Time // of closing

	changed sync.Cond // for whoever has the table; no part of it
}

// credit is how many bytes the guest has room for. A guest that takes room back that was
// in use, or claims to have forwarded what was not sent, has none.
func (s *stream) credit() uint32 {
	used := s.sent - s.peerForwarded
	if used >= s.peerAlloc {
		return 0
	}
	return s.peerAlloc - used
}

// hasSay reports whether the stream has a packet to send.
func (s *stream) hasSay() bool {
	return s.phase == broken || s.phase < broken && s.needs != 0 || s.phase == open && len(s.out) > 0 && s.credit() > 0
}

// read takes what has come out into b. n is 0 with a nil error if nothing has; the error
// is io.EOF if nothing more will, and tells otherwise what broke the stream.
func (s *stream) read(b []byte) (n int, err error) {
	n = s.in.read(b)
	s.forwarded += uint32(n)
	// The guest has used half of its credit, or more: that it is there again it should
	// know before it has none.
	if s.phase == open && s.peerEnds&noSend == 0 && s.forwarded-s.told >= uint32(s.in.size/2) {
		s.needs |= needUpdate
	}
	switch {
	case n > 0 || s.in.n > 0:
		return n, nil
	case s.peerEnds&noSend != 0:
		return 0, io.EOF
	case s.ends&noReceive != 0:
		return 0, net.ErrClosed
	}
	return 0, s.err
}

// readable reports whether read does not say to wait.
func (s *stream) readable() bool {
	return s.in.n > 0 || s.err != nil || s.peerEnds&noSend != 0 || s.ends&noReceive != 0
}

// writable returns why nothing more can be written, nil if it can.
func (s *stream) writable() error {
	switch {
	case s.ends&noReceive != 0:
		return net.ErrClosed
	case s.ends&noSend != 0 || s.peerEnds&noReceive != 0:
		return unix.EPIPE
	}
	return s.err
}

// end ends directions of this side. What a Write still has is not sent any more.
func (s *stream) end(ends uint32) {
	if s.ends|ends == s.ends {
		return
	}
	s.ends |= ends
	if ends&noSend != 0 {
		s.out = nil
	}
	if ends&noReceive != 0 {
		s.in.release()
		s.forwarded = s.received
	}
	if s.phase == open {
		s.needs |= needShutdown
	}
}

// pick fills in what the next packet says of the stream: what h has to have beside
// addresses and credit, and its payload of at most room bytes, borrowed until the packet
// is given. The stream has something to say.
func (s *stream) pick(h *header, room int) (payload []byte) {
	switch {
	case s.phase == broken:
		h.op = opReset
	case s.needs&needRequest != 0:
		h.op, s.needs = opRequest, s.needs&^needRequest
	case s.needs&needResponse != 0:
		h.op, s.needs = opResponse, s.needs&^needResponse
	case len(s.out) > 0 && s.credit() > 0:
		payload = s.out[:min(len(s.out), room)]
		if credit := s.credit(); uint32(len(payload)) > credit {
			payload = payload[:credit]
		}
		s.out = s.out[len(payload):]
		s.sent += uint32(len(payload))
		h.op = opData
	case s.needs&needShutdown != 0:
		h.op, h.flags, s.needs = opShutdown, s.ends, s.needs&^needShutdown
	case s.needs&needCredit != 0:
		h.op, s.needs = opCreditRequest, s.needs&^needCredit
	default:
		h.op = opCreditUpdate
	}
	s.needs &^= needUpdate // each header tells of it
	s.told = s.forwarded
	h.length = uint32(len(payload))
	h.alloc, h.forwarded = uint32(s.in.size), s.forwarded
	return payload
}
