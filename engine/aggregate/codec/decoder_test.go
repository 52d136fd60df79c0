package codec

import (
	"errors"
	"fmt"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// A packet is no longer than its length field can say: in IPv4 with its header, in IPv6
// without.
func TestPacketTooLong(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    codectest.Segment
		most int // bytes of payload
	}{
		{"IPv4", codectest.Segment{Client: 1, Flags: 0x18, Seq: 5}, 65535 - 40},
		{"IPv6", codectest.Segment{Client: 1, Flags: 0x18, Seq: 5, IPv6: true}, 65535 - 20},
	} {
		for more, want := range []string{"", "packet too long"} {
			x := newExchange(t, Config{})
			tt.s.Payload = make([]byte, tt.most-3)
			x.add(0, tt.s.Packet())
			g := &x.gateways[0].groups[0]
			g.Spans = append(g.Spans, Span{Body: make([]byte, 3+more), Advice: Advice{Key: 1}})
			r := x.encoder(0).Encode(Frame{Groups: x.gateways[0].groups, Reuse: x.gateways[0].reuse()}, nil, nil)
			got, err := x.decoder(0).Decode(r.Control, r.Literals)
			f := &forger{Encoder: x.encoder(0), d: x.decoder(0)}
			f.refused(t, fmt.Sprint(tt.name, " and ", more), err, want)
			if err == nil && len(got.Packets) != tt.most+len(tt.s.Packet())-len(tt.s.Payload) {
				t.Errorf("%s: a packet of %d bytes", tt.name, len(got.Packets))
			}
		}
	}
}

// An Encoder whose own limits do not allow what it is to write says so at once.
func TestMust(t *testing.T) {
	must(nil)
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, ErrFrame) {
			t.Errorf("%v", err)
		}
	}()
	must(invalid("number of pairs"))
}

// The TCP flows from the peer go on where their last segment ended. Others, and those of
// which nothing has come yet, are none.
func TestStreams(t *testing.T) {
	x := newExchange(t, Config{})
	a := codectest.Segment{Client: 1, Flags: 0x18, Seq: 5, Payload: []byte("abc")}
	b := codectest.Segment{Client: 2, Flags: 0x02, Seq: 100}
	x.send(0, a.Packet(), codectest.UDP(), b.Packet())
	a.Seq = 8
	x.send(0, a.Packet())
	type stream struct {
		port uint16
		next uint32
	}
	got := map[stream]bool{}
	x.decoder(0).Streams(func(key parsers.FlowKey, next uint32) { got[stream{key.SrcPort, next}] = true })
	if len(got) != 2 || !got[stream{40000, 11}] || !got[stream{40000, 101}] {
		t.Errorf("streams %v", got)
	}
	x.decoder(1).Streams(func(key parsers.FlowKey, _ uint32) {
		t.Errorf("a stream %v of a direction without packets", key)
	})
}

// Written, Acked and Unreported count frames: those written here, those of them that the
// peer has said it rebuilt, and those of the peer that it has not been told of.
func TestFramesAreCounted(t *testing.T) {
	x := newExchange(t, Config{})
	counts := func(what string, written, acked, unreported uint64) {
		t.Helper()
		here, there := x.gateways[0], x.gateways[1]
		if w, a, u := here.enc.Written(), here.dec.Acked(), there.enc.Unreported(); w != written || a != acked || u != unreported {
			t.Errorf("%s: %d written, %d acknowledged, %d unreported; expected %d, %d, %d", what, w, a, u, written, acked, unreported)
		}
	}
	s := codectest.Segment{Client: 1, Flags: 0x18, Seq: 5, Payload: []byte("abc")}
	counts("at first", 0, 0, 0)
	for range 5 {
		x.send(0, s.Packet())
		s.Seq += 3
	}
	counts("after five frames", 5, 0, 5)
	x.report(1)
	counts("after a report", 5, 5, 0)
	if got := x.last[1].size(); got > 3 {
		t.Errorf("a report of %d bytes", got)
	}
	x.report(1)
	counts("after another", 5, 5, 0)
	if got := x.encoder(0).Contexts(); got != 1 {
		t.Errorf("%d contexts", got)
	}
}
