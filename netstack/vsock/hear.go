package vsock

import "golang.org/x/sys/unix"

// hear takes in a packet of a stream that is neither broken nor gone.
func (t *table) hear(s *stream, h *header, payload []byte) {
	s.peerAlloc, s.peerForwarded = h.alloc, h.forwarded
	if s.credit() > 0 {
		s.asked = false
	}
	switch h.op {
	case opResponse:
		if s.phase != connecting || s.needs&needRequest != 0 {
			t.violate(s)
			return
		}
		t.count.dials++
		s.phase = open
		if s.ends != 0 {
			s.needs |= needShutdown
		}
	case opReset:
		t.hearReset(s)
	case opShutdown:
		t.hearShutdown(s, h.flags)
	case opData:
		t.hearData(s, h, payload)
	case opCreditUpdate:
	case opCreditRequest:
		s.needs |= needUpdate
	default:
		t.violate(s)
	}
}

func (t *table) hearReset(s *stream) {
	switch s.phase {
	case connecting:
		s.err = unix.ECONNREFUSED
	case open:
		s.err = unix.ECONNRESET
	}
	t.remove(s)
}

func (t *table) hearShutdown(s *stream, flags uint32) {
	if s.phase == connecting {
		t.violate(s)
		return
	}
	s.peerEnds |= flags & noMore
	if s.peerEnds&noReceive != 0 {
		s.out = nil
	}
	if s.peerEnds == noMore {
		// The guest waits for a reset, which is no fault of anybody: what has come can
		// still be read.
		t.breakOff(s, unix.EPIPE)
	}
}

func (t *table) hearData(s *stream, h *header, payload []byte) {
	switch {
	case s.phase == connecting || s.peerEnds&noSend != 0 || int64(h.length) > int64(s.in.size)-int64(s.received-s.forwarded):
		t.violate(s)
	case s.ends&noReceive != 0: // on its way when the guest was told
		s.received += h.length
		s.forwarded += h.length
	default:
		s.received += h.length
		t.count.bytesFrom += uint64(h.length)
		s.in.write(payload[:h.length])
	}
}

// violate resets a stream whose rules the guest broke.
func (t *table) violate(s *stream) {
	t.count.violations++
	t.breakOff(s, unix.ECONNRESET)
}
