package aggregate

import (
	"time"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers/builtin"
)

// A tester is a testing.T, a testing.F or a rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// A pair is the two ends of a lane, joined without delay, or late: then frames are
// on their way until deliver is called, and cross those of the other direction.
type pair struct {
	t     tester
	ends  [2]*Lane
	sent  [2][][]byte // packets that wait, by direction
	way   [2][]transit
	late  bool
	long  bool          // frames may be longer than their packets by more than the bound
	frame []byte        // the last that was delivered
	now   time.Duration // of the last flush
	bytes [2]int        // of frames
	count [2]int        // of frames that were delivered
}

// A transit is a frame on its way.
type transit struct {
	frame   []byte
	packets [][]byte
}

func newPair(t tester, cfg Config) *pair {
	t.Helper()
	p := &pair{t: t}
	if cfg.Registry == nil {
		cfg.Registry = builtin.Registry()
	}
	for i := range p.ends {
		var err error
		if p.ends[i], err = NewLane(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// newMerger returns that of a lane whose other end is not there.
func newMerger(t tester, cfg Config) *Merger {
	t.Helper()
	return &newPair(t, cfg).ends[0].Merger
}

// add gives a packet to a Merger.
func add(t tester, m *Merger, now time.Duration, packet []byte) {
	t.Helper()
	if err := m.Add(now, packet); err != nil {
		t.Fatalf("%d bytes: %v", len(packet), err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// add gives a packet to the merger of end d.
func (p *pair) add(d int, now time.Duration, packet []byte) {
	p.t.Helper()
	if err := p.ends[d].Merger.Add(now, packet); err != nil {
		p.t.Fatalf("%d bytes: %v", len(packet), err)
	}
	p.sent[d] = append(p.sent[d], append([]byte(nil), packet...))
}

// flush carries what waits at end d over, or sets it on its way.
func (p *pair) flush(d int, now time.Duration) {
	p.t.Helper()
	p.now = now
	frame := p.ends[d].Merger.Flush(nil, now, FlushEnd)
	if len(p.sent[d]) == 0 {
		if len(frame) != 0 {
			p.t.Fatalf("a frame of %d bytes for no packets", len(frame))
		}
		return
	}
	p.way[d] = append(p.way[d], transit{frame, p.sent[d]})
	p.sent[d] = nil
	if !p.late {
		p.deliver(d)
	}
}

// deliver has the oldest frame that is on its way from end d arrive and checks that
// all comes out as it went in: the same packets and, within a flow, in the same
// order.
func (p *pair) deliver(d int) {
	p.t.Helper()
	if len(p.way[d]) == 0 {
		return
	}
	frame, packets := p.way[d][0].frame, p.way[d][0].packets
	p.way[d] = p.way[d][1:]
	p.frame = frame
	got, n, err := p.ends[1-d].Expander.Expand(frame)
	if err != nil {
		p.t.Fatalf("frame %d of direction %d: %v", p.count[d]+1, d, err)
	}
	if n != len(frame) {
		p.t.Fatalf("frame of %d bytes, %d taken", len(frame), n)
	}
	most := frameOverhead
	for _, b := range packets {
		most += len(b) + packetOverhead
	}
	if n > most && !p.long {
		p.t.Fatalf("a frame of %d bytes for %d packets of %d bytes", n, len(packets), most-frameOverhead-packetOverhead*len(packets))
	}
	p.bytes[d] += n
	p.count[d]++
	if !p.late {
		p.same(d)
	}
	if len(got) != len(packets) {
		p.t.Fatalf("%d packets sent, %d rebuilt", len(packets), len(got))
	}
	want := map[string][]string{}
	for _, b := range packets {
		want[flowName(b)] = append(want[flowName(b)], string(b))
	}
	for _, b := range got {
		q := want[flowName(b)]
		if len(q) == 0 || q[0] != string(b) {
			p.t.Fatalf("flow %x: rebuilt %x, expected first of %x", flowName(b), b, q)
		}
		want[flowName(b)] = q[1:]
	}
}

// settle has all that waits arrive, and compares what the ends remember then.
func (p *pair) settle(now time.Duration) {
	p.t.Helper()
	for d := range p.ends {
		p.flush(d, now)
		for len(p.way[d]) > 0 {
			p.deliver(d)
		}
	}
	for d := range p.ends {
		p.report(d)
	}
}

// report carries a frame without packets over: from then on the reader knows what
// the writer of direction d has rebuilt.
func (p *pair) report(d int) {
	p.t.Helper()
	m := &p.ends[d].Merger
	if _, _, err := p.ends[1-d].Expander.Expand(m.Report(nil, p.now)); err != nil {
		p.t.Fatalf("a report of direction %d: %v", d, err)
	}
	p.compare(d, true)
}

// run adds a packet and flushes when that is due.
func (p *pair) run(d int, now time.Duration, packet []byte) {
	p.t.Helper()
	p.due(now)
	p.add(d, now, packet)
	p.due(now)
}

func (p *pair) due(now time.Duration) {
	p.t.Helper()
	for d := range p.ends {
		if at, _, ok := p.ends[d].Merger.Deadline(); ok && at <= now {
			p.flush(d, at)
		}
	}
}

// flowName is the same for packets whose order matters: those that can be told
// to be of one flow.
func flowName(b []byte) string {
	switch {
	case len(b) >= 24 && b[0]>>4 == 4:
		return string(b[9:10]) + string(b[12:24])
	case len(b) >= 44 && b[0]>>4 == 6:
		return string(b[6:7]) + string(b[8:44])
	}
	return ""
}

// A segment is what tests make packets of.
type segment = codectest.Segment

// same checks that the two ends of direction d remember the same: with every frame
// where there is little, else as often as it takes about as long as the rest. A drift
// does not go away again before what drifted gives way.
func (p *pair) same(d int) {
	p.t.Helper()
	if p.count[d]%(1+codectest.Size(p.ends[d].Merger.encoder)/64) == 0 {
		p.compare(d, p.count[d]%16 == 0)
	}
}

// compare checks that they do, down to the models or without them.
func (p *pair) compare(d int, models bool) {
	p.t.Helper()
	if at := codectest.Differ(p.ends[d].Merger.encoder, p.ends[1-d].Expander.decoder, models); at != "" {
		p.t.Fatalf("the ends drift apart with frame %d of direction %d: %s", p.count[d], d, at)
	}
}

// small are limits under which every table that both ends share has n places, so
// that it is full at once, evicts, and meets again what it evicted. A frame has room
// for as many packets: with less for their bytes it would be full with the first.
func small(n int) wire.Limits {
	return wire.Limits{Flows: uint32(n), Templates: uint32(n), Bodies: uint32(60 * n), Packets: uint32(n), Bytes: 2 * wire.MaxPacket}
}

// newReader returns the reading end of a lane that holds to smaller limits than two
// ends may agree on.
func newReader(limits wire.Limits) *Expander {
	l := &Lane{}
	cfg := Config{Limits: limits}.withDefaults()
	enc, dec := codec.New(codec.Config{Similarity: cfg.Similarity, Limits: limits})
	l.Merger.init(cfg, enc)
	l.Expander = Expander{decoder: dec, merger: &l.Merger}
	return &l.Expander
}
