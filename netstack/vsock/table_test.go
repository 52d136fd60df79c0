package vsock

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

const testCID = 7

var start = time.Unix(1000, 0)

// packetFrom is a packet of the guest.
func packetFrom(op uint16, guest, host uint32) header {
	return header{srcCID: testCID, dstCID: hostCID, srcPort: guest, dstPort: host, kind: typeStream, op: op, alloc: 1 << 16}
}

// said takes all packets that a table has.
func said(t *table) (all []header) {
	for {
		var h header
		if _, _, ok := t.next(4096, &h); !ok {
			return all
		}
		all = append(all, h)
	}
}

func ops(all []header) (ops []uint16) {
	for _, h := range all {
		ops = append(ops, h.op)
	}
	return ops
}

// opened returns a table with one stream that the guest has opened.
func opened(t *testing.T) (*table, *stream) {
	t.Helper()
	tb := newTable(testCID, new(counters))
	h := packetFrom(opRequest, 1000, 1883)
	s := tb.receive(&h, nil)
	if s == nil || s.phase != offered {
		t.Fatalf("%+v", s)
	}
	tb.admit(s)
	if got := ops(said(tb)); !slices.Equal(got, []uint16{opResponse}) {
		t.Fatalf("a call is answered by %v", got)
	}
	return tb, s
}

func TestHeaderRoundTrip(t *testing.T) {
	h := header{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	var b [headerLen]byte
	h.put(&b)
	want := []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 7, 0, 8, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0}
	if !bytes.Equal(b[:], want) {
		t.Errorf("% x", b)
	}
	if got := parseHeader(&b); got != h {
		t.Errorf("%+v", got)
	}
}

// What belongs to no stream is answered by a reset of its type, but for a reset, and for
// what comes from another guest's CID.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*header)
		answers int
	}{
		"data":            {func(h *header) { h.op = opData }, 1},
		"reset":           {func(h *header) { h.op = opReset }, 0},
		"another type":    {func(h *header) { h.kind = 2 }, 1},
		"to another CID":  {func(h *header) { h.dstCID = 9 }, 1},
		"to a large CID":  {func(h *header) { h.dstCID = 1<<32 | hostCID }, 1},
		"from another":    {func(h *header) { h.srcCID = 9 }, 0},
		"a reset of type": {func(h *header) { h.kind, h.op = 3, opReset }, 0},
	} {
		count := new(counters)
		tb := newTable(testCID, count)
		h := packetFrom(opRequest, 1000, 1883)
		c.change(&h)
		if s := tb.receive(&h, nil); s != nil {
			t.Errorf("%s: a stream", name)
		}
		all := said(tb)
		if len(all) != c.answers {
			t.Errorf("%s: %+v", name, all)
		}
		for _, a := range all {
			if want := (header{srcCID: h.dstCID, dstCID: h.srcCID, srcPort: h.dstPort, dstPort: h.srcPort, kind: h.kind, op: opReset}); a != want {
				t.Errorf("%s: %+v, want %+v", name, a, want)
			}
		}
		if stray := count.stray; (stray == 1) != (name == "from another") {
			t.Errorf("%s: %d from elsewhere", name, stray)
		}
	}
}

// What breaks a rule of a stream resets it.
func TestViolations(t *testing.T) {
	for name, run := range map[string][]func(*header){
		"no such operation": {func(h *header) { h.op = 8 }},
		"operation 0":       {func(h *header) { h.op = 0 }},
		"a second request":  {func(h *header) { h.op = opRequest }},
		"a response":        {func(h *header) { h.op = opResponse }},
		"data beyond the credit": {
			func(h *header) { h.op, h.length = opData, window },
			func(h *header) { h.op, h.length = opData, 1 },
		},
		"data that is too long": {func(h *header) { h.op, h.length = opData, math.MaxUint32 }},
		"data behind the end": {
			func(h *header) { h.op, h.flags = opShutdown, noSend },
			func(h *header) { h.op, h.length = opData, 1 },
		},
	} {
		tb, s := opened(t)
		for i, change := range run {
			h := packetFrom(opData, 1000, 1883)
			change(&h)
			tb.receive(&h, make([]byte, window))
			if got := s.phase == broken; got != (i == len(run)-1) {
				t.Errorf("%s: step %d: broken: %v", name, i, got)
			}
		}
		if got := ops(said(tb)); !slices.Equal(got, []uint16{opReset}) || tb.count.violations != 1 {
			t.Errorf("%s: answered by %v, %d counted", name, got, tb.count.violations)
		}
		if err := s.writable(); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%s: Write says %v", name, err)
		}
		if len(tb.streams) != 0 || s.phase != gone {
			t.Errorf("%s: the stream is still there", name)
		}
	}
}

// A guest that is answered for what it was not asked loses the stream that is dialed.
func TestDialed(t *testing.T) {
	for name, c := range map[string]struct {
		op   uint16
		asks bool
		want error
	}{
		"response":       {opResponse, true, nil},
		"reset":          {opReset, true, unix.ECONNREFUSED},
		"data":           {opData, true, unix.ECONNRESET},
		"shutdown":       {opShutdown, true, unix.ECONNRESET},
		"before request": {opResponse, false, unix.ECONNRESET},
	} {
		tb := newTable(testCID, new(counters))
		s, err := tb.dial(1883)
		if err != nil {
			t.Fatal(err)
		}
		if c.asks {
			if got := said(tb); len(got) != 1 || got[0].op != opRequest || got[0].dstPort != 1883 || got[0].alloc != window {
				t.Fatalf("%+v", got)
			}
		}
		h := packetFrom(c.op, 1883, s.local)
		tb.receive(&h, nil)
		if !errors.Is(s.err, c.want) || (c.want == nil) != (s.phase == open) {
			t.Errorf("%s: %v, phase %d", name, s.err, s.phase)
		}
		tb.close(s, true, start)
		said(tb)
		if len(tb.streams) != 0 || tb.memory != 0 {
			t.Errorf("%s: %d streams, %d bytes are left", name, len(tb.streams), tb.memory)
		}
	}
}

// Local ports are told apart by the guest's port only, and wrap.
func TestDialPorts(t *testing.T) {
	tb := newTable(testCID, new(counters))
	tb.port = maxPort - 1
	var got []uint32
	for range 3 {
		s, err := tb.dial(1)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.local)
	}
	tb.port = maxPort - 1
	s, err := tb.dial(1)
	if err != nil {
		t.Fatal(err)
	}
	if got = append(got, s.local); !slices.Equal(got, []uint32{maxPort, firstPort, firstPort + 1, firstPort + 2}) {
		t.Errorf("called from %d", got)
	}
}

// Streams that the guest opens are at most maxCalls, and of all no more than there is
// memory for; those that are gone but held by a Conn count, and are given back with it.
func TestLimits(t *testing.T) {
	tb := newTable(testCID, new(counters))
	var calls []*stream
	for i := range uint32(maxCalls) {
		h := packetFrom(opRequest, i+1, 1883)
		s := tb.receive(&h, nil)
		if s == nil {
			t.Fatalf("call %d is refused", i)
		}
		tb.admit(s)
		calls = append(calls, s)
	}
	h := packetFrom(opRequest, 1<<20, 1883)
	if tb.receive(&h, nil) != nil || tb.count.refused != 1 {
		t.Error("one call too many is not refused")
	}
	n := 0
	for ; ; n++ {
		s, err := tb.dial(uint32(n + 1))
		if err != nil {
			if !errors.Is(err, unix.ENOBUFS) {
				t.Error(err)
			}
			break
		}
		if s.in.size != lesserWindow {
			t.Fatalf("stream %d has a window of %d", n, s.in.size)
		}
	}
	if n != (memoryOfGuest-maxCalls*window)/lesserWindow || tb.memory != memoryOfGuest {
		t.Errorf("%d streams are dialed, %d bytes given", n, tb.memory)
	}
	said(tb)
	// The guest breaks one off, whose Conn still reads: nothing is given back yet.
	h = packetFrom(opReset, 1, 1883)
	tb.receive(&h, nil)
	h = packetFrom(opRequest, 1<<20, 1883)
	if tb.receive(&h, nil) != nil {
		t.Error("a stream that is held is not counted")
	}
	tb.close(calls[0], false, start)
	if tb.receive(&h, nil) == nil {
		t.Error("what is not held any more is still counted")
	}
}

// Resets that answer no stream are bounded by who asks full first; streams that come and go
// leave nothing in the lists.
func TestBoundedLists(t *testing.T) {
	tb := newTable(testCID, new(counters))
	n := 0
	for ; !tb.full(); n++ {
		h := packetFrom(opData, uint32(n+1), 1883)
		tb.receive(&h, nil)
	}
	if n != maxResets || len(said(tb)) != n || tb.full() {
		t.Errorf("full after %d", n)
	}
	for i := range uint32(1000) {
		h := packetFrom(opRequest, i+1, 1883)
		s := tb.receive(&h, nil)
		tb.admit(s)
		tb.close(s, false, start) // waits for its end to be confirmed
		h.op = opReset
		tb.receive(&h, nil)
	}
	if tb.first != nil || tb.last != nil || len(tb.streams) != 0 || tb.memory != 0 || tb.calls != 0 {
		t.Errorf("%d streams, %d bytes, %d calls are left", len(tb.streams), tb.memory, tb.calls)
	}
	if len(tb.closing) > 2 {
		t.Errorf("%d ends are waited for", len(tb.closing))
	}
}

// The end of a stream is told, and the guest resets it; one that does not in time is reset.
func TestConfirmation(t *testing.T) {
	for _, confirms := range []bool{true, false} {
		tb, s := opened(t)
		tb.close(s, false, start)
		if got := said(tb); len(got) != 1 || got[0].op != opShutdown || got[0].flags != noMore {
			t.Fatalf("%+v", got)
		}
		if next := tb.expire(start.Add(confirmTime - 1)); next != start.Add(confirmTime) || len(tb.streams) != 1 {
			t.Errorf("looks again at %v", next)
		}
		if confirms {
			h := packetFrom(opReset, 1000, 1883)
			tb.receive(&h, nil)
		}
		if next := tb.expire(start.Add(confirmTime)); !next.IsZero() {
			t.Errorf("looks again at %v", next)
		}
		if got := ops(said(tb)); confirms && got != nil || !confirms && !slices.Equal(got, []uint16{opReset}) {
			t.Errorf("confirmed %v: says %v", confirms, got)
		}
		if want := map[bool]uint64{true: 0, false: 1}[confirms]; tb.count.overdue != want || len(tb.streams) != 0 || tb.memory != 0 {
			t.Errorf("confirmed %v: %d overdue, %d streams", confirms, tb.count.overdue, len(tb.streams))
		}
	}
}

// A guest that ends both directions gets the reset that it waits for at once, and what it
// sent before is read.
func TestGuestEnds(t *testing.T) {
	tb, s := opened(t)
	h := packetFrom(opData, 1000, 1883)
	h.length = 5
	tb.receive(&h, []byte("hello"))
	for _, flags := range []uint32{noReceive, noSend} { // a flag that was set stays so
		h = packetFrom(opShutdown, 1000, 1883)
		h.flags = flags
		tb.receive(&h, nil)
	}
	if got := ops(said(tb)); !slices.Equal(got, []uint16{opReset}) || len(tb.streams) != 0 {
		t.Errorf("says %v", got)
	}
	b := make([]byte, 10)
	if n, err := s.read(b); string(b[:n]) != "hello" || err != nil {
		t.Errorf("%q, %v", b[:n], err)
	}
	if _, err := s.read(b); err != io.EOF {
		t.Errorf("behind it: %v", err)
	}
	if err := s.writable(); err != unix.EPIPE {
		t.Errorf("Write says %v", err)
	}
}

// A guest that has no credit left is told once half of it is there again, or when it asks;
// the host's side asks once when it has none.
func TestCredit(t *testing.T) {
	tb, s := opened(t)
	h := packetFrom(opData, 1000, 1883)
	h.length = window
	tb.receive(&h, make([]byte, window))
	s.read(make([]byte, window/2-1))
	tb.ready(s)
	if got := said(tb); got != nil {
		t.Errorf("told too early: %+v", got)
	}
	s.read(make([]byte, 1))
	tb.ready(s)
	if got := said(tb); len(got) != 1 || got[0].op != opCreditUpdate || got[0].forwarded != window/2 || got[0].alloc != window {
		t.Errorf("%+v", got)
	}
	h = packetFrom(opCreditRequest, 1000, 1883)
	h.alloc = 100
	tb.receive(&h, nil)
	if got := ops(said(tb)); !slices.Equal(got, []uint16{opCreditUpdate}) {
		t.Errorf("asked: %v", got)
	}
	s.out = make([]byte, 150)
	tb.ready(s)
	if got := said(tb); len(got) != 2 || got[0].length != 100 || got[1].op != opCreditRequest {
		t.Errorf("%+v", got)
	}
	for _, forged := range []header{{alloc: 0}, {alloc: 50}, {alloc: 1 << 16, forwarded: 101}} {
		h = packetFrom(opCreditUpdate, 1000, 1883)
		h.alloc, h.forwarded = forged.alloc, forged.forwarded
		tb.receive(&h, nil)
		if got := said(tb); got != nil {
			t.Errorf("sent without credit: %+v", got)
		}
	}
	h = packetFrom(opCreditUpdate, 1000, 1883)
	h.alloc, h.forwarded = 100, 30
	tb.receive(&h, nil)
	if got := said(tb); len(got) != 2 || got[0].length != 30 || got[1].op != opCreditRequest {
		t.Errorf("%+v", got)
	}
}

// A modelStream is a guest's end of a stream, and what both applications did.
type modelStream struct {
	s            *stream
	guest, local uint32
	open         bool // for the guest: answered

	toHost, toGuest     []byte // as written
	gotHost, gotGuest   []byte // as read
	sent, forwarded     uint32 // of the guest
	hostAlloc, hostForw uint32
	held                []byte // at the guest, not read
	alloc               uint32
	ends, hostEnds      uint32 // of the guest, and as told to it
	reset               bool   // by either
	closed              bool   // the host's application closed it
}

func (m *modelStream) header(op uint16) header {
	h := packetFrom(op, m.guest, m.local)
	h.alloc, h.forwarded = m.alloc, m.forwarded
	return h
}

// Whatever order the two sides do what they may in, bytes arrive in order, no side is sent
// more than it has room for, and in the end nothing is left.
func TestInterleavings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb := newTable(testCID, new(counters))
		var streams []*modelStream
		next := byte(0)
		data := func(n int) (b []byte) {
			for range n {
				b = append(b, next)
				next = (next + 1) % 251 // no divisor of the windows
			}
			return b
		}
		pick := func(t *rapid.T) *modelStream {
			if len(streams) == 0 {
				t.Skip("no stream")
			}
			return rapid.SampledFrom(streams).Draw(t, "stream")
		}
		send := func(m *modelStream, h header, payload []byte) {
			h.length = uint32(len(payload))
			tb.receive(&h, payload)
			if m.s.in.n > m.s.in.size {
				t.Fatalf("%d bytes are held", m.s.in.n)
			}
		}
		hear := func(t *rapid.T, room int) bool {
			var h header
			payload, s, ok := tb.next(room, &h)
			if !ok {
				return false
			}
			i := slices.IndexFunc(streams, func(m *modelStream) bool { return m.s == s })
			if i < 0 {
				return true // of a stream that is forgotten
			}
			m := streams[i]
			m.hostAlloc, m.hostForw = h.alloc, h.forwarded
			switch h.op {
			case opResponse:
				m.open = true
			case opRequest:
				m.open = true
				send(m, m.header(opResponse), nil)
			case opReset:
				m.reset = true
			case opShutdown:
				if m.hostEnds |= h.flags; m.hostEnds == noMore {
					m.reset = true
					send(m, m.header(opReset), nil)
				}
			case opData:
				if m.hostEnds&noSend != 0 {
					t.Fatal("data behind the end")
				}
				m.held = append(m.held, payload...)
				if uint32(len(m.held)) > m.alloc {
					t.Fatalf("%d bytes are sent to a guest with room for %d", len(m.held), m.alloc)
				}
			case opCreditRequest:
				send(m, m.header(opCreditUpdate), nil)
			}
			return true
		}
		hostReads := func(m *modelStream, n int) {
			b := make([]byte, n)
			n, _ = m.s.read(b)
			m.gotHost = append(m.gotHost, b[:n]...)
			tb.ready(m.s)
			if !bytes.HasPrefix(m.toHost, m.gotHost) {
				t.Fatal("the host reads what was not sent, or in another order")
			}
		}
		guestReads := func(m *modelStream, n int) {
			n = min(n, len(m.held))
			m.gotGuest = append(m.gotGuest, m.held[:n]...)
			m.held = m.held[n:]
			m.forwarded += uint32(n)
			if !bytes.HasPrefix(m.toGuest, m.gotGuest) {
				t.Fatal("the guest reads what was not sent, or in another order")
			}
			if m.open && !m.reset {
				send(m, m.header(opCreditUpdate), nil)
			}
		}
		actions := map[string]func(*rapid.T){
			"guest calls": func(t *rapid.T) {
				m := &modelStream{guest: uint32(len(streams) + 1), local: 1883, alloc: rapid.Uint32Range(1, 300).Draw(t, "alloc")}
				h := m.header(opRequest)
				m.s = tb.receive(&h, nil)
				tb.admit(m.s)
				streams = append(streams, m)
			},
			"host dials": func(t *rapid.T) {
				m := &modelStream{guest: 1883, alloc: rapid.Uint32Range(1, 300).Draw(t, "alloc")}
				m.s, _ = tb.dial(1883)
				m.local = m.s.local
				streams = append(streams, m)
			},
			"guest writes": func(t *rapid.T) {
				m := pick(t)
				if !m.open || m.reset || m.ends&noSend != 0 || m.hostEnds&noReceive != 0 {
					t.Skip("not writable")
				}
				credit := int(m.hostAlloc - (m.sent - m.hostForw))
				n := credit
				if !rapid.Bool().Draw(t, "all") {
					n = rapid.IntRange(0, credit).Draw(t, "n")
				}
				b := data(n)
				m.sent += uint32(len(b))
				m.toHost = append(m.toHost, b...)
				send(m, m.header(opData), b)
			},
			"host writes": func(t *rapid.T) {
				m := pick(t)
				if m.s.phase != open || m.s.writable() != nil || len(m.s.out) > 0 {
					t.Skip("not writable")
				}
				m.s.out = data(rapid.IntRange(1, 500).Draw(t, "n"))
				m.toGuest = append(m.toGuest, m.s.out...)
				tb.ready(m.s)
			},
			"guest hears":  func(t *rapid.T) { hear(t, rapid.IntRange(1, 200).Draw(t, "room")) },
			"host reads":   func(t *rapid.T) { hostReads(pick(t), rapid.IntRange(1, 2*window).Draw(t, "n")) },
			"guest reads":  func(t *rapid.T) { guestReads(pick(t), rapid.IntRange(1, 300).Draw(t, "n")) },
			"time":         func(t *rapid.T) { tb.expire(start) },
			"much time":    func(t *rapid.T) { tb.expire(start.Add(confirmTime)) },
			"host's end":   func(t *rapid.T) { m := pick(t); m.s.end(noSend); tb.ready(m.s) },
			"host closes":  func(t *rapid.T) { m := pick(t); m.closed = true; tb.close(m.s, false, start) },
			"host resets":  func(t *rapid.T) { m := pick(t); m.closed = true; tb.close(m.s, true, start) },
			"guest resets": func(t *rapid.T) { m := pick(t); m.reset = true; send(m, m.header(opReset), nil) },
			"guest's end": func(t *rapid.T) {
				m := pick(t)
				if !m.open || m.reset {
					t.Skip("not open")
				}
				m.ends |= rapid.Uint32Range(1, 3).Draw(t, "flags")
				h := m.header(opShutdown)
				h.flags = m.ends
				send(m, h, nil)
			},
			"": func(t *rapid.T) {
				if tb.count.violations > 0 {
					t.Fatal("a guest that keeps the rules is taken to break them")
				}
			},
		}
		t.Repeat(actions)
		settle(streams, func() bool { return hear(t, 100) }, hostReads, guestReads)
		for _, m := range streams {
			whole := !m.reset && !m.closed && m.s.err == nil && m.ends == 0
			if whole && (!bytes.Equal(m.gotHost, m.toHost) || m.s.ends == 0 && !bytes.Equal(m.gotGuest, m.toGuest)) {
				t.Fatal("bytes have not arrived")
			}
			if whole && m.open && m.sent-m.hostForw >= m.hostAlloc {
				t.Fatal("a guest is without credit though all was read")
			}
			tb.close(m.s, false, start)
		}
		settle(streams, func() bool { return hear(t, 100) }, hostReads, guestReads)
		tb.expire(start.Add(confirmTime))
		for hear(t, 100) {
		}
		if len(tb.streams) != 0 || tb.memory != 0 || tb.calls != 0 || tb.first != nil || len(tb.closing) != 0 {
			t.Fatalf("%d streams (%v), %d bytes, %d calls are left", len(tb.streams), maps.Keys(tb.streams), tb.memory, tb.calls)
		}
	})
}

// settle has both sides read until there is nothing more.
func settle(streams []*modelStream, hear func() bool, hostReads, guestReads func(*modelStream, int)) {
	for {
		before := 0
		for _, m := range streams {
			before += len(m.gotHost) + len(m.gotGuest)
		}
		for hear() {
		}
		after := 0
		for _, m := range streams {
			hostReads(m, window)
			guestReads(m, window)
			after += len(m.gotHost) + len(m.gotGuest)
		}
		if before == after {
			return
		}
	}
}
