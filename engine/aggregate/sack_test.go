package aggregate

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sackOption is the option with some blocks, behind two bytes of padding.
func sackOption(blocks ...block) []byte {
	b := []byte{1, 1, 5, byte(2 + 8*len(blocks))}
	for _, k := range blocks {
		b = binary.BigEndian.AppendUint32(b, k.left)
		b = binary.BigEndian.AppendUint32(b, k.right)
	}
	return b
}

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
	segment
	receiver
	again []block // to be sent once more
}

func (l *lossy) lost(rate float64) bool { return l.random.Float64() < rate }

// run sends a segment to each of n subscribers in each round; what was lost comes
// once more after every third.
func (l *lossy) run(p *pair, n, rounds int) {
	l.random = rand.New(rand.NewPCG(7, 8))
	l.flows = make([]lossyFlow, n)
	for i := range l.flows {
		f := &l.flows[i]
		f.segment = segment{client: i, port: i, down: true, flags: 0x18, window: 64, seq: 1000, ack: 1, tsval: 5, tsecr: 5}
		f.next = f.seq
	}
	for round := range rounds {
		now := time.Duration(round) * 50 * ms
		for i := range l.flows {
			f := &l.flows[i]
			k := block{f.seq, f.seq + 50 + uint32(round%7)}
			l.send(p, now, f, k)
			f.seq = k.right
		}
		for i := range l.flows {
			if f := &l.flows[i]; round%3 == 2 {
				again := f.again
				f.again = nil
				for _, k := range again {
					l.send(p, now, f, k)
				}
			}
		}
	}
	p.settle(time.Hour)
}

func (l *lossy) send(p *pair, now time.Duration, f *lossyFlow, k block) {
	if l.lost(l.before) {
		f.again = append(f.again, k)
		return
	}
	s := f.segment
	s.seq, s.tsval = k.left, s.tsval+uint32(now/ms)
	for i := range k.right - k.left {
		s.payload = append(s.payload, byte(k.left+i))
	}
	p.run(1, now, s.packet())
	if l.lost(l.after) {
		f.again = append(f.again, k)
		return
	}
	held := f.take(k.left, k.right)
	l.blocks += len(held)
	a := segment{client: s.client, port: s.port, flags: 0x10, window: 63, seq: 1, ack: f.next, tsval: s.tsval + 1, tsecr: s.tsval}
	if l.sacks && len(held) > 0 {
		a.options = sackOption(held...)
	}
	p.run(0, now+100*time.Microsecond, a.packet())
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
		with, without := newPair(t, Config{}), newPair(t, Config{})
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
		m := &with.ends[0].Merger
		if got := len(m.writer.layouts.table); got > 1+maxBlocks {
			t.Errorf("%s: %d layouts", tt.name, got)
		}
		if got := m.Stats().Verbatim; got != 0 {
			t.Errorf("%s: %d packets verbatim", tt.name, got)
		}
	}
}

// Whatever is in a SACK option, or looks like one, comes through.
func TestAnySackComesThrough(t *testing.T) {
	near := rapid.Custom(func(rt *rapid.T) uint32 {
		return uint32(rapid.SampledFrom([]int{0, 1<<31 - 2, 1 << 32}).Draw(rt, "about") + rapid.IntRange(-3, 3).Draw(rt, "near"))
	})
	blocks := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) block {
		return block{near.Draw(rt, "left"), near.Draw(rt, "right")}
	}), 0, maxBlocks)
	draw := func(rt *rapid.T) segment {
		s := segment{
			client: rapid.IntRange(0, 3).Draw(rt, "client"), down: rapid.Bool().Draw(rt, "down"), flags: 0x10, window: 5,
			seq: near.Draw(rt, "seq"), ack: near.Draw(rt, "ack"), payload: make([]byte, rapid.IntRange(0, 3).Draw(rt, "payload")),
		}
		k := blocks.Draw(rt, "blocks")
		if len(k) == 0 {
			return s
		}
		s.options = sackOption(k...)
		if rapid.IntRange(0, 5).Draw(rt, "spoil") == 0 {
			s.options[3] = rapid.Byte().Draw(rt, "length")
		}
		if len(s.options) <= 20 && rapid.Bool().Draw(rt, "twice") {
			s.options = append(s.options, s.options...)
		}
		return s
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(rt, Config{Limits: small(rapid.IntRange(2, 8).Draw(rt, "places"))})
		p.late = rapid.Bool().Draw(rt, "late")
		for i := range rapid.IntRange(1, 30).Draw(rt, "segments") {
			now := time.Duration(i) * ms
			s, d := draw(rt), 0
			if s.down {
				d = 1
			}
			p.run(d, now, s.packet())
			if rapid.Bool().Draw(rt, "flush") {
				p.flush(d, now)
			}
			if rapid.Bool().Draw(rt, "deliver") {
				p.deliver(1 - d)
			}
		}
		p.settle(time.Hour)
	})
}
