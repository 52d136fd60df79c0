package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// What a frame asks for is held against what there is: each demand past its bound is
// refused with its reason, and the one at the bound is not. Here: the number of pairs and their flows, and the kind of a group.
func TestHostileHead(t *testing.T) {
	holdAgainst(t, []demand{
		{"no groups", "", (*forger).nothing},
		{"a pair of each context", "", func(f *forger) {
			for i := range uint32(flowsKnown) {
				f.head.pairs = append(f.head.pairs, pair{cidAt(i), peerCIDAt(flowsKnown - 1 - i)})
			}
			_ = f.codePairs(&f.head)
			f.codeMore(false)
		}},
		{"more pairs than contexts", "number of pairs", func(f *forger) {
			f.head.pairs = make([]pair, flowsKnown+1)
			_ = f.codePairs(&f.head)
		}},
		{"fewer pairs than none", "number of pairs", func(f *forger) { f.paired(1 << 63) }},
		{"a pair of no flow", "pair of unknown flows", func(f *forger) { f.paired(1, flowsKnown, 0) }},
		{"a pair of no flow of the peer's", "pair of unknown flows", func(f *forger) { f.paired(1, 0, flowsKnown) }},
		{"no kind", "unknown kind of group", func(f *forger) { f.shape(IP6+1, 1, 1) }},
	})
}

// What a new flow is called, and what its other direction and its key are.
func TestHostileContexts(t *testing.T) {
	holdAgainst(t, []demand{
		{"the CID of no context", "context number", func(f *forger) {
			f.shape(TCP4, 1, 1)
			f.fresh(true)
			f.coder.Index(flowsKnown, flowsKnown)
		}},
		{"a context past the limit", "past a limit: contexts", func(f *forger) {
			f.atBoth(func(s *state) { s.limits.Flows = flowsKnown })
			f.shape(TCP4, 1, 1)
			f.fresh(false)
		}},
		{"no other direction", "other direction unknown", func(f *forger) {
			f.shape(TCP4, 1, 1)
			f.fresh(false)
			f.coder.Bool(&f.models.reversed, true)
			f.coder.Index(flowsKnown, flowsKnown)
		}},
		{"an other direction that has gone", "other direction unknown", func(f *forger) {
			f.atBoth(func(s *state) { s.views.table[1].valid = false })
			f.shape(TCP4, 1, 1)
			f.fresh(false)
			f.coder.Bool(&f.models.reversed, true)
			f.coder.Index(1, flowsKnown)
		}},
		{"the other direction of another kind", "context of another kind", func(f *forger) {
			f.shape(IP4, 1, 1)
			f.fresh(false)
			f.coder.Bool(&f.models.reversed, true)
			f.coder.Index(0, flowsKnown)
		}},
		{"a key of another kind", "context of another kind", func(f *forger) {
			f.shape(IP4, 1, 1)
			f.fresh(false)
			f.coder.Bool(&f.models.reversed, false)
			key := parsers.FlowKey{SrcPort: 1, DstPort: 2, Proto: ip.TCP, Version: 4}
			f.codeKey(IP4, &key)
		}},
	})
}

// Who the members of a group are.
func TestHostileMembers(t *testing.T) {
	holdAgainst(t, []demand{
		{"no source", "source of members", func(f *forger) { f.from(f.shape(TCP4, 2, 0), 3) }},
		{"no members", "number of members", func(f *forger) {
			f.from(f.shape(TCP4, 2, 0), sourceNone)
			f.models.count[0].Uint(&f.coder, 0)
		}},
		{"more members than packets", "past a limit: members of a group", func(f *forger) {
			f.from(f.shape(TCP4, 2, 0), sourceNone)
			f.models.count[0].Uint(&f.coder, uint64(f.limits.Packets)+1)
		}},
		{"fewer members than none", "number of members", func(f *forger) {
			f.from(f.shape(TCP4, 2, 0), sourceNone)
			f.models.count[0].Uint(&f.coder, 1<<63)
		}},
		{"none of a set, nor any other", "number of members", func(f *forger) {
			f.from(f.shape(TCP4, 2, 0), sourceSet, 0, 0, 0, 0, 0)
			f.models.extra[0].Uint(&f.coder, 0)
		}},
		{"of a set, of another kind", "member listed twice, or without a context", func(f *forger) {
			f.from(f.shape(IP4, 2, 0), sourceSet, 1, 1, 1, 1, 1)
		}},
		{"of a set, without a context", "member listed twice, or without a context", func(f *forger) {
			f.atBoth(func(s *state) { s.ackSet[2].cid = cidAt(flowsKnown) })
			f.from(f.shape(TCP4, 2, 0), sourceSet, 1, 1, 1, 1, 1)
		}},
		{"of a set, twice", "member listed twice, or without a context", func(f *forger) {
			f.atBoth(func(s *state) { s.ackSet[2].cid = s.ackSet[1].cid })
			f.from(f.shape(TCP4, 2, 0), sourceSet, 1, 1, 1, 1, 1)
		}},
		{"a member without a context", "member without a context", func(f *forger) {
			f.shape(TCP4, 1, 1)
			f.member(0, flowsKnown)
		}},
		{"a member of another kind", "member without a context", func(f *forger) {
			f.shape(IP4, 1, 1)
			f.member(0, 2)
		}},
		{"a member twice", "member listed twice", func(f *forger) {
			f.from(f.shape(TCP4, 2, 0), sourceNone)
			f.models.count[0].Uint(&f.coder, 2)
			f.member(0, 3)
			f.member(1, 3)
		}},
		{"a member of a set twice", "member listed twice", func(f *forger) {
			f.from(f.shape(TCP4, 2, 0), sourceSet, 1, 1, 0, 0, 0)
			f.models.extra[0].Uint(&f.coder, 1)
			f.mark(f.ackSet[1].cid)
			f.member(2, f.ackSet[1].cid.place())
		}},
	})
}

// How many spans there are, their templates and their bodies.
func TestHostileSpans(t *testing.T) {
	holdAgainst(t, []demand{
		{"no spans", "number of spans", func(f *forger) { f.shape(Verbatim, 0, 1); f.spans(0) }},
		{"more spans than bytes", "number of spans", func(f *forger) { f.shape(Verbatim, 0, 1); f.spans(maxSpans + 1) }},
		{"fewer spans than none", "number of spans", func(f *forger) { f.shape(Verbatim, 0, 1); f.spans(math.MinInt64) }},
		{"no template", "template unknown", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.spans(1)
			f.guessed(false)
			f.coder.Bool(&f.models.templateNew, false)
			f.coder.Index(3, 3)
		}},
		{"a template that was dropped", "template unknown", func(f *forger) {
			f.atBoth(func(s *state) { s.templates.drop(templateAt(1)) })
			f.shape(Verbatim, 0, 1)
			f.spans(1)
			f.guessed(false)
			f.coder.Bool(&f.models.templateNew, false)
			f.coder.Index(1, 3)
		}},
		{"no base", "base of a template unknown", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.spans(1)
			f.guessed(false)
			f.coder.Bool(&f.models.templateNew, true)
			f.coder.Bool(&f.models.based, true)
			f.coder.Index(3, 3)
		}},
		{"no body so deep", "body unknown", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.spans(1)
			s := f.begin(0, templateAt(0))
			f.copied(s, uint32(f.templates.at(templateAt(0)).count))
		}},
		{"bodies as long as a packet may be", "", func(f *forger) {
			f.learnAtBoth(templateAt(0), make([]byte, maxBody))
			f.learnAtBoth(templateAt(1), make([]byte, wire.MaxPacket-4*maxBody))
			f.shape(Verbatim, 0, 1)
			f.spans(5)
			for i := range 5 {
				f.group.span(i).depth = 0
				f.copied(f.begin(i, templateAt(uint32(i/4))), 0)
			}
			f.codeMore(false)
		}},
		{"bodies longer than a packet", "body unknown", func(f *forger) {
			f.learnAtBoth(templateAt(0), make([]byte, maxBody))
			f.learnAtBoth(templateAt(1), make([]byte, wire.MaxPacket-4*maxBody+1))
			f.shape(Verbatim, 0, 1)
			f.spans(5)
			for i := range 5 {
				f.copied(f.begin(i, templateAt(uint32(i/4))), 0)
			}
		}},
		{"literals as long as a packet may be", "", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.verbatim(1, wire.MaxPacket-1)
			f.codeMore(false)
		}},
		{"literals longer than a packet", "more literals than there are", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.verbatim(1, wire.MaxPacket)
		}},
		{"more literals than there are", "more literals than there are", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.verbatim(5)
			f.codeMore(false)
			f.coder.Literals = f.coder.Literals[:4]
		}},
		{"fewer literals than there are", "length", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.verbatim(5)
			f.codeMore(false)
			f.coder.Literals = append(f.coder.Literals, 0)
		}},
		{"an edit as long as a packet may be", "", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.spans(2)
			f.literal(f.begin(0, templateNumber{}), wire.MaxPacket-40)
			f.end(&f.group.Spans[0])
			f.edited(f.begin(1, templateAt(2)), 40)
			f.end(&f.group.Spans[1])
			f.codeMore(false)
		}},
		{"an edit longer than a packet", "model: body outside its bounds", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.spans(2)
			f.literal(f.begin(0, templateNumber{}), wire.MaxPacket-40)
			f.end(&f.group.Spans[0])
			f.edited(f.begin(1, templateAt(2)), 41)
		}},
		{"nothing in a span", "empty span", func(f *forger) {
			f.shape(Verbatim, 0, 1)
			f.verbatim(0)
			f.codeMore(false)
		}},
	})
}

// How many holes a body has, and where.
func TestHostileHoles(t *testing.T) {
	holdAgainst(t, []demand{
		{"more holes than a span may have", "number of holes", func(f *forger) { f.holes(parsers.MaxHoles + 1) }},
		{"fewer holes than none", "number of holes", func(f *forger) { f.holes(math.MinInt64) }},
		{"holes in a packet", "holes in a packet", func(f *forger) { f.holes(1, Hole{at: 5, width: 1}); f.codeMore(false) }},
		{"a hole at the end", "holes in a packet", func(f *forger) { f.holes(1, Hole{at: 10, width: 1}); f.codeMore(false) }},
		{"a hole behind the end", "hole outside the body", func(f *forger) { f.holes(1, Hole{at: 11, width: 1}) }},
		{"a hole before the begin", "hole outside the body", func(f *forger) { f.holes(1, Hole{at: math.MinInt64, width: 1}) }},
		{"two holes in one place", "holes in a packet", func(f *forger) { f.holes(2, Hole{at: 5, width: 1}, Hole{at: 5, width: 1}); f.codeMore(false) }},
		{"a hole before the one before it", "hole outside the body", func(f *forger) { f.holes(2, Hole{at: 5, width: 1}, Hole{at: 4, width: 1}) }},
		{"a hole of no width", "hole outside the body", func(f *forger) { f.holes(1, Hole{at: 5}) }},
		{"a mask behind another hole", "hole outside the body", func(f *forger) {
			f.holes(2, Hole{at: 5, width: 1}, Hole{at: 6, kind: parsers.HoleMask, width: withKey})
		}},
		{"holes of a longer body", "hole outside the body", func(f *forger) {
			f.atBoth(func(s *state) { s.templates.at(templateAt(0)).holes = []Hole{{at: 11, width: 1}} })
			f.shape(Verbatim, 0, 1)
			f.spans(1)
			s := f.begin(0, templateAt(0))
			f.literal(s, 10)
			s.Holes = []Hole{{at: 11, width: 1}}
			_ = f.codeHoles(s)
		}},
	})
}

// How many packets come of a frame, and of how many bytes.
func TestHostilePackets(t *testing.T) {
	holdAgainst(t, []demand{
		{"as many packets as a frame may have", "", func(f *forger) {
			f.atBoth(func(s *state) { s.limits.Packets = 3 })
			f.shape(Verbatim, 0, 1)
			f.verbatim(1)
			for range 2 {
				f.next(Verbatim, 0, 1)
				f.verbatim(1)
			}
			f.codeMore(false)
		}},
		{"more packets than a frame may have", "past a limit: packets of a frame, or their bytes", func(f *forger) {
			f.atBoth(func(s *state) { s.limits.Packets = 3 })
			f.shape(Verbatim, 0, 1)
			f.verbatim(1)
			for range 3 {
				f.next(Verbatim, 0, 1)
				f.verbatim(1)
			}
			f.codeMore(false)
		}},
		{"as many bytes as a frame may have", "", func(f *forger) {
			f.atBoth(func(s *state) { s.limits.Bytes = 300 })
			f.shape(Verbatim, 0, 1)
			f.verbatim(100)
			f.next(Verbatim, 0, 1)
			f.verbatim(200)
			f.codeMore(false)
		}},
		{"more bytes than a frame may have", "past a limit: packets of a frame, or their bytes", func(f *forger) {
			f.atBoth(func(s *state) { s.limits.Bytes = 300 })
			f.shape(Verbatim, 0, 1)
			f.verbatim(100)
			f.next(Verbatim, 0, 1)
			f.verbatim(201)
			f.codeMore(false)
		}},
	})
}

// Frames of the peer are acknowledged that were written, and no fewer than before.
func TestHostileAcknowledgement(t *testing.T) {
	for _, tt := range []struct {
		more int64
		want string
	}{
		{0, ""}, {1, "frames acknowledged that were never sent"}, {-1, "frames acknowledged that were never sent"},
		{math.MinInt64, "frames acknowledged that were never sent"},
	} {
		f := newForger(t, wire.DefaultLimits, flowsKnown)
		f.head.acked += uint64(tt.more)
		_, err := f.frame((*forger).nothing)
		f.refused(t, fmt.Sprint(tt.more, " more"), err, tt.want)
	}
}

// Members that are said to be past the end of a frame are refused once there are no
// bytes for them, not after as many as were said.
func TestHostileMembersPastTheEnd(t *testing.T) {
	f := newForger(t, wire.DefaultLimits, 8)
	f.coder.Write(nil)
	f.codeHead(&f.head)
	f.from(f.shape(TCP4, 2, 0), sourceNone)
	f.models.count[0].Uint(&f.coder, 8192)
	for range 20 {
		f.coder.Bits(math.MaxUint64, 64)
	}
	// What is read past the end is ones as well, as long as one likes: new flows that are
	// called 7, and are the other direction of view 7.
	_, err := f.d.Decode(bytes.TrimRight(f.coder.Finish(), "\x00"), nil)
	f.refused(t, "members past the end", err, "control field too short")
	if n := len(f.d.read.Members); n < 4 || n > 100 {
		t.Errorf("%d members were read", n)
	}
}

// A control field that is cut is refused, or that of another frame, which has another
// digest. One with more behind its end is refused.
func TestHostileLength(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18, Seq: 5, Payload: codectest.Publish("a", "body", 0)}
	sent := x.send(0, s.Packet())
	for n := range len(sent.Control) + 3 {
		d := newExchange(t, Config{}).decoder(0)
		r, err := d.Decode(append(bytes.Clone(sent.Control), 0, 0)[:n], nil)
		switch {
		case n == len(sent.Control) && (err != nil || r.Digest != sent.digest):
			t.Errorf("the frame as it was sent: %v", err)
		case n < len(sent.Control) && err == nil && r.Digest == sent.digest:
			t.Errorf("%d of %d bytes are the same frame", n, len(sent.Control))
		case n > len(sent.Control) && (err == nil || err.Error() != ErrFrame.Error()+": length"):
			t.Errorf("%d of %d bytes: %v", n, len(sent.Control), err)
		case err != nil && (!errors.Is(err, ErrFrame) || r.Packets != nil || r.Ends != nil):
			t.Errorf("%d of %d bytes: %d packets with %v", n, len(sent.Control), len(r.Ends), err)
		}
	}
}

// Up to 8 bytes past its end is what a whole control field is read.
func TestFits(t *testing.T) {
	for n, want := range map[int]bool{7: true, 8: true, 9: false, 20: false} {
		var x codec
		for x.coder.Read(make([]byte, 1)); x.coder.Overrun() < n; {
			x.coder.Bits(0, 1)
		}
		err := x.fits()
		if x.coder.Overrun() != n {
			t.Errorf("%d bytes past the end, expected %d", x.coder.Overrun(), n)
		}
		if got := err == nil; got != want || err != nil && err.Error() != ErrFrame.Error()+": control field too short" {
			t.Errorf("%d bytes past the end: %v", n, err)
		}
	}
}
