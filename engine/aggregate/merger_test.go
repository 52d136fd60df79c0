package aggregate

import (
	"fmt"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers/builtin"
)

const ms = time.Millisecond

// A moment is a packet at a time, or only a time.
type moment struct {
	at time.Duration
	segment
}

func ack(client int, seq uint32) segment {
	return segment{Client: client, Flags: 0x10, Seq: 1, Ack: seq, Window: 5}
}

func data(client int, body string) segment {
	return segment{Client: client, Flags: 0x18, Seq: uint32(len(body)), Payload: codectest.Publish("t/"+body, body, 0)}
}

func TestDeadline(t *testing.T) {
	flag := func(f uint8) segment { return segment{Client: 1, Flags: f} }
	mqtt := func(b ...byte) segment { return segment{Client: 1, Flags: 0x18, Payload: b} }
	tests := []struct {
		name  string
		in    []moment
		cfg   Config
		at    time.Duration
		why   Reason
		quiet bool // nothing is due
	}{
		{name: "nothing", quiet: true},
		{name: "data waits for the window", in: []moment{{10 * ms, data(1, "a")}}, at: 15 * ms, why: FlushWindow},
		{name: "from the first segment on", in: []moment{{10 * ms, data(1, "a")}, {13 * ms, data(2, "b")}}, at: 15 * ms, why: FlushWindow},
		{name: "a window of its own", in: []moment{{10 * ms, data(1, "a")}}, cfg: Config{Window: 70 * ms}, at: 80 * ms, why: FlushWindow},
		{name: "no window", in: []moment{{10 * ms, data(1, "a")}}, cfg: Config{Window: -1}, at: 10 * ms, why: FlushWindow},
		{name: "a burst ends with quiet", in: []moment{{10 * ms, data(1, "a")}, {10 * ms, data(2, "a")}}, at: 11 * ms, why: FlushQuiet},
		{name: "a burst goes on", in: []moment{{10 * ms, data(1, "a")}, {10 * ms, data(2, "a")}, {10*ms + 500*time.Microsecond, data(3, "a")}}, at: 11*ms + 500*time.Microsecond, why: FlushQuiet},
		{name: "acknowledgements wait longer", in: []moment{{10 * ms, ack(1, 5)}}, at: 35 * ms, why: FlushAck},
		{name: "and ride with data", in: []moment{{10 * ms, ack(1, 5)}, {12 * ms, data(2, "a")}}, at: 17 * ms, why: FlushWindow},
		{name: "but not of a busy flow", in: []moment{{10 * ms, ack(1, 1)}, {10 * ms, ack(1, 2)}, {11 * ms, ack(1, 3)}, {12 * ms, ack(1, 4)}}, at: 17 * ms, why: FlushWindow},
		{name: "nor what is for whole segments", in: []moment{{10 * ms, ack(1, 1)}, {12 * ms, ack(1, 2897)}}, at: 17 * ms, why: FlushWindow},
		{name: "PUBACK is one", in: []moment{{10 * ms, mqtt(0x40, 2, 0, 9)}}, at: 35 * ms, why: FlushAck},
		{name: "a SYN goes at once", in: []moment{{10 * ms, data(2, "a")}, {12 * ms, flag(flagSYN)}}, at: 12 * ms, why: FlushUrgent},
		{name: "a FIN", in: []moment{{12 * ms, flag(flagFIN | 0x10)}}, at: 12 * ms, why: FlushUrgent},
		{name: "a RST", in: []moment{{12 * ms, flag(flagRST)}}, at: 12 * ms, why: FlushUrgent},
		{name: "a PINGREQ", in: []moment{{12 * ms, mqtt(0xc0, 0)}}, at: 12 * ms, why: FlushUrgent},
		{name: "a CONNECT", in: []moment{{12 * ms, mqtt(0x10, 12, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 0)}}, at: 12 * ms, why: FlushUrgent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Registry = builtin.Registry()
			l, err := NewLane(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			m := &l.Merger
			for _, in := range tt.in {
				m.Add(in.at, in.Packet())
			}
			at, why, ok := m.Deadline()
			if ok == tt.quiet || ok && (at != tt.at || why != tt.why) {
				t.Errorf("due %v at %v for %v, expected at %v for %v", ok, at, why, tt.at, tt.why)
			}
		})
	}
	t.Run("ICMP", func(t *testing.T) {
		l, _ := NewLane(Config{Registry: builtin.Registry()})
		l.Merger.Add(3*ms, codectest.ICMP())
		if at, why, _ := l.Merger.Deadline(); at != 3*ms || why != FlushUrgent {
			t.Errorf("a ping is due at %v for %v", at, why)
		}
	})
}

// The first of many connects goes at once. The others share frames, the further
// apart the longer the burst, up to half of the window; after it one goes at once
// again.
func TestConnectsShareFrames(t *testing.T) {
	l, _ := NewLane(Config{Registry: builtin.Registry()})
	m := &l.Merger
	client := 0
	connect := func(now time.Duration) time.Duration {
		client++
		m.Add(now, segment{Client: client, Flags: flagSYN}.Packet())
		at, why, _ := m.Deadline()
		if why != FlushUrgent {
			t.Fatalf("a connect at %v is due for %v", now, why)
		}
		return at
	}
	const us = time.Microsecond
	now := 10 * ms
	for i, wait := range []time.Duration{0, 1000 * us, 2000 * us, 2500 * us, 2500 * us} {
		due := connect(now)
		if due != now+max(wait-us, 0) {
			t.Errorf("connect %d of a burst waits %v, expected %v", i, due-now, wait-us)
		}
		m.Flush(nil, due, FlushUrgent)
		now = due + us
	}
	for range 2 { // the interval is that of a first one again
		now += 20 * ms
		if due := connect(now); due != now {
			t.Errorf("after a pause one waits %v", due-now)
		}
		m.Flush(nil, now, FlushUrgent)
		if due := connect(now + us); due != now+ms {
			t.Errorf("the next one waits %v", due-now-us)
		}
		m.Flush(nil, now+ms, FlushUrgent)
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

// A segment like no other waits for a window, until that was in vain often enough;
// the first that would have shared a frame ends that.
func TestSingletons(t *testing.T) {
	l, _ := NewLane(Config{Registry: builtin.Registry()})
	m := &l.Merger
	now := time.Duration(0)
	n := 0
	send := func(after, want time.Duration) {
		t.Helper()
		now += after
		n++
		m.Add(now, data(1, fmt.Sprint("reading ", n)).Packet())
		at, why, _ := m.Deadline()
		if at != now+want {
			t.Errorf("segment %d is due after %v for %v, expected %v", n, at-now, why, want)
		}
		m.Flush(nil, at, why)
	}
	for range idleAfter {
		send(100*ms, 5*ms)
	}
	for range 5 {
		send(100*ms, ms)
	}
	send(4*ms, 5*ms)
	for range idleAfter - 1 {
		send(100*ms, 5*ms)
	}
	send(100*ms, ms)
	// two of them share a frame
	now += 100 * ms
	m.Add(now, data(1, "x").Packet())
	m.Add(now, data(2, "y").Packet())
	if at, why, _ := m.Deadline(); at != now+5*ms || why != FlushWindow {
		t.Errorf("two are due after %v for %v", at-now, why)
	}
	m.Flush(nil, now+5*ms, FlushWindow)
	send(100*ms, 5*ms)
}

// A segment like no other goes with a known set that is complete.
func TestSingletonBesideASet(t *testing.T) {
	p, f := knownSet(t)
	m := &p.ends[1].Merger
	n := 0
	f.Send(func(int) []byte { return codectest.Publish("t", body(f.Round), 0) }, func(d int, now time.Duration, b []byte) {
		if d == 0 {
			return
		}
		if n++; n == 5 {
			m.Add(now, data(77, "something else").Packet())
		}
		m.Add(now, b)
		if at, why, _ := m.Deadline(); (at == now && why == FlushComplete) != (n == 10) {
			t.Errorf("after %d of 10 and another: due after %v for %v", n, at-now, why)
		}
	})
}

// Where half of a known set has come, or has acknowledged, the others are not
// waited for long.
func TestHalfOfASet(t *testing.T) {
	for d, what := range []string{"acknowledgements", "copies"} {
		t.Run(what, func(t *testing.T) { testHalf(t, d) })
	}
}

func testHalf(t *testing.T, way int) {
	p, f := knownSet(t)
	m := &p.ends[way].Merger
	n := 0
	f.Send(func(int) []byte { return codectest.Publish("t", body(f.Round), 0) }, func(d int, now time.Duration, b []byte) {
		if d != way {
			if way == 0 { // what is acknowledged has to arrive
				p.run(d, now, b)
			}
			return
		}
		n++
		m.Add(now, b)
		want := now + 2*ms
		switch {
		case n < 5:
			want = 0 // not for quiet
		case n == 10:
			want = now
		}
		if at, why, _ := m.Deadline(); (why == FlushQuiet || why == FlushComplete) != (want != 0) || want != 0 && at != want {
			t.Errorf("after %d of 10: due at %v for %v", n, at-now, why)
		}
	})
	if n != 10 {
		t.Errorf("%d came", n)
	}
}

func TestFull(t *testing.T) {
	p := newPair(t, Config{})
	s := segment{Client: 1, Flags: 0x18}
	n := 0
	for ; ; n++ {
		s.Payload = []byte(fmt.Sprintf("%1400d", n*n*7919))
		p.add(0, 0, s.Packet())
		s.Seq += 1400
		if _, why, _ := p.ends[0].Merger.Deadline(); why == FlushFull {
			break
		}
	}
	if n*1400 > maxStore {
		t.Errorf("%d bytes before the frame was full", n*1400)
	}
	p.flush(0, 0)
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

func TestStatsAddUp(t *testing.T) {
	p := newPair(t, Config{})
	f := codectest.NewFanout(20)
	for range 30 {
		f.Send(func(i int) []byte { return codectest.Publish(fmt.Sprint("t/", i%4), body(f.Round), i%2) }, p.run)
	}
	p.add(1, f.Now, []byte{0x45, 1, 2})
	p.flush(1, f.Now)
	p.due(time.Hour)
	for d := range p.ends {
		s := p.ends[d].Merger.Stats()
		in, out := uint64(0), 0.0
		for i := range NumParts {
			in += s.In[i]
			out += s.Out[i]
		}
		if in != s.BytesIn {
			t.Errorf("direction %d: parts of %d bytes in, %d in all", d, in, s.BytesIn)
		}
		// each control field ends with a byte that is not full
		if diff := float64(s.BytesFrames) - out; diff < -1 || diff > 1.5*float64(s.Frames) {
			t.Errorf("direction %d: parts of %.1f bytes out, %d in all, %d frames", d, out, s.BytesFrames, s.Frames)
		}
	}
	var messages uint64
	for k, e := range p.ends[1].Merger.Stats().Messages {
		if k.Event != "" {
			messages += e.Messages
		}
	}
	if messages != 600 {
		t.Errorf("%d messages counted, 600 sent", messages)
	}
}
