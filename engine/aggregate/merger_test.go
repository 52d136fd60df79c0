package aggregate

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
)

const ms = time.Millisecond

func ack(client int, seq uint32) segment {
	return segment{Client: client, Flags: 0x10, Seq: 1, Ack: seq, Window: 5}
}

func data(client int, body string) segment {
	return segment{Client: client, Flags: 0x18, Seq: uint32(len(body)), Payload: codectest.Publish("t/"+body, body, 0)}
}

// A Merger tells the schedule what each segment is: all of its rules begin there.
func TestScheduleIsToldOfSegments(t *testing.T) {
	flag := func(f uint8) []byte { return segment{Client: 1, Flags: f}.Packet() }
	mqtt := func(b ...byte) []byte { return segment{Client: 1, Flags: 0x18, Payload: b}.Packet() }
	puback, ping, message := []byte{0x40, 2, 0, 9}, []byte{0xc0, 0}, codectest.Publish("t", "a", 0)
	join := func(parts ...[]byte) []byte { return mqtt(slices.Concat(parts...)...) }
	proto := func(b []byte, at int, proto byte) []byte { b[at] = proto; return b }
	v4, v6 := codectest.ICMP(), codectest.IPv6TCP()
	const window, quiet, ackWait, interval = 5 * ms, ms, 25 * ms, ms
	for _, tt := range []struct {
		name string
		in   [][]byte // at 10 ms
		wait time.Duration
		why  Reason
	}{
		{"a message", [][]byte{join(message)}, window, FlushWindow},
		{"two alike", [][]byte{data(1, "a").Packet(), data(2, "a").Packet()}, quiet, FlushQuiet},
		{"an acknowledgement", [][]byte{ack(1, 5).Packet()}, ackWait, FlushAck},
		{"two alike of those", [][]byte{ack(1, 5).Packet(), ack(2, 5).Packet()}, ackWait, FlushAck},
		{"of a whole segment", [][]byte{ack(1, 1).Packet(), ack(1, 2401).Packet()}, window, FlushWindow},
		{"of a busy flow", [][]byte{ack(1, 1).Packet(), ack(1, 2).Packet(), ack(1, 3).Packet(), ack(1, 4).Packet()}, window, FlushWindow},
		{"of as many flows", [][]byte{ack(1, 1).Packet(), ack(2, 2).Packet(), ack(3, 3).Packet(), ack(4, 4).Packet()}, ackWait, FlushAck},
		{"a message that acknowledges", [][]byte{join(puback)}, ackWait, FlushAck},
		{"that and another", [][]byte{join(puback, message)}, window, FlushWindow},
		{"another and that", [][]byte{join(message, puback)}, window, FlushWindow},
		{"SYN", [][]byte{flag(parsers.FlagSYN)}, 0, FlushUrgent},
		{"FIN", [][]byte{flag(parsers.FlagFIN | 0x10)}, 0, FlushUrgent},
		{"RST", [][]byte{flag(parsers.FlagRST)}, 0, FlushUrgent},
		{"PSH and ACK", [][]byte{flag(0x18)}, ackWait, FlushAck},
		{"a ping", [][]byte{join(ping)}, 0, FlushUrgent},
		{"a ping behind a message", [][]byte{join(message, ping)}, 0, FlushUrgent},
		{"a ping before one", [][]byte{join(ping, message)}, 0, FlushUrgent},
		{"a connect", [][]byte{mqtt(0x10, 12, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 0)}, 0, FlushUrgent},
		{"a ping that waits for nobody, after what waits", [][]byte{ack(2, 5).Packet(), data(3, "a").Packet(), join(ping)}, 0, FlushUrgent},
		{"ICMP", [][]byte{v4}, 0, FlushUrgent},
		{"ICMP, by its number, over IPv6", [][]byte{proto(bytes.Clone(v6), 6, 1)}, window, FlushWindow},
		{"ICMPv6", [][]byte{proto(bytes.Clone(v6), 6, 58)}, 0, FlushUrgent},
		{"ICMPv6, by its number, over IPv4", [][]byte{fixed(proto(bytes.Clone(v4), 9, 58))}, window, FlushWindow},
		{"a datagram", [][]byte{codectest.UDP()}, window, FlushWindow},
		{"a datagram of nothing", [][]byte{datagram(segment{Client: 1})}, window, FlushWindow},
		{"two of those, of which none is like the other", [][]byte{datagram(segment{Client: 1}), datagram(segment{Client: 2})}, window, FlushWindow},
		{"a packet as it is", [][]byte{broken(ack(1, 5))}, window, FlushWindow},
		{"two of those, likewise", [][]byte{broken(ack(1, 5)), broken(ack(1, 5))}, window, FlushWindow},
	} {
		m := newMerger(t, Config{})
		for _, b := range tt.in {
			add(t, m, 10*ms, b)
		}
		if at, why, ok := m.Deadline(); !ok || at != 10*ms+tt.wait || why != tt.why {
			t.Errorf("%s: due after %v for %v (%v), expected %v for %v", tt.name, at-10*ms, why, ok, tt.wait, tt.why)
		}
	}
	if at, why, ok := newMerger(t, Config{}).Deadline(); ok {
		t.Errorf("nothing is due at %v for %v", at, why)
	}
}

// fixed sets the checksum of an IPv4 header right.
func fixed(b []byte) []byte { codectest.FixIP(b); return b }

// What a flow has acknowledged is known from one frame to the next, but how often only
// within one.
func TestFlowsAcknowledgementsOutliveAFrame(t *testing.T) {
	m := newMerger(t, Config{})
	for i, want := range []Reason{FlushAck, FlushAck, FlushAck, FlushAck, FlushAck, FlushWindow} {
		add(t, m, 10*ms, ack(1, uint32(100+i+i/5*2400)).Packet())
		if _, why, _ := m.Deadline(); why != want {
			t.Errorf("acknowledgement %d is due for %v, expected %v", i, why, want)
		}
		m.Flush(nil, 10*ms, FlushEnd)
	}
}

// A Config's times are those of the schedule.
func TestTimesAreThoseOfTheConfig(t *testing.T) {
	syn := segment{Client: 9, Flags: parsers.FlagSYN}.Packet()
	for _, tt := range []struct {
		cfg  Config
		in   [][]byte
		wait time.Duration
		why  Reason
	}{
		{Config{Window: 70 * ms}, [][]byte{data(1, "a").Packet()}, 70 * ms, FlushWindow},
		{Config{Window: -1}, [][]byte{data(1, "a").Packet()}, 0, FlushWindow},
		{Config{Quiet: 3 * ms}, [][]byte{data(1, "a").Packet(), data(2, "a").Packet()}, 3 * ms, FlushQuiet},
		{Config{Quiet: -1}, [][]byte{data(1, "a").Packet(), data(2, "a").Packet()}, 0, FlushQuiet},
		{Config{AckWait: 9 * ms}, [][]byte{ack(1, 5).Packet()}, 9 * ms, FlushAck},
		{Config{AckWait: -1}, [][]byte{ack(1, 5).Packet()}, 0, FlushAck},
		{Config{UrgentInterval: 7 * ms}, [][]byte{syn}, 7 * ms, FlushUrgent},
		{Config{UrgentInterval: -1}, [][]byte{syn}, 0, FlushUrgent},
	} {
		m := newMerger(t, tt.cfg)
		add(t, m, 10*ms, syn)
		m.Flush(nil, 10*ms, FlushUrgent)
		for _, b := range tt.in {
			add(t, m, 10*ms, b)
		}
		if at, why, _ := m.Deadline(); at != 10*ms+tt.wait || why != tt.why {
			t.Errorf("%+v: due after %v for %v", tt.cfg, at-10*ms, why)
		}
	}
}

// knownSet is a fan-out to ten whose set is known.
func knownSet(t *testing.T) (*pair, *codectest.Fanout) {
	p := newPair(t, Config{})
	f := codectest.NewFanout(10)
	for range 3 {
		f.Send(func(int) []byte { return codectest.Publish("t", body(f.Round), 0) }, p.run)
		p.due(f.Now + 40*ms)
	}
	return p, f
}

// A group whose members are those of a known set waits for nobody.
func TestComplete(t *testing.T) {
	p, f := knownSet(t)
	m := &p.ends[1].Merger
	n := 0
	f.Send(func(int) []byte { return codectest.Publish("t", body(f.Round), 0) }, func(d int, now time.Duration, b []byte) {
		if d == 0 {
			return
		}
		n++
		m.Add(now, b)
		at, why, _ := m.Deadline()
		if complete := why == FlushComplete && at == now; complete != (n == 10) {
			t.Errorf("after %d of 10 members: due at %v for %v", n, at-now, why)
		}
	})
}

// Within a flow nothing overtakes: a segment never joins a group before that of
// an earlier segment, nor one before a packet that could be of any flow.
func TestOrderWithinFlow(t *testing.T) {
	p := newPair(t, Config{})
	a, b := ack(1, 5), ack(2, 5)
	d := data(1, "x")
	for _, s := range []segment{a, d, a, b, d, d} {
		p.add(0, 0, s.Packet())
	}
	bad := a.Packet()
	bad[3]++ // the length is wrong: nobody can tell what it is
	p.add(0, 0, bad)
	p.add(0, 0, a.Packet())
	p.flush(0, 0)
	if got := p.ends[0].Merger.Stats().Verbatim; got != 1 {
		t.Errorf("%d packets verbatim", got)
	}
}

// What packets wait is from when they came, each for itself.
func TestWaits(t *testing.T) {
	l, _ := NewLane(Config{Registry: builtin.Registry()})
	m := &l.Merger
	for frame, want := range []time.Duration{5 + 3 + 1, 2 * (5 + 3 + 1)} {
		begin := time.Duration(frame+1) * time.Second
		for i := range 3 {
			m.Add(begin+time.Duration(i)*2*ms, data(i+1, "a").Packet())
		}
		m.Flush(nil, begin+5*ms, FlushWindow)
		m.Report(nil, begin+9*ms) // in which nothing waited
		if s := m.Stats(); s.Waited != want*ms || s.Longest != 5*ms {
			t.Errorf("waited %v, the longest %v", s.Waited, s.Longest)
		}
	}
}

// The longest wait is that of any frame.
func TestLongestWaitIsKept(t *testing.T) {
	m := newMerger(t, Config{})
	for i, wait := range []time.Duration{3 * ms, 5 * ms, 4 * ms} {
		begin := time.Duration(i) * time.Second
		add(t, m, begin, data(1, "a").Packet())
		m.Flush(nil, begin+wait, FlushWindow)
	}
	if s := m.Stats(); s.Longest != 5*ms || s.Waited != 12*ms {
		t.Errorf("the longest waited %v, all %v", s.Longest, s.Waited)
	}
}

func TestFramesAreCountedByTheirReason(t *testing.T) {
	m := newMerger(t, Config{})
	length := 0
	for i, why := range []Reason{FlushAck, FlushFull, FlushAck} {
		add(t, m, 0, ack(i, 5).Packet())
		if m.Pending() != 1 {
			t.Errorf("%d packets wait", m.Pending())
		}
		b := m.Flush([]byte("head"), 0, why)
		length += len(b) - 4
		if string(b[:4]) != "head" || len(b) == 4 || m.Pending() != 0 {
			t.Errorf("%q, and %d packets wait", b, m.Pending())
		}
	}
	if b := m.Flush([]byte("head"), 0, FlushAck); string(b) != "head" {
		t.Errorf("a frame of nothing: %q", b)
	}
	length += len(m.Report(nil, 0))
	out := 0.0
	for _, n := range m.Stats().Out {
		out += n
	}
	if out < float64(length)-4 || out > float64(length) { // a control field's last byte is not full
		t.Errorf("%.1f bytes are counted of %d", out, length)
	}
	want := [numReasons]uint64{FlushAck: 2, FlushFull: 1}
	if s := m.Stats(); s.Flushes != want || s.Frames != 4 || s.BytesFrames != uint64(length) {
		t.Errorf("%v, %d frames of %d bytes, expected %d bytes", s.Flushes, s.Frames, s.BytesFrames, length)
	}
}

// A new flow is announced once, whatever it has in the frame.
func TestFlowIsAnnouncedOnce(t *testing.T) {
	m := newMerger(t, Config{})
	for frame := range 3 {
		for range 3 {
			add(t, m, 0, ack(1, 5).Packet())
			add(t, m, 0, data(1, "a").Packet())
			add(t, m, 0, ack(frame, 6).Packet())
		}
		if fresh := m.pending.fresh; fresh != []int{2, 0, 1}[frame] {
			t.Errorf("frame %d: %d flows are new", frame, fresh)
		}
		m.Flush(nil, 0, FlushEnd)
	}
	if s := m.Stats(); s.Contexts != 3 || m.encoder.Contexts() != 3 || s.Evicted != 0 {
		t.Errorf("%d flows announced, %d known, %d gave way", s.Contexts, m.encoder.Contexts(), s.Evicted)
	}
}

// Fragments of whatever datagrams are one flow: those behind the first have no ports.
func TestFragmentsAreOneFlow(t *testing.T) {
	p := newPair(t, Config{})
	first, second, other := codectest.UDP(), codectest.UDP(), codectest.UDP()
	first[6], second[7], other[6], other[20] = 0x20, 4, 0x20, 1 // more follow; an offset; another port
	for range 2 {
		for _, b := range [][]byte{first, second, other} {
			p.add(0, 0, fixed(b))
		}
		p.flush(0, 0)
	}
	m := &p.ends[0].Merger
	if len(m.flows.all) != 1 || m.flows.all[0].Key.SrcPort|m.flows.all[0].Key.DstPort != 0 || m.Stats().Verbatim != 0 {
		t.Errorf("%d flows, %d packets as they are", len(m.flows.all), m.Stats().Verbatim)
	}
	p.add(0, 0, codectest.UDP())
	p.flush(0, 0)
	if len(m.flows.all) != 2 || m.flows.all[1].Key.SrcPort == 0 {
		t.Errorf("%d flows with a whole datagram", len(m.flows.all))
	}
}

// What no layout describes is carried as it is, and is of no flow.
func TestLongHeadersAreCarriedAsTheyAre(t *testing.T) {
	for extension, verbatim := range map[int]uint64{240 - 40 - 32: 0, 248 - 40 - 32: 1} {
		b := codectest.IPv6TCP()
		header := make([]byte, extension)
		header[0], header[1] = 6, byte(extension/8-1)
		b = append(b[:40:40], append(header, b[40:]...)...)
		b[6] = 60
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
		p := newPair(t, Config{})
		p.add(0, 0, b)
		p.flush(0, 0)
		if m := &p.ends[0].Merger; m.Stats().Verbatim != verbatim || len(m.flows.all) != 1-int(verbatim) {
			t.Errorf("headers of %d bytes: %d packets as they are, %d flows", extension+72, m.Stats().Verbatim, len(m.flows.all))
		}
	}
}

func TestProtocolOfAFlow(t *testing.T) {
	m := newMerger(t, Config{})
	s := data(1, "a")
	key := keyOf(t, s)
	if got := m.Protocol(&key); got != parsers.Opaque {
		t.Errorf("of a flow that is not known: %v", got)
	}
	add(t, m, 0, s.Packet())
	want, _ := builtin.Registry().Lookup("mqtt")
	if got := m.Protocol(&key); got != want {
		t.Errorf("%v, expected %v", got, want)
	}
}

// Packets that are carried as they are, and of the same length, are compared with one
// another.
func TestPacketsAsTheyAreAreComparedByLength(t *testing.T) {
	p := newPair(t, Config{})
	for i, n := range []int{50, 90, 50, 90, 50, 90} {
		b := make([]byte, n) // the same for a length, but for a byte
		rand.NewChaCha8([32]byte{byte(n)}).Read(b)
		b[0], b[n-1] = 0, byte(i)
		before := p.bytes[0]
		p.add(0, 0, b)
		p.flush(0, 0)
		if got := p.bytes[0] - before; i < 2 && got < n || i >= 2 && got > 20 {
			t.Errorf("packet %d, of %d bytes, costs %d", i, n, got)
		}
	}
	if s := p.ends[0].Merger.Stats(); s.Verbatim != 6 || s.Packets != 6 {
		t.Errorf("%d packets as they are of %d", s.Verbatim, s.Packets)
	}
}
