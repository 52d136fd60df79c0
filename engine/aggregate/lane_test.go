package aggregate

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

func body(round int) string {
	return fmt.Sprintf(`{"seq":%d,"ts":%d,"temp":%d.%02d,"state":"RUN"}`, round, 1795986473880+50*round, 20+round%7, round*13%100)
}

// What the design promises for the plainest case: a message to all of a hundred
// subscribers, and their acknowledgements, are a frame each of a few bytes.
func TestFanoutCostsLittle(t *testing.T) {
	p := newPair(t, Config{})
	f := codectest.NewFanout(100)
	step := func() {
		f.Send(func(int) []byte { return codectest.Publish("plant/4/alarms", body(f.Round), 0) }, p.run)
		p.due(f.Now + 40*time.Millisecond)
	}
	for range 20 {
		step()
	}
	b, n := p.bytes, p.count
	const rounds = 100
	for range rounds {
		step()
	}
	if got := p.count[1] - n[1]; got != rounds {
		t.Errorf("%d frames down for %d messages", got, rounds)
	}
	if got := p.count[0] - n[0]; got != rounds {
		t.Errorf("%d frames up for %d rounds of acknowledgements", got, rounds)
	}
	if got := float64(p.bytes[1]-b[1]) / rounds; got > 16 {
		t.Errorf("%.1f bytes down for a message to 100", got)
	}
	if got := float64(p.bytes[0]-b[0]) / rounds; got > 10 {
		t.Errorf("%.1f bytes up for 100 acknowledgements", got)
	}
}

// Packet identifiers that differ from subscriber to subscriber cost nothing
// once each flow's counter is known.
func TestHolesArePredicted(t *testing.T) {
	p := newPair(t, Config{})
	f := codectest.NewFanout(50)
	step := func() {
		f.Send(func(i int) []byte { return codectest.Publish("a/b", body(f.Round), 1+i*11+f.Round) }, p.run)
		p.due(f.Now + 40*time.Millisecond)
	}
	for range 10 {
		step()
	}
	before := p.bytes[1]
	for range 20 {
		step()
	}
	if got := float64(p.bytes[1]-before) / 20; got > 16 {
		t.Errorf("%.1f bytes for a message to 50 with identifiers of their own", got)
	}
}

func TestSameInputSameFrames(t *testing.T) {
	run := func() []byte {
		p := newPair(t, Config{})
		var all []byte
		f := codectest.NewFanout(30)
		for range 30 {
			f.Send(func(i int) []byte { return codectest.Publish(fmt.Sprint("t/", i%3), body(f.Round), i) }, func(d int, now time.Duration, b []byte) {
				p.run(d, now, b)
				all = append(all, p.frame...)
			})
		}
		return all
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two runs gave different frames")
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	message := func(round int) []byte { return codectest.Publish("plant/4/alarms", body(round), 5+round) }
	t.Run("MQTT", func(t *testing.T) {
		steady(t, func(_, round int) []byte { return message(round) })
	})
	t.Run("masked WebSocket", func(t *testing.T) {
		steady(t, func(i, round int) []byte { return frame(uint32(i*7919+round)*0x9e3779b1|1, message(round)) })
	})
}

// steady holds that carrying what payload makes for each subscriber allocates
// nothing in the end.
func steady(t *testing.T, payload func(i, round int) []byte) {
	t.Helper()
	p := newPair(t, Config{})
	f := codectest.NewFanout(64)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector's own are not ours
	var packets [2][][]byte
	round := func() {
		for d := range packets {
			packets[d] = packets[d][:0]
		}
		f.Send(func(i int) []byte { return payload(i, f.Round) },
			func(d int, _ time.Duration, b []byte) { packets[d] = append(packets[d], b) })
	}
	var frame []byte
	carry := func() {
		for d := range packets {
			for _, b := range packets[d] {
				p.ends[d].Merger.Add(f.Now, b)
			}
			frame = p.ends[d].Merger.Flush(frame[:0], f.Now, FlushEnd)
			if _, _, err := p.ends[1-d].Expander.Expand(frame); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 200 {
		round()
		carry()
	}
	var before, after runtime.MemStats
	total := uint64(0)
	for range 50 {
		round()
		runtime.ReadMemStats(&before)
		carry()
		runtime.ReadMemStats(&after)
		total += after.Mallocs - before.Mallocs
	}
	if total > 2 { // the runtime's own
		t.Errorf("%d allocations in 50 frames each way", total)
	}
}

// A flow costs at most 1 KiB in a gateway, its two directions together.
func TestMemoryPerFlow(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 flows take a second or two: not with -short")
	}
	const n = 100_000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p := newPair(t, Config{})
	before := heap()
	for i := range n {
		now := time.Duration(i) * 10 * time.Microsecond
		s := segment{Client: i % 65536, Port: i / 65536, Down: true, Flags: 0x18, Window: 64, Seq: uint32(i), Ack: 7, TSval: uint32(i + 1), Payload: codectest.Publish("a", "b", 0)}
		p.run(1, now, s.Packet())
		a := segment{Client: s.Client, Port: s.Port, Flags: 0x10, Window: 64, Seq: 7, Ack: uint32(i) + uint32(len(s.Payload)), TSval: 9, TSecr: s.TSval}
		p.run(0, now, a.Packet())
	}
	p.due(time.Hour)
	// both gateways' memory together, and two directions of each flow
	if per := float64(heap()-before) / n / 2; per > 1024 {
		t.Errorf("%.0f bytes for a flow in a gateway", per)
	} else {
		t.Logf("%.0f bytes for a flow in a gateway", per)
	}
	runtime.KeepAlive(p)
}

// Every set of criteria rebuilds exactly, and more criteria cost fewer bytes.
func TestSimilarity(t *testing.T) {
	cost := func(by Similarity) (int, *Stats) {
		p := newPair(t, Config{Similarity: by})
		f := codectest.NewFanout(8)
		for range 40 {
			f.Send(func(i int) []byte { return codectest.Publish(fmt.Sprint("dev/", i), body(f.Round*3+i), 0) }, p.run)
			p.due(f.Now + 40*time.Millisecond)
		}
		return p.bytes[1], p.ends[1].Merger.Stats()
	}
	nothing, _ := cost(ByNothing)
	for by, hit := range map[Similarity]Hit{ByEvent: HitEvent, ByName: HitName, ByLength: HitLength, ByContent: HitContent, ByAll: HitNameLength, ByName | ByLength: HitNameLength} {
		got, stats := cost(by)
		if got >= nothing {
			t.Errorf("criteria %b: %d bytes, %d without any", by, got, nothing)
		}
		if stats.Hits[hit] == 0 {
			t.Errorf("criteria %b: no hits by %v: %v", by, hit, stats.Hits)
		}
	}
}

// Bodies that end up as literals, after others were considered, leave nothing
// behind: large ones, unlike their template, between small ones that are alike.
func TestUnlikeBodies(t *testing.T) {
	p := newPair(t, Config{})
	s := segment{Client: 1, Flags: 0x18, Window: 5}
	for i := range 300 {
		text := body(i)
		if i%3 != 0 {
			noise := make([]byte, 90+i*7%900)
			for k := range noise {
				noise[k] = byte('!' + (i*131+k*k*(i+7))%90)
			}
			text = string(noise)
		}
		s.Payload = codectest.Publish("t/"+fmt.Sprint(i%2), text, i)
		p.run(0, time.Duration(i)*time.Millisecond, s.Packet())
		s.Seq += uint32(len(s.Payload))
	}
	p.due(time.Hour)
}

// Where nothing goes back by itself, a report tells how far the peer has come.
func TestReport(t *testing.T) {
	p := newPair(t, Config{})
	s := segment{Client: 1, Flags: 0x18, Window: 5, Payload: []byte("abc")}
	for range 5 {
		p.add(0, 0, s.Packet())
		p.flush(0, 0)
		s.Seq += 3
	}
	if got := p.ends[0].Outstanding(); got != 5 {
		t.Errorf("%d frames outstanding", got)
	}
	if got := p.ends[1].Merger.Unreported(); got != 5 {
		t.Errorf("%d frames unreported", got)
	}
	frame := p.ends[1].Merger.Report(nil, 0)
	packets, n, err := p.ends[0].Expander.Expand(frame)
	if len(packets) != 0 || n != len(frame) || err != nil {
		t.Fatalf("%d packets, %d of %d bytes, %v", len(packets), n, len(frame), err)
	}
	if len(frame) > 8 {
		t.Errorf("a report of %d bytes", len(frame))
	}
	if got := p.ends[0].Outstanding(); got != 0 {
		t.Errorf("%d frames outstanding after the report", got)
	}
	if got := p.ends[1].Merger.Unreported(); got != 0 {
		t.Errorf("%d frames unreported after the report", got)
	}
	p.add(0, 0, s.Packet())
	p.flush(0, 0)
}

// The offsets of timestamps, guessed while many flows opened in one frame, are
// put right in a few rounds: what is left is where the clock ticks.
func TestTimestampsAreAligned(t *testing.T) {
	p := newPair(t, Config{})
	f := codectest.NewFanout(60)
	for i := range f.Flows { // opened over 9 ms, in one frame
		s := f.Flows[i]
		p.add(1, 0, segment{Client: s.Client, Port: s.Port, Down: true, Flags: 0x12, Seq: s.Seq - 1, Ack: s.Ack, TSval: s.TSval + uint32(i*7%10), TSecr: 1}.Packet())
	}
	p.flush(1, 9*time.Millisecond)
	cost := func(rounds int) float64 {
		before := p.bytes[1]
		for range rounds {
			f.Send(func(int) []byte { return codectest.Publish("plant/4/alarms", body(f.Round), 0) }, p.run)
			p.due(f.Now + 40*time.Millisecond)
		}
		return float64(p.bytes[1]-before) / float64(rounds)
	}
	first := cost(8)
	cost(12)
	if last := cost(20); last > 16 || last > first/2 {
		t.Errorf("%.1f bytes for a message to 60 at last, %.1f at first", last, first)
	} else {
		t.Logf("%.1f bytes for a message to 60 at last, %.1f at first", last, first)
	}
}

// Traffic in one direction only: nobody says what was rebuilt, and what is kept to
// refer to is bounded. When the other direction comes up, it works.
func TestOneDirection(t *testing.T) {
	limits := small(8) // frames of 8 packets, of which four are kept
	p := newPair(t, Config{Limits: limits})
	s := segment{Client: 1, Flags: 0x18, Window: 5, Payload: []byte("abc")}
	for i := range 200 {
		s.Seq += 3
		p.add(0, 0, s.Packet())
		if i%4 == 3 {
			p.flush(0, 0)
		}
	}
	for range 3 {
		s.Seq += 3
		p.add(0, 0, s.Packet())
		p.flush(0, 0)
		a := segment{Client: 1, Down: true, Flags: 0x10, Window: 5, Ack: s.Seq + 3}
		p.add(1, 0, a.Packet())
		p.flush(1, 0)
	}
	p.settle(0)
}

// Both gateways meet a conversation in its middle at the same time, so that neither
// context names the other. The pair is found when the frames have crossed, and told:
// from then on each direction is predicted by the other, as if it had been known.
func TestCrossingContextsArePaired(t *testing.T) {
	cost := func(cross bool) int {
		p := newPair(t, Config{})
		p.late = cross
		up := segment{Client: 3, Flags: 0x18, Window: 9, Seq: 100, Ack: 5000, TSval: 1, TSecr: 1, Payload: []byte("up")}
		down := segment{Client: 3, Down: true, Flags: 0x18, Window: 9, Seq: 5000, Ack: 100, TSval: 1, TSecr: 1, Payload: []byte("down")}
		p.add(0, 0, up.Packet())
		p.flush(0, 0)
		p.add(1, 0, down.Packet())
		p.flush(1, 0)
		p.deliver(0)
		p.deliver(1)
		p.late = false
		before := 0
		for i := range 12 {
			if i == 2 { // the pair was told
				before = p.bytes[0] + p.bytes[1]
			}
			up.Seq += 2
			up.Ack, up.TSecr, up.TSval = down.Seq+4, down.TSval, up.TSval+uint32(7919*i)
			p.add(0, 0, up.Packet())
			p.flush(0, 0)
			down.Seq += 4
			down.Ack, down.TSecr, down.TSval = up.Seq+2, up.TSval, down.TSval+uint32(104729*i)
			p.add(1, 0, down.Packet())
			p.flush(1, 0)
		}
		p.settle(0)
		return p.bytes[0] + p.bytes[1] - before
	}
	if crossed, known := cost(true), cost(false); crossed > known+4 {
		t.Errorf("%d bytes where contexts crossed, %d where one named the other", crossed, known)
	}
}

// A flow of the peer's that is new, whose other direction is announced later, is found.
func TestLaterContextNamesItsOtherDirection(t *testing.T) {
	cost := func(known bool) int {
		p := newPair(t, Config{})
		for client := range 2 { // of which one is the newest
			p.add(0, 0, ack(client, 5).Packet())
		}
		if known {
			p.add(0, 0, ack(9, 5).Packet())
		}
		p.flush(0, 0)
		p.add(1, 0, segment{Client: 9, Port: 0, Down: true, Flags: 0x10, Seq: 5, Ack: 1, Window: 5}.Packet())
		p.flush(1, 0)
		return p.bytes[1]
	}
	if known, unknown := cost(true), cost(false); known > unknown-4 {
		t.Errorf("%d bytes for a context whose other direction is known, %d else", known, unknown)
	}
}

// What nobody knows the protocol of is compared by content: sensors each with what they
// sent before, and the copies of a message with one another, also where each has a
// number of its own.
func TestUnknownProtocolsAreComparedByContent(t *testing.T) {
	const flows, rounds = 20, 12
	for _, tt := range []struct {
		name    string
		payload func(flow, round int) string
	}{
		{"sensors", func(flow, round int) string {
			id := uint32(flow+1) * 2654435761
			return fmt.Sprintf("VALUE %010d at %08x,%08x: %d.%02d %s", id, id^0x5bd1e995, id*40503, 20+round%3, (round*37+flow*11)%100, strings.Repeat(fmt.Sprint(id%97), 20))
		}},
		{"copies", func(flow, round int) string {
			return fmt.Sprintf("NOTE %d %08x %s", 5000+flow*31, uint32(round+1)*2654435761, strings.Repeat(fmt.Sprint(round*7919%1000), 20))
		}},
	} {
		p := newPair(t, Config{Registry: parsers.NewRegistry()})
		f := codectest.NewFanout(flows)
		before := 0
		for round := range rounds {
			if round == rounds/2 {
				before = p.bytes[1]
			}
			f.Send(func(i int) []byte { return []byte(tt.payload(i, round)) }, func(d int, now time.Duration, b []byte) {
				if d == 1 {
					p.run(d, now, b)
				}
			})
			p.due(f.Now + 40*ms)
		}
		if got := float64(p.bytes[1]-before) / flows / (rounds - rounds/2); got > 4.5 {
			t.Errorf("%s: %.2f bytes for a segment, expected 4.5 at most", tt.name, got)
		}
	}
}
