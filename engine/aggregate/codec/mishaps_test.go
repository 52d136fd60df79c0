package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

// A talk is a connection between a client and the broker, and what may befall it.
type talk struct {
	ends [2]codectest.Segment // the next segment of each direction: 0 is from the client
	sent [2][][]byte          // the last packets of each
}

func newTalk(client int) *talk {
	k := &talk{}
	for d := range k.ends {
		k.ends[d] = codectest.Segment{
			Client: client, Port: client % 3, IPv6: client%4 == 3, Label: uint32(client), Down: d == 1,
			Flags: 0x18, Window: uint16(64 - d), Seq: uint32(1000*client - d), Ack: uint32(1000*client - 1 + d),
		}
		if client%5 != 4 {
			k.ends[d].TSval, k.ends[d].TSecr = uint32(client<<20+d), uint32(client<<20+1-d)
		}
	}
	return k
}

// next returns the next packet of direction d.
func (k *talk) next(rt *rapid.T, d int, round int) []byte {
	s, back := &k.ends[d], &k.ends[1-d]
	switch rapid.IntRange(0, 11).Draw(rt, "payload") {
	case 0, 1, 2, 3:
		s.Payload = codectest.Publish(fmt.Sprint("topic/", round%3), fmt.Sprintf(`{"n":%d}`, round/3), round%4*s.Client)
	case 4, 5, 6, 7:
		s.Payload = nil // it acknowledges
	case 8:
		s.Payload = append(codectest.Publish("a", fmt.Sprint(round), 0), codectest.Publish("b", "same", 1+round)...)
	case 9:
		s.Payload = rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(rt, "bytes")
	case 10:
		s.Payload = []byte{0xc0, 0} // a ping
	default:
		s.Payload = bytes.Repeat([]byte{byte(round)}, 300)
	}
	switch rapid.IntRange(0, 15).Draw(rt, "header") {
	case 0:
		s.Window += uint16(rapid.IntRange(-3, 900).Draw(rt, "window"))
	case 1:
		s.Flags, s.Seq, s.Payload = 2, rapid.Uint32().Draw(rt, "seq"), nil // the flow comes back
	case 2:
		s.Flags, s.Payload = 0x11, nil
	case 3:
		s.Options = rapid.SampledFrom([][]byte{
			nil, {1, 1, 1, 1}, {2, 4, 5, byte(round)}, {254, 4, 7, byte(round)}, {0, 1, 2, 3}, {19, 6, 1, 2, 3, 4, 1, 1},
			codectest.SACKOption([2]uint32{back.Seq - 9, back.Seq}), codectest.SACKOption([2]uint32{7, 9}, [2]uint32{1, 3}),
		}).Draw(rt, "options")
	case 4:
		s.TSval += uint32(rapid.IntRange(-1<<22, 1<<22).Draw(rt, "jump"))
	case 5:
		s.Seq += uint32(rapid.IntRange(-500, 500).Draw(rt, "gap"))
	case 6:
		s.Label = rapid.Uint32Range(0, 0xfffff).Draw(rt, "label")
	}
	b := s.Packet()
	s.Seq += uint32(len(s.Payload))
	s.ID += uint16(rapid.IntRange(0, 2).Draw(rt, "id"))
	if s.TSval != 0 {
		s.TSval += uint32(rapid.IntRange(0, 3).Draw(rt, "ticks"))
		back.TSecr = s.TSval
	}
	back.Ack, s.Flags = s.Seq, 0x18
	return b
}

// spoil does to a packet what hosts, cards and networks do, and returns it.
func spoil(rt *rapid.T, b []byte) []byte {
	at := 56
	if b[0]>>4 == 4 {
		at = 36
	}
	switch rapid.IntRange(0, 9).Draw(rt, "spoil") {
	case 0:
		binary.BigEndian.PutUint16(b[at:], 0)
	case 1:
		b[at] ^= 0x5a
	case 2:
		if at == 36 {
			b[10], b[11] = 0, byte(rapid.IntRange(0, 1).Draw(rt, "header sum"))
		}
	case 3:
		b[len(b)-1] ^= 1
	case 4:
		b = b[:len(b)-1] // too short for its length: it goes as it is
	}
	return b
}

// step has one thing happen.
func step(rt *rapid.T, x *exchange, talks []*talk, round int) {
	d := rapid.IntRange(0, 1).Draw(rt, "direction")
	k := rapid.SampledFrom(talks).Draw(rt, "talk")
	switch rapid.IntRange(0, 19).Draw(rt, "step") {
	case 0:
		x.flush(d)
	case 1:
		x.deliver(d)
	case 2:
		x.settle()
	case 3:
		x.report(d)
	case 4:
		x.now += time.Duration(rapid.IntRange(0, 5000).Draw(rt, "pause")) * ms
	case 5: // others than TCP, and fragments
		x.add(d, rapid.SampledFrom([][]byte{codectest.UDP(), codectest.ICMP(), codectest.Fragment()}).Draw(rt, "other"))
	case 6, 7: // once more, or late
		if n := len(k.sent[d]); n > 0 {
			x.add(d, k.sent[d][rapid.IntRange(0, n-1).Draw(rt, "again")])
		}
	case 8: // overtaken
		a, b := k.next(rt, d, round), k.next(rt, d, round+1)
		x.add(d, b)
		x.add(d, a)
	case 9, 10, 11: // to all
		for i, k := range talks {
			b := k.next(rt, d, round)
			k.sent[d] = append(k.sent[d], b)
			if x.add(d, b); i%7 == 6 {
				x.flush(d)
			}
		}
		x.flush(d)
	case 12:
		x.add(d, spoil(rt, k.next(rt, d, round)))
	default:
		b := k.next(rt, d, round)
		k.sent[d] = append(k.sent[d], b)
		x.add(d, b)
	}
}

// Whatever befalls flows and frames, packets come out as they went in, and both ends
// remember the same: frames that are under way and cross, flows that come back, segments
// that come twice or late, tables that are full, odd checksums, options that come and go.
func TestMishaps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := wire.DefaultLimits
		if n := rapid.IntRange(1, 8).Draw(rt, "places"); n > 1 {
			limits = small(n)
			limits.Flows = uint32(rapid.IntRange(2, 3*n).Draw(rt, "contexts"))
		}
		x := newExchange(rt, Config{Limits: limits, Similarity: Similarity(rapid.IntRange(0, 31).Draw(rt, "similarity"))})
		x.late = rapid.Bool().Draw(rt, "late")
		talks := make([]*talk, rapid.IntRange(1, 12).Draw(rt, "talks"))
		for i := range talks {
			talks[i] = newTalk(i)
		}
		for round := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			step(rt, x, talks, round)
		}
		x.settle()
	})
}

// A flow whose other direction is announced again and again, while nothing tells the
// peer that the two are a pair, is in one pair only: a frame has no more of them than
// there are contexts.
func TestFlowsArePairedOnce(t *testing.T) {
	limits := small(1)
	limits.Packets = 10 // as many changes are kept for the peer, and more
	x := newExchange(t, Config{Limits: limits})
	up := codectest.Segment{Client: 1, Flags: 0x10}
	x.send(0, up.Packet())
	for client := range 7 {
		x.send(1, codectest.Segment{Client: client % 2, Down: true, Flags: 0x10}.Packet())
	}
	x.send(1, codectest.Segment{Client: 1, Down: true, Flags: 0x10}.Packet())
	x.send(0, up.Packet())
	if v := x.encoder(0).views.table; len(v) != 1 || v[0].own.place() != 0 {
		t.Errorf("the flow is not in a pair: %+v", v)
	}
}
