package aggregate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/wire"
)

// small are limits under which every table that both ends share has n places, so
// that it is full at once, evicts, and meets again what it evicted. A frame has room
// for as many packets: with less for their bytes it would be full with the first.
func small(n int) wire.Limits {
	return wire.Limits{Flows: uint32(n), Templates: uint32(n), Bodies: uint32(60 * n), Packets: uint32(n), Bytes: 2 * wire.MaxPacket}
}

// headers sends segments of some flows. Each has one of many layouts: they differ in
// their MSS, which is a part of them.
func headers(p *pair, flows, segments int, pick func() (flow, header int)) {
	all := make([]segment, flows)
	for i := range all {
		all[i] = segment{client: i, port: i, flags: 0x18, window: 9, seq: 5, ack: 6, tsval: 1, tsecr: 1, payload: []byte("x")}
	}
	for i := range segments {
		f, h := pick()
		s := &all[f]
		s.options = []byte{optionMSS, 4, byte(h >> 8), byte(h)}
		p.run(0, time.Duration(i)*time.Millisecond, s.packet())
		s.seq++
		s.id++
	}
	p.due(time.Hour)
}

// A layout that lost its place and comes back has another place, at both ends: for
// the flows that come with it, and not for those that had it before.
func TestLayoutsComeBack(t *testing.T) {
	p := newPair(t, Config{})
	random := rand.New(rand.NewPCG(3, 4))
	const flows = 300
	common := rand.NewZipf(random, 1.05, 20, 4*maxLayouts)
	last := make([]int, flows)
	headers(p, flows, 6000, func() (int, int) {
		f := int(common.Uint64()) % flows // some have a segment seldom
		if random.IntN(2) == 0 {
			last[f] = int(common.Uint64())
		}
		return f, last[f]
	})
	l := &p.ends[0].Merger.writer.layouts
	if len(l.table) != maxLayouts {
		t.Errorf("%d layouts: the table is not full", len(l.table))
	}
	evicted := false
	for _, f := range p.ends[0].Merger.writer.flows {
		evicted = evicted || l.table[f.layout.place] != f.layout
	}
	if !evicted {
		t.Error("no flow goes on with a layout that has lost its place")
	}
}

// The layout that gives way is the one used longest ago, whether a flow went on
// with it or took it from the table.
func TestOldestLayoutGivesWay(t *testing.T) {
	const n = 4
	p := newPair(t, Config{Limits: wire.Limits{Flows: 100, Templates: n, Bodies: 1000, Packets: 10, Bytes: wire.MaxPacket}})
	script := []struct{ flow, header int }{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {1, 1}, {4, 0}, {5, 4}, {6, 5}}
	i := -1
	headers(p, 7, len(script), func() (int, int) { i++; return script[i].flow, script[i].header })
	got := map[byte]bool{}
	for _, l := range p.ends[0].Merger.writer.layouts.table {
		got[l.bytes[len(l.bytes)-1]] = true
	}
	for _, h := range []byte{0, 1, 4, 5} { // and not 2 and 3
		if !got[h] {
			t.Errorf("layout %d gave way: %v are left", h, got)
		}
	}
	if len(got) != n {
		t.Errorf("%d layouts, %d places", len(got), n)
	}
}

// Tables of a few places are full at once, and all that is in them gives way all
// the time: that costs bytes and nothing else.
func TestSmallTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(rt, "places")
		limits := small(n)
		limits.Flows = uint32(rapid.IntRange(2, 3*n).Draw(rt, "contexts"))
		p := newPair(rt, Config{Limits: limits})
		p.late = rapid.Bool().Draw(rt, "late")
		f := newFanout(rapid.IntRange(1, 2*n).Draw(rt, "flows"))
		for range rapid.IntRange(1, 20).Draw(rt, "rounds") {
			topics := rapid.IntRange(1, 2*n).Draw(rt, "topics")
			layouts := rapid.IntRange(1, 2*n).Draw(rt, "layouts")
			for i := range f.flows {
				f.flows[i].options = []byte{optionMSS, 4, 0, byte(i * f.round % layouts)}
			}
			f.send(func(i int) []byte {
				return publish(fmt.Sprint("topic/", i%topics), body(f.round+i), (1+i)*(f.round%2))
			}, p.run)
			if rapid.Bool().Draw(rt, "pause") {
				p.due(f.now + 40*time.Millisecond)
			}
			p.deliver(f.round % 2)
			if rapid.IntRange(0, 3).Draw(rt, "settle") == 0 {
				p.settle(f.now)
			}
		}
		p.settle(time.Hour)
	})
}

// A flow whose other direction is announced again and again, while nothing tells the
// peer that the two are a pair, is in one pair only: a frame has no more of them
// than there are contexts.
func TestFlowsArePairedOnce(t *testing.T) {
	limits := small(2)
	limits.Bytes = wire.MaxPacket // a packet a frame
	p := newPair(t, Config{Limits: limits})
	p.late = true
	f := newFanout(3)
	for range 2 {
		f.send(func(i int) []byte { return publish("topic", body(f.round+i), 0) }, p.run)
		p.deliver(f.round % 2)
	}
	p.settle(time.Hour)
}

// A set, and what is listed of those that owe, have at most as many flows as a frame
// has packets; the receivers past them are listed one by one.
func TestSetsAreBounded(t *testing.T) {
	limits := small(4)
	limits.Flows = 40
	p := newPair(t, Config{Limits: limits})
	f := newFanout(15)
	for range 30 {
		f.send(func(int) []byte { return publish("topic", body(f.round), 0) }, p.run)
		p.due(f.now + 40*time.Millisecond)
	}
	most := 0
	for _, s := range p.ends[1].Merger.writer.slots.table {
		most = max(most, len(s.set))
	}
	if most != 4 {
		t.Errorf("a set of %d flows, of 15, with a limit of 4", most)
	}
	if got := len(p.ends[0].Merger.writer.acks.set); got > 4 {
		t.Errorf("%d acknowledge together with a limit of 4", got)
	}
}
