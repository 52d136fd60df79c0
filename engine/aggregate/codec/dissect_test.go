package codec

import (
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

// dissected returns an Encoder that has taken a packet apart, and its flow.
func dissected(t *testing.T, packet []byte) (e *Encoder, f *Flow, k Kind, ok bool) {
	e, _ = New(Config{Limits: wire.DefaultLimits})
	seg := decode(t, packet)
	f = &Flow{Key: seg.Key}
	k, ok = e.Dissect(seg)
	return e, f, k, ok
}

// An Encoder takes a segment apart, or says that it has no layout for it: as for one that
// has no TCP header, though it is of TCP.
func TestEncoderDissect(t *testing.T) {
	for name, tt := range map[string]struct {
		packet []byte
		kind   Kind
	}{
		"TCP": {codectest.SYN(), TCP4}, "IPv6": {codectest.IPv6TCP(), TCP6}, "UDP": {codectest.UDP(), IP4},
	} {
		if _, _, k, ok := dissected(t, tt.packet); !ok || k != tt.kind {
			t.Errorf("%s: kind %d, %v", name, k, ok)
		}
	}
	e, _ := New(Config{Limits: wire.DefaultLimits})
	seg := decode(t, codectest.SYN())
	seg.TransportLen = 0
	if _, ok := e.Dissect(seg); ok {
		t.Error("a segment without its TCP header")
	}
	seg.Key.SrcPort, seg.Key.DstPort = 0, 0 // as of a fragment
	if k, ok := e.Dissect(seg); !ok || k != IP4 {
		t.Errorf("a fragment of TCP: kind %d, %v", k, ok)
	}
	if seg = decode(t, codectest.SYN()); true {
		seg.Key.SrcPort, seg.Key.DstPort = 0, 0
	}
	if _, ok := e.Dissect(seg); ok {
		t.Error("a TCP header without ports")
	}
}

// The blocks of a segment stay as they are when the next one is taken apart.
func TestMemberKeepsBlocks(t *testing.T) {
	e, f, _, _ := dissected(t, codectest.Segment{}.Packet())
	var members []Member
	for n := range uint32(20) {
		seg := decode(t, codectest.Segment{Flags: 0x10}.With(codectest.SACKOption([2]uint32{n, n + 1})...))
		e.Dissect(seg)
		mb := e.Member(f, seg, 0x10)
		if mb == nil {
			t.Fatal("no member")
		}
		members = append(members, *mb)
	}
	for n, mb := range members {
		if mb.sack.n != 1 || mb.sack.blocks[0] != (block{uint32(n), uint32(n) + 1}) {
			t.Errorf("member %d has %+v", n, mb.sack)
		}
	}
}

// A segment goes on with the layout of the one before it, and has another where its
// header is another.
func TestMemberLayout(t *testing.T) {
	e, f, _, _ := dissected(t, codectest.Segment{}.Packet())
	member := func(s codectest.Segment) *layout {
		t.Helper()
		seg := decode(t, s.Packet())
		e.Dissect(seg)
		mb := e.Member(f, seg, s.Flags)
		if mb == nil || f.layout != mb.layout {
			t.Fatalf("%+v", mb)
		}
		return mb.layout
	}
	first := member(codectest.Segment{Seq: 1, Flags: 1})
	if again := member(codectest.Segment{Seq: 7, Flags: 2, Window: 9}); again != first {
		t.Error("other fields make another layout")
	}
	if other := member(codectest.Segment{TSval: 1}); other == first || other.tsval == 0 {
		t.Error("timestamps make no other layout")
	}
	if back := member(codectest.Segment{}); back != first {
		t.Error("the first layout was forgotten")
	}
}
