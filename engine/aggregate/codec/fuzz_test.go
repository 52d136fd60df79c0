package codec

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// known returns two gateways that have seen a little, always the same, under limits of
// a few places.
func known(t tester, places int) *exchange {
	limits := small(places)
	limits.Bytes = wire.MaxPacket
	x := newExchange(t, Config{Limits: limits})
	f := codectest.NewFanout(5)
	for range 3 {
		f.Send(func(i int) []byte { return codectest.Publish("a/b", fmt.Sprint("round ", f.Round), i) }, x.run)
	}
	x.settle()
	return x
}

// bounded checks that a Decoder holds no more than its limits allow, whatever it was sent.
func bounded(t tester, d *Decoder) {
	t.Helper()
	l := &d.limits
	packets, flows := int(l.Packets), int(l.Flows)
	check := func(what string, got, most int) {
		t.Helper()
		if got > most {
			t.Fatalf("%d %s, %d at most", got, what, most)
		}
	}
	check("contexts", len(d.contexts), flows)
	check("checksums of flows", len(d.sums), flows)
	check("marks", len(d.marks), flows)
	check("layouts", len(d.layouts.table), min(maxLayouts, int(l.Templates)))
	check("templates", len(d.templates.table), int(l.Templates))
	check("templates to be used again", len(d.templates.free), int(l.Templates))
	check("bytes of bodies", d.templates.bytes, int(l.Bodies)+maxBody)
	all := 0
	for i := range d.templates.table {
		e := &d.templates.table[i]
		check("flows in a set", len(e.set), d.setLimit())
		check("holes", len(e.holes), parsers.MaxHoles)
		for _, b := range e.bodies {
			all += len(b)
			check("bytes of a body", len(b), maxBody)
		}
	}
	if all != d.templates.bytes {
		t.Fatalf("%d bytes of bodies are counted as %d", all, d.templates.bytes)
	}
	check("flows that acknowledge", len(d.ackSet), d.setLimit())
	check("views", len(d.views.table), flows) // of the other direction, whose limits are the same
	check("flows that are expected", len(d.views.expected.nodes), flows)
	check("bytes of opaque options", len(d.newestOpaque), maxHeader)
	for _, f := range d.contexts {
		if f != nil && f.texts != nil {
			for _, text := range f.texts {
				check("bytes of a text", len(text), parsers.MaxHoleText)
			}
		}
	}
	check("members", len(d.read.Members), 2*packets)
	check("spans", len(d.read.Spans), maxSpans)
	check("values", len(d.read.Values), int(l.Bytes))
	check("bytes of texts", len(d.texts), int(l.Bytes)+parsers.MaxHoleText)
	check("bytes of spans", len(d.payload), wire.MaxPacket)
	check("packets", len(d.out.Ends), packets+1)
	check("bytes of packets", len(d.out.Packets), int(l.Bytes)+wire.MaxPacket)
	check("changes to tell the peer's views", len(d.items), 2*packets)
}

// hostile has gateway 1 of an exchange take in frames that nobody made, up to the first
// that it refuses.
func hostile(t tester, x *exchange, frames ...[2][]byte) {
	t.Helper()
	d, e := x.decoder(0), x.encoder(1)
	x.late = true // what gateway 1 answers goes nowhere
	for _, f := range frames {
		got, err := d.Decode(f[0], f[1])
		if err != nil && (!errors.Is(err, ErrFrame) || len(got.Packets)+len(got.Ends) > 0) {
			t.Fatalf("%d packets, %v", len(got.Ends), err)
		}
		if bounded(t, d); err != nil {
			return
		}
		for n := range e.Learned(d) {
			if f := x.gateways[1].flows[n.Key.Reverse()]; f != nil {
				e.Pair(&f.Flow, n)
			} else {
				e.Unpaired(n)
			}
		}
		x.send(1, codectest.Segment{Down: true, Flags: 0x10, Seq: 7, TSval: 9}.Packet())
	}
}

// FuzzDecoder: arbitrary control fields and literals are refused, or give packets inside
// the limits; whatever they ask for, what is remembered of them is bounded.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{}, []byte{}, []byte{}, uint8(2), false)
	for i, b := range somePackets() {
		x := newExchange(f, Config{})
		first := x.send(0, b)
		then := x.send(0, b, somePackets()[len(somePackets())-1-i])
		f.Add(first.Control, append(first.Literals, then.Literals...), then.Control, uint8(10), false)
		x = known(f, 2+i%7)
		next := x.send(0, b)
		f.Add(next.Control, next.Literals, []byte{}, uint8(2+i%7), true)
	}
	f.Fuzz(func(t *testing.T, first, literals, then []byte, places uint8, warm bool) {
		var x *exchange
		if n := 2 + int(places)%9; warm {
			x = known(t, n)
		} else {
			x = newExchange(t, Config{Limits: small(n)})
		}
		hostile(t, x, [2][]byte{first, literals}, [2][]byte{then, nil})
	})
}

// Frames that were spoilt on their way are refused, or give packets inside the limits.
func TestSpoiltFrames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := known(rt, rapid.IntRange(2, 9).Draw(rt, "places"))
		x.late = true
		var frames [][2][]byte
		for range rapid.IntRange(1, 3).Draw(rt, "frames") {
			f := x.send(0, rapid.SampledFrom(somePackets()).Draw(rt, "packet"), rapid.SampledFrom(somePackets()).Draw(rt, "packet"))
			frames = append(frames, [2][]byte{bytes.Clone(f.Control), bytes.Clone(f.Literals)})
		}
		for range rapid.IntRange(1, 4).Draw(rt, "faults") {
			b := &frames[rapid.IntRange(0, len(frames)-1).Draw(rt, "frame")][rapid.IntRange(0, 1).Draw(rt, "literals")]
			if len(*b) == 0 {
				continue
			}
			switch at := rapid.IntRange(0, len(*b)-1).Draw(rt, "at"); rapid.IntRange(0, 2).Draw(rt, "fault") {
			case 0:
				(*b)[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
			case 1:
				*b = (*b)[:at]
			case 2:
				*b = append(*b, rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(rt, "more")...)
			}
		}
		hostile(rt, x, frames...)
	})
}
