package codec

import (
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// segmentOf returns a packet taken apart.
func segmentOf(t *testing.T, packet []byte) *parsers.Segment {
	t.Helper()
	var d parsers.Decoder
	seg := &parsers.Segment{}
	if err := d.Decode(packet, seg); err != nil {
		t.Fatal(err)
	}
	return seg
}

// A segment becomes a member if its header is what its fields make: else nothing of it
// is kept, and it goes as it is.
func TestMemberIsProven(t *testing.T) {
	sack := codectest.SACKOption([2]uint32{10, 20})
	s := codectest.Segment{Client: 1, Flags: 0x18, Seq: 7, Options: sack, Payload: []byte("x")}
	for _, tt := range []struct {
		name  string
		flags uint8
		key   func(*parsers.FlowKey)
		want  bool
	}{
		{"as it is", 0x18, func(*parsers.FlowKey) {}, true},
		{"with other flags", 0x10, func(*parsers.FlowKey) {}, false},
		{"of another flow", 0x18, func(k *parsers.FlowKey) { k.SrcPort++ }, false},
		{"of a flow of another kind", 0x18, func(k *parsers.FlowKey) { k.Proto = ip.UDP }, false},
	} {
		e, _ := New(Config{Limits: wire.DefaultLimits})
		seg := segmentOf(t, s.Packet())
		k, ok := e.Dissect(seg)
		if !ok || k != TCP4 {
			t.Fatalf("%s: kind %d, %t", tt.name, k, ok)
		}
		f := &Flow{Key: seg.Key}
		tt.key(&f.Key)
		mb := e.Member(f, seg, tt.flags)
		if ok = mb != nil; ok != tt.want || ok && mb.Flow != f {
			t.Errorf("%s: %+v", tt.name, mb)
		}
		if kept := len(e.sacks); ok != (kept == 1) {
			t.Errorf("%s: the SACK blocks of %d segments are kept", tt.name, kept)
		}
		if ok && (mb.seq != 7 || mb.sack == nil || mb.sack.blocks[0] != block{10, 20} || mb.layout != f.layout) {
			t.Errorf("%s: the fields are %+v", tt.name, mb.Fields)
		}
	}
}

// Headers with the same bytes share a layout, of one IP length and protocol. What is
// kept of them is bounded: past 4 times the table's places they are forgotten.
func TestShapesAreShared(t *testing.T) {
	e, _ := New(Config{Limits: wire.DefaultLimits})
	header := func(options ...byte) []byte {
		seg := segmentOf(t, codectest.Segment{Client: 1, Flags: 0x18, Options: options}.Packet())
		if _, ok := e.Dissect(seg); !ok {
			t.Fatal("not taken apart")
		}
		return e.header
	}
	plain := e.shape(header(), v4Len, ip.TCP)
	if plain == nil || e.shape(header(), v4Len, ip.TCP) != plain {
		t.Error("the same header has another layout")
	}
	if l := e.shape(header(), v4Len, ip.UDP); l != nil {
		t.Errorf("a UDP header of 20 bytes has the layout %v", l)
	}
	if l := e.shape(header(), v4Len+tcpLen, ip.TCP); l == nil || l == plain || l.ip != v4Len+tcpLen {
		t.Errorf("a header of IP alone has the layout %v", l)
	}
	for i := range 4*maxLayouts + 50 {
		e.shape(header(optionMSS, 4, byte(i>>8), byte(i)), v4Len, ip.TCP)
		if i == 4*maxLayouts-1 && len(e.shapes) != 4*maxLayouts+1 {
			t.Errorf("%d layouts are kept, expected %d", len(e.shapes), 4*maxLayouts+1)
		}
	}
	if got := len(e.shapes); got != 50 {
		t.Errorf("%d layouts are kept, expected 50", got)
	}
}
