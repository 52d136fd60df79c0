package codec

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
)

// A receiver is the receiving end of a TCP stream that lost some of it.
type receiver struct {
	next uint32  // it has all before
	held []block // behind gaps, the newest first
}

// take has a segment arrive, and returns the blocks that the acknowledgement for it
// has (RFC 2018 section 4, RFC 2883 section 4).
func (r *receiver) take(left, right uint32) []block {
	b := block{left, right}
	twice := right <= r.next || slices.ContainsFunc(r.held, func(k block) bool { return k.left <= left && right <= k.right })
	if !twice {
		r.held = slices.DeleteFunc(r.held, func(k block) bool {
			if k.left > b.right || k.right < b.left {
				return false
			}
			b = block{min(b.left, k.left), max(b.right, k.right)}
			return true
		})
		if b.left <= r.next {
			r.next = b.right
		} else {
			r.held = slices.Insert(r.held, 0, b)
		}
	}
	out := slices.Clone(r.held)
	if twice {
		out = slices.Insert(out, 0, block{left, right})
	}
	return out[:min(len(out), 3)] // what fits beside a timestamp
}

// lossy is a broker that sends to subscribers on a LAN that loses segments.
type lossy struct {
	after  float64 // share lost behind the gateways, on the way there and back
	before float64 // lost before them
	sacks  bool    // receivers say what they have
	random *rand.Rand
	blocks int // that they said

	flows []lossyFlow
}

type lossyFlow struct {
	codectest.Segment
	receiver
	again []block // to be sent once more
}

func (l *lossy) lost(rate float64) bool { return l.random.Float64() < rate }

// run sends a segment to each of n subscribers in each round; what was lost comes
// once more after every third.
func (l *lossy) run(x *exchange, n, rounds int) {
	l.random = rand.New(rand.NewPCG(7, 8))
	l.flows = make([]lossyFlow, n)
	for i := range l.flows {
		f := &l.flows[i]
		f.Segment = codectest.Segment{Client: i, Port: i, Down: true, Flags: 0x18, Window: 64, Seq: 1000, Ack: 1, TSval: 5, TSecr: 5}
		f.next = f.Seq
	}
	for round := range rounds {
		now := time.Duration(round) * 50 * ms
		for i := range l.flows {
			f := &l.flows[i]
			k := block{f.Seq, f.Seq + 50 + uint32(round%7)}
			l.send(x, now, f, k)
			f.Seq = k.right
		}
		for i := range l.flows {
			if f := &l.flows[i]; round%3 == 2 {
				again := f.again
				f.again = nil
				for _, k := range again {
					l.send(x, now, f, k)
				}
			}
		}
	}
	x.settle()
}

func (l *lossy) send(x *exchange, now time.Duration, f *lossyFlow, k block) {
	if l.lost(l.before) {
		f.again = append(f.again, k)
		return
	}
	s := f.Segment
	s.Seq, s.TSval = k.left, s.TSval+uint32(now/ms)
	for i := range k.right - k.left {
		s.Payload = append(s.Payload, byte(k.left+i))
	}
	x.run(1, now, s.Packet())
	if l.lost(l.after) {
		f.again = append(f.again, k)
		return
	}
	held := f.take(k.left, k.right)
	l.blocks += len(held)
	a := codectest.Segment{Client: s.Client, Port: s.Port, Flags: 0x10, Window: 63, Seq: 1, Ack: f.next, TSval: s.TSval + 1, TSecr: s.TSval}
	if l.sacks && len(held) > 0 {
		var blocks [][2]uint32
		for _, k := range held {
			blocks = append(blocks, [2]uint32{k.left, k.right})
		}
		a.Options = codectest.SACKOption(blocks...)
	}
	x.run(0, now+100*time.Microsecond, a.Packet())
	if l.lost(l.after) {
		f.again = append(f.again, k) // the acknowledgement got lost: it comes twice
	}
}

// SACK blocks are where segments of the other direction began and ended: they cost
// bits, and make no layouts.
func TestSackBlocksCostLittle(t *testing.T) {
	for _, tt := range []struct {
		name          string
		after, before float64
		most          float64 // bytes for a block
	}{
		{"behind the gateways", 0.05, 0, 1.5},
		{"before the gateways", 0, 0.05, 1.5},
		{"much", 0.3, 0.1, 1.5},
	} {
		with, without := newExchange(t, Config{}), newExchange(t, Config{})
		l := lossy{after: tt.after, before: tt.before, sacks: true}
		l.run(with, 50, 60)
		(&lossy{after: tt.after, before: tt.before}).run(without, 50, 60)
		if l.blocks < 100 {
			t.Errorf("%s: %d blocks are too few to judge", tt.name, l.blocks)
		}
		each := float64(with.bytes[0]-without.bytes[0]) / float64(l.blocks)
		t.Logf("%s: %.2f bytes for each of %d blocks, of %d in all", tt.name, each, l.blocks, with.bytes[0])
		if each > tt.most {
			t.Errorf("%s: %.2f bytes for each of %d blocks", tt.name, each, l.blocks)
		}
		if got := len(with.encoder(0).layouts.table); got > 1+maxBlocks {
			t.Errorf("%s: %d layouts", tt.name, got)
		}
	}
}
