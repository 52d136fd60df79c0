package vsock

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// What one guest may have.
const (
	// memoryOfGuest is the room in bytes that all its streams are given together: 1024
	// with a window, and 4096 with a lesser one, the subscribers of a broker.
	memoryOfGuest = 32 << 20

	// maxCalls is how many streams it may have that it asked for itself. Each is a
	// connection through the tunnel, too, of which a gateway has 16384.
	maxCalls = 1024

	// maxResets is how many resets wait that answer no stream, after which nothing more is
	// taken from the driver's ring: twice what is taken from it at a time.
	maxResets = 2 * burst

	// confirmTime is how long a guest may take to confirm the end of a stream, after
	// which it is reset; 8 s as with Linux (VSOCK_CLOSE_TIMEOUT).
	confirmTime = 8 * time.Second

	// firstPort is the first of the ports that the host's side calls from, behind those
	// that services have (RFC 6335 section 6).
	firstPort = 49152
)

// A key is which stream of a guest it is.
type key struct{ local, peer uint32 }

// Counters count what a guest did, since its port was made.
type counters struct {
	received, sent      uint64 // packets
	bytesFrom, bytesTo  uint64 // of payload
	calls, dials        uint64 // streams that were opened, by the guest and by the host
	refused             uint64 // calls for which there was nobody or no room
	stray               uint64 // packets from another CID than the guest's
	violations, overdue uint64 // streams that were reset for what the guest sent, or did not
}

// A table is the streams between a guest and the host.
type table struct {
	cid     uint64
	count   *counters
	streams map[key]*stream
	memory  int // given to streams, and to those that are gone but held
	calls   int // streams of the guest's asking, or held
	port    uint32

	first, last *stream   // list of those with something to say, in turn
	closing     []*stream // in the order of their deadlines; some may be gone since
	resets      []header  // answers to what belongs to no stream
}

func newTable(cid uint32, count *counters) *table {
	return &table{cid: uint64(cid), count: count, streams: make(map[key]*stream), port: firstPort - 1}
}

// full reports whether no further packet can be received before some are sent.
func (t *table) full() bool { return len(t.resets) >= maxResets }

// receive takes in a packet of the guest, for which the table has room: see full. payload
// is borrowed until it returns; if it is shorter than the header says, it was longer than
// any stream has room for. s is the stream that the packet is about, or nil; if it is
// offered, admit or refuse has to follow.
func (t *table) receive(h *header, payload []byte) (s *stream) {
	t.count.received++
	if h.srcCID != t.cid {
		t.count.stray++ // whoever is meant is not there to be answered
		return nil
	}
	s = t.streams[key{h.dstPort, h.srcPort}]
	switch {
	case h.kind != typeStream || h.dstCID != hostCID || s == nil && h.op != opRequest:
		t.answer(h)
		return nil
	case s == nil:
		return t.offer(h)
	case s.phase == broken:
		if h.op == opReset {
			t.remove(s)
		}
		return s
	}
	t.hear(s, h, payload)
	t.ready(s)
	return s
}

// answer answers a packet that belongs to no stream with a reset (section 5.10.6.4), if it
// is not one.
func (t *table) answer(h *header) {
	if h.op == opReset {
		return
	}
	if h.op == opRequest {
		t.count.refused++
	}
	t.resets = append(t.resets, header{
		srcCID: h.dstCID, dstCID: h.srcCID, srcPort: h.dstPort, dstPort: h.srcPort, kind: h.kind, op: opReset,
	})
}

// offer makes the stream that the guest asks for, if there is room for it.
func (t *table) offer(h *header) *stream {
	if t.calls >= maxCalls {
		t.answer(h)
		return nil
	}
	s := t.add(key{h.dstPort, h.srcPort})
	if s == nil {
		t.answer(h)
		return nil
	}
	s.call, s.peerAlloc, s.peerForwarded = true, h.alloc, h.forwarded
	t.calls++
	return s
}

// add makes a stream, unless there is no memory for it.
func (t *table) add(k key) *stream {
	size := window
	if t.memory+window > memoryOfGuest/2 {
		size = lesserWindow
	}
	if t.memory+size > memoryOfGuest {
		return nil
	}
	t.memory += size
	s := &stream{local: k.local, peer: k.peer, in: buffer{size: size}}
	t.streams[k] = s
	return s
}

// admit opens a stream that is offered, for a Conn.
func (t *table) admit(s *stream) {
	t.count.calls++
	s.phase, s.held, s.needs = open, true, needResponse
	t.ready(s)
}

// refuse answers the call that a stream is offered for with a reset, and forgets it.
func (t *table) refuse(s *stream) {
	t.remove(s)
	t.answer(&header{
		srcCID: t.cid, dstCID: hostCID, srcPort: s.peer, dstPort: s.local, kind: typeStream, op: opRequest,
	})
}

// dial makes a stream to a port of the guest, for a Conn. The error is ENOBUFS if there is
// no room for it.
func (t *table) dial(port uint32) (*stream, error) {
	for range len(t.streams) + 1 { // one of so many is free
		if t.port++; t.port > maxPort {
			t.port = firstPort
		}
		k := key{t.port, port}
		if t.streams[k] != nil {
			continue
		}
		s := t.add(k)
		if s == nil {
			break
		}
		s.phase, s.held, s.needs = connecting, true, needRequest
		t.ready(s)
		return s, nil
	}
	return nil, unix.ENOBUFS
}

// breakOff has a stream reset, with what Read and Write say from then on.
func (t *table) breakOff(s *stream, err error) {
	if s.phase >= broken {
		return
	}
	if s.phase == connecting && s.needs&needRequest != 0 {
		s.err = err
		t.remove(s) // nothing was said of it
		return
	}
	s.phase, s.err, s.out = broken, err, nil
	t.ready(s)
}

// close ends both directions of a stream whose Conn is closed, and resets it if hard.
func (t *table) close(s *stream, hard bool, now time.Time) {
	if !s.held {
		return
	}
	s.held = false
	s.end(noMore)
	switch {
	case s.phase == gone:
		t.giveBack(s)
	case hard || s.phase == connecting:
		t.breakOff(s, unix.ECONNABORTED)
	case s.phase == open:
		s.phase, s.deadline = closing, now.Add(confirmTime)
		if len(t.closing) > 2*len(t.streams) { // mostly such that are gone
			t.closing = slices.DeleteFunc(t.closing, func(s *stream) bool { return s.phase != closing })
		}
		t.closing = append(t.closing, s)
		t.ready(s)
	}
}

// expire resets streams whose end the guest did not confirm in time, and returns when to
// look again, zero if there is no need.
func (t *table) expire(now time.Time) (next time.Time) {
	for len(t.closing) > 0 {
		s := t.closing[0]
		if s.phase == closing {
			if s.deadline.After(now) {
				return s.deadline
			}
			t.count.overdue++
			t.breakOff(s, unix.ETIMEDOUT)
		}
		t.closing[0] = nil
		t.closing = t.closing[1:]
	}
	t.closing = nil
	return time.Time{}
}

// remove takes a stream out of the table.
func (t *table) remove(s *stream) {
	t.unready(s)
	delete(t.streams, key{s.local, s.peer})
	s.phase, s.out = gone, nil
	if s.err == nil {
		s.err = unix.ECONNRESET
	}
	if !s.held {
		t.giveBack(s)
	}
}

// giveBack takes back what a stream was given, once it is gone and no Conn has it.
func (t *table) giveBack(s *stream) {
	s.in.release()
	t.memory -= s.in.size
	if s.call {
		t.calls--
	}
}

// ready puts a stream into the list if it has something to say.
func (t *table) ready(s *stream) {
	if s.phase == open && len(s.out) > 0 && s.credit() == 0 && !s.asked {
		s.asked = true
		s.needs |= needCredit
	}
	if s.queued || !s.hasSay() {
		return
	}
	s.queued, s.prev = true, t.last
	if t.last == nil {
		t.first = s
	} else {
		t.last.next = s
	}
	t.last = s
}

// unready takes a stream out of that list.
func (t *table) unready(s *stream) {
	if !s.queued {
		return
	}
	if s.prev == nil {
		t.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		t.last = s.prev
	} else {
		s.next.prev = s.prev
	}
	s.queued, s.prev, s.next = false, nil, nil
}

// hasSay reports whether next has a packet.
func (t *table) hasSay() bool {
	for t.first != nil && !t.first.hasSay() {
		t.unready(t.first)
	}
	return t.first != nil || len(t.resets) > 0
}

// next returns the next packet for the guest, with at most room bytes of payload, at
// least 1. The payload is borrowed from a Write until the packet is given, s the stream
// that it is about or nil. ok is false if there is none.
func (t *table) next(room int, h *header) (payload []byte, s *stream, ok bool) {
	if !t.hasSay() {
		return nil, nil, false
	}
	t.count.sent++
	if len(t.resets) > 0 {
		*h = t.resets[0]
		t.resets = t.resets[:copy(t.resets, t.resets[1:])]
		return nil, nil, true
	}
	s = t.first
	t.unready(s)
	*h = header{srcCID: hostCID, dstCID: t.cid, srcPort: s.local, dstPort: s.peer, kind: typeStream}
	payload = s.pick(h, room)
	t.count.bytesTo += uint64(len(payload))
	if h.op == opReset {
		t.remove(s)
	} else {
		t.ready(s)
	}
	return payload, s, true
}

// clear ends all streams: the guest has gone.
func (t *table) clear() (all []*stream) {
	for _, s := range t.streams {
		if s.phase < broken {
			s.err = unix.ECONNRESET
		}
		all = append(all, s)
		t.remove(s)
	}
	t.closing, t.resets = nil, nil
	return all
}
