package codec

import (
	"bytes"
	"slices"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
)

const ms = time.Millisecond

// A tester is a testing.T, a testing.F or a rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// An exchange is two gateways, and packets that go from each to the other. Packets
// wait until flush, which makes a frame of them; a frame arrives at once or, late, once
// deliver is called, so that frames cross. What arrives is compared with what went in,
// and what the two ends remember with each other.
type exchange struct {
	t        tester
	gateways [2]*gateway
	registry *parsers.Registry
	now      time.Duration // of the frames to come
	late     bool
	way      [2][]*frame // under way, by direction: 0 is from gateway 0 to gateway 1
	last     [2]*frame   // the newest that was written
	count    [2]int      // of frames that arrived
	bytes    [2]int      // of all that were written, control fields and literals
}

// A frame is what an Encoder made, and what it was made of.
type frame struct {
	Result
	groups  []Group // as Encode left them
	packets [][]byte
	digest  wire.Digest
}

// size returns the bytes of a frame.
func (f *frame) size() int { return len(f.Control) + len(f.Literals) }

// newExchange returns two gateways that know nothing yet. Limits left out are the
// default ones, and similarity all of it.
func newExchange(t tester, cfg Config) *exchange {
	if cfg.Limits == (wire.Limits{}) {
		cfg.Limits = wire.DefaultLimits
	}
	if cfg.Similarity == 0 {
		cfg.Similarity = ByAll
	}
	x := &exchange{t: t, registry: builtin.Registry()}
	for i := range x.gateways {
		g := &gateway{limits: cfg.Limits, flows: map[parsers.FlowKey]*testFlow{}}
		g.seal, _ = cfg.Sealer.(*fakeSealer)
		g.enc, g.dec = New(cfg)
		g.clear()
		x.gateways[i] = g
	}
	return x
}

// encoder and decoder return the two ends of a direction.
func (x *exchange) encoder(d int) *Encoder { return x.gateways[d].enc }
func (x *exchange) decoder(d int) *Decoder { return x.gateways[1-d].dec }

// add has a packet wait at gateway d. A frame that has no room for it goes before it.
func (x *exchange) add(d int, packet []byte) { x.addSpans(d, packet, nil) }

// addSpans is add for a payload that a test takes apart by itself: nil leaves it to the
// scanners. Spans are about the bytes without a mask.
func (x *exchange) addSpans(d int, packet []byte, spans []parsers.Span) {
	x.t.Helper()
	g := x.gateways[d]
	if l := &g.limits; len(g.packets) >= int(l.Packets) || g.inFrame >= int(l.Flows) || g.bytes+len(packet) > int(l.Bytes) {
		x.flush(d)
	}
	if len(g.packets) == 0 {
		g.since = x.now
	}
	packet = bytes.Clone(packet)
	g.packets = append(g.packets, packet)
	g.bytes += len(packet)
	if f := g.admit(packet, spans, x.registry); f != nil {
		f.crc = g.digest.Add(f.crc, packet)
		return
	}
	g.digest.AddVerbatim(packet)
	g.groups = append(g.groups, Group{Kind: Verbatim, Spans: []Span{{
		Body: packet, Advice: Advice{Key: uint64(len(packet))},
	}}})
	g.barrier = len(g.groups)
}

// flush makes a frame of what waits at gateway d, if anything does.
func (x *exchange) flush(d int) {
	x.t.Helper()
	if len(x.gateways[d].packets) > 0 {
		x.write(d)
	}
}

// report makes a frame also where nothing waits: it says what has arrived.
func (x *exchange) report(d int) {
	x.t.Helper()
	x.write(d)
}

func (x *exchange) write(d int) {
	x.t.Helper()
	g := x.gateways[d]
	f := &frame{groups: g.groups, packets: g.packets, digest: g.digest}
	f.Result = g.enc.Encode(Frame{Now: x.now, Groups: g.groups, Reuse: g.reuse()}, nil, nil)
	g.clear()
	x.last[d] = f
	x.bytes[d] += f.size()
	x.way[d] = append(x.way[d], f)
	if !x.late {
		x.deliver(d)
	}
}

// send carries packets over in one frame, which it returns.
func (x *exchange) send(d int, packets ...[]byte) *frame {
	x.t.Helper()
	for _, b := range packets {
		x.add(d, b)
	}
	x.flush(d)
	return x.last[d]
}

// run adds a packet that comes at a moment, before which what waited for 5 ms goes.
func (x *exchange) run(d int, now time.Duration, packet []byte) {
	x.t.Helper()
	x.now = now
	for d, g := range x.gateways {
		if now-g.since >= 5*ms {
			x.flush(d)
		}
	}
	x.add(d, packet)
}

// deliver has the oldest frame arrive that is under way from gateway d, if any is.
func (x *exchange) deliver(d int) {
	x.t.Helper()
	if len(x.way[d]) == 0 {
		return
	}
	f := x.way[d][0]
	x.way[d] = x.way[d][1:]
	x.count[d]++
	there := x.gateways[1-d]
	got, err := there.dec.Decode(f.Control, f.Literals)
	if err != nil {
		x.t.Fatalf("frame %d of direction %d: %v", x.count[d], d, err)
	}
	if got.Digest != f.digest {
		x.t.Fatalf("frame %d of direction %d: digest %08x, expected %08x", x.count[d], d, got.Digest, f.digest)
	}
	x.same(f.packets, got)
	for n := range there.enc.Learned(there.dec) {
		if f := there.flows[n.Key.Reverse()]; f != nil {
			there.enc.Pair(&f.Flow, n)
		} else {
			there.enc.Unpaired(n)
		}
	}
	if !x.late {
		x.compare(d)
	}
}

// same checks that the packets came out that went in, each flow's in their order.
func (x *exchange) same(packets [][]byte, got Rebuilt) {
	x.t.Helper()
	if len(got.Ends) != len(packets) {
		x.t.Fatalf("%d packets sent, %d rebuilt", len(packets), len(got.Ends))
	}
	want := map[string][][]byte{}
	for _, b := range packets {
		want[flowName(b)] = append(want[flowName(b)], b)
	}
	start := 0
	for _, end := range got.Ends {
		b := got.Packets[start:end]
		start = end
		q := want[flowName(b)]
		if len(q) == 0 || !bytes.Equal(q[0], b) {
			x.t.Fatalf("flow %x: rebuilt %x, expected first of %x", flowName(b), b, q)
		}
		want[flowName(b)] = q[1:]
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

// compare checks that both ends of direction d remember the same. That is so whenever
// the newest frame has arrived, and its writer has taken in none since.
func (x *exchange) compare(d int) {
	x.t.Helper()
	if at := codectest.Differ(x.encoder(d), x.decoder(d), true); at != "" {
		x.t.Fatalf("the ends drift apart with frame %d of direction %d: %s", x.count[d], d, at)
	}
}

// settle has all that waits arrive, tells both gateways so, and compares what all four
// ends remember then.
func (x *exchange) settle() {
	x.t.Helper()
	for d := range x.gateways {
		x.flush(d)
		for len(x.way[d]) > 0 {
			x.deliver(d)
		}
	}
	for d := range x.gateways {
		x.report(d)
		for len(x.way[d]) > 0 {
			x.deliver(d)
		}
		x.compare(d)
	}
}

// small are limits under which every table that both ends have has n places, so that
// it is full at once, evicts, and meets again what it evicted.
func small(n int) wire.Limits {
	return wire.Limits{Flows: uint32(n), Templates: uint32(n), Bodies: uint32(60 * n), Packets: uint32(n), Bytes: 2 * wire.MaxPacket}
}

// context returns what both ends of direction d know of the flow that a packet is of.
func (x *exchange) context(d int, packet []byte) *context {
	x.t.Helper()
	var seg parsers.Segment
	if err := x.gateways[d].parser.Decode(bytes.Clone(packet), &seg); err != nil {
		x.t.Fatal(err)
	}
	i := slices.IndexFunc(x.encoder(d).contexts, func(f *context) bool { return f != nil && f.key == seg.Key })
	if i < 0 {
		x.t.Fatalf("no context for %x", packet)
	}
	return x.encoder(d).contexts[i]
}
