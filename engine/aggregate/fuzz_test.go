package aggregate

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/wire"
)

// bases are packets that fuzzing starts from.
func bases() [][]byte {
	tcp := segment{client: 1, port: 1, flags: 0x18, window: 64, seq: 1000, ack: 2000, id: 5, tsval: 100, tsecr: 50}
	var out [][]byte
	for i, payload := range [][]byte{
		nil, publish("a/b", `{"seq":1,"t":20.5}`, 0), publish("a/b", `{"seq":2,"t":20.6}`, 7),
		{0x40, 2, 0, 7}, {0xc0, 0}, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), append(publish("x", "1", 0), publish("x", "2", 1)...),
		publish("long", string(make([]byte, 3000)), 0)[:1400],
	} {
		s := tcp
		s.payload = payload
		s.client += i % 3
		out = append(out, s.packet())
		s.down, s.seq, s.ack = true, 2000, 1000+uint32(len(payload))
		out = append(out, s.packet())
		s.tsval, s.tsecr = 0, 0
		out = append(out, s.packet())
	}
	out = append(out, syn(), udp(), icmp(), fragment(), ipv6tcp())
	tcp.options = sackOption(block{500, 600}, block{300, 400})
	out = append(out, tcp.packet())
	// WebSocket, masked, from a flow of its own: whole frames, one with two
	// messages, and one in three segments.
	two := frame(0x0badcafe, append(publish("m/1", "one", 3), publish("m/2", "two", 0)...))
	large := frame(0x12345678, publish("m/large", string(make([]byte, 2000)), 9))
	s := segment{client: 5, port: 7, flags: 0x18, window: 64, seq: 5000, ack: 6000, tsval: 70, tsecr: 80}
	for _, payload := range [][]byte{frame(0xdeadbeef, publish("m/1", `{"seq":1}`, 1)), two, large[:3], large[3:1001], large[1001:]} {
		s.payload = payload
		out = append(out, s.packet())
		s.seq += uint32(len(payload))
		s.id++
	}
	return out
}

func syn() []byte {
	b := segment{client: 9, flags: 2, window: 64240, seq: 77, tsval: 5}.packet()
	opts := []byte{2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 1, 3, 3, 7}
	b = append(b[:40], opts...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	b[32] = 10 << 4
	fixIP(b)
	fixSum(b)
	return b
}

func fixIP(b []byte) {
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^sum16(b[:20]))
}

func udp() []byte {
	b := segment{client: 4, payload: []byte("datagram")}.packet()
	b[9] = 17
	b = append(b[:28], "datagram"...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	b[26], b[27] = 0, 0
	fixIP(b)
	return b
}

func icmp() []byte {
	b := udp()
	b[9], b[20], b[21] = 1, 8, 0
	fixIP(b)
	return b
}

func fragment() []byte {
	b := udp()
	b[6], b[7] = 0x20, 3
	fixIP(b)
	return b
}

func ipv6tcp() []byte {
	v4 := segment{client: 1, flags: 0x18, seq: 5, ack: 6, window: 7, tsval: 8, tsecr: 9, payload: publish("six", "hello", 0)}.packet()
	b := make([]byte, 40, 40+len(v4)-20)
	b[0], b[3], b[6], b[7] = 0x60, 0x42, 6, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(v4)-20))
	b[8], b[23], b[24], b[39] = 0xfd, 1, 0xfd, 2
	b = append(b, v4[20:]...)
	t := b[40:]
	t[16], t[17] = 0, 0
	sum := sum16(b[8:40]) // carries are folded by adding halves
	total := uint32(sum) + 6 + uint32(len(t)) + uint32(sum16(t))
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	binary.BigEndian.PutUint16(t[16:], ^uint16(total))
	return b
}

func sum16(b []byte) uint16 {
	n := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		n += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if len(b)%2 == 1 {
		n += uint32(b[len(b)-1]) << 8
	}
	for n>>16 != 0 {
		n = n&0xffff + n>>16
	}
	return uint16(n)
}

// play reads a script of packets and moments from data and checks that all of
// it comes through. Each operation is a byte that says which base packet, one
// that says which way, when, and how many bytes to change, and those changes. Where
// frames are late, it also says when one arrives.
func play(t tester, cfg Config, late bool, data []byte) {
	p := newPair(t, cfg)
	p.late = late
	p.long = true // a script can teach the model of texts what does not come then
	all := bases()
	now := time.Duration(0)
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b)
	}
	last := [2][]byte{all[0], all[0]}
	for len(data) > 0 {
		which, how := next(), next()
		d := how & 1
		b := append([]byte(nil), last[d]...)
		switch {
		case which < 2*len(all):
			b = append([]byte(nil), all[which/2]...)
		case which >= 250: // bytes as they come
			n := min(next(), len(data))
			b = append([]byte(nil), data[:n]...)
			data = data[n:]
		default: // the next segment of the flow
			if len(b) >= 40 && b[0] == 0x45 && b[9] == 6 {
				seq := binary.BigEndian.Uint32(b[24:])
				binary.BigEndian.PutUint32(b[24:], seq+uint32(len(b))-20-uint32(b[32]>>4)*4)
				binary.BigEndian.PutUint16(b[4:], binary.BigEndian.Uint16(b[4:])+1)
			}
		}
		for range how >> 1 & 7 {
			at, v := next(), next()
			if at < len(b) {
				b[at] = byte(v)
			}
		}
		if how&0x10 != 0 && len(b) >= 40 && b[0] == 0x45 && b[9] == 6 {
			fixIP(b)
			fixSum(b)
		}
		if len(b) > 0 {
			last[d] = b
			p.run(d, now, b)
		}
		if how&0x20 != 0 {
			now += time.Duration(next()) * 100 * time.Microsecond
		}
		if how&0x40 != 0 {
			p.flush(d, now)
		}
		if how&0x80 != 0 {
			p.deliver(which & 1)
		}
	}
	p.settle(now)
}

func seeds(f *testing.F) {
	f.Add([]byte{})
	for i := range bases() {
		f.Add([]byte{byte(2 * i), 0x40, 100, 0x11, 100, 0x51, byte(2 * i), 0x47, 8, 3, 20, 200, 60, 0})
	}
	long := []byte{}
	for i := range 60 {
		long = append(long, byte(2*(i%29)), byte(0x20*(i%3)|i&1), byte(i))
	}
	f.Add(long)
	masked := []byte{}
	for i := range 12 { // the last five bases in turn, then the next segments of the flow
		masked = append(masked, byte(2*(len(bases())-5+i%5)), 0x20, 50, 200, 0x60, 100)
	}
	f.Add(masked)
	f.Add([]byte{250, 0, 3, 0x45, 0, 0, 255, 0x40, 0})
}

// FuzzMergeExpand: whatever goes in comes out, under small limits as well.
func FuzzMergeExpand(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		play(t, Config{Limits: wire.DefaultLimits}, true, data)
		play(t, Config{Window: -1, Limits: small(2)}, false, data)
		play(t, Config{Limits: small(3 + len(data)%6)}, true, data)
	})
}

// FuzzExpander: arbitrary frames are refused, or give packets inside the limits.
func FuzzExpander(f *testing.F) {
	f.Add([]byte{0x0a, 0, 0, 0, 0, 0xff}, false)
	for i, b := range bases() {
		p := newPair(f, Config{})
		p.ends[0].Merger.Add(0, b)
		f.Add(p.ends[0].Merger.Flush(nil, 0, FlushEnd)[5:], i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, control []byte, warm bool) {
		limits := wire.Limits{Flows: 64, Templates: 16, Bodies: 1 << 12, Packets: 100, Bytes: wire.MaxPacket}
		if len(control)%2 == 1 {
			limits = small(2 + len(control)%7)
		}
		cfg := Config{Limits: limits}
		p := newPair(t, cfg)
		if warm {
			fan := newFanout(5)
			for range 3 {
				fan.send(func(i int) []byte { return publish("a/b", body(fan.round), i) }, p.run)
			}
			p.due(time.Hour)
		}
		x := &p.ends[1].Expander
		for len(control) > 0 && x.broken == nil {
			n := min(len(control), 1+int(control[0])%64)
			part := control[:n]
			control = control[n:]
			// Most frames fail at their digest, after all the rest was done.
			frame := wire.AppendFrame(nil, wire.Frame{Control: part, Literals: part[n/2:]})
			if n%2 == 0 {
				frame = wire.AppendFrame(nil, wire.Frame{Control: part})
			}
			packets, _, err := x.Expand(frame)
			if err != nil && !errors.Is(err, ErrFrame) {
				t.Fatalf("error of another kind: %v", err)
			}
			if err != nil && len(packets) > 0 {
				t.Fatal("packets with an error")
			}
			if len(x.ends) > int(limits.Packets)+1 || len(x.buf) > 2*wire.MaxPacket || len(x.flows) > int(limits.Flows) ||
				len(x.layouts.table) > int(limits.Templates) ||
				len(x.slots.table) > int(limits.Templates) || x.slots.bytes > int(limits.Bodies)+maxBody {
				t.Fatalf("limits passed: %d packets, %d bytes, %d contexts, %d layouts, %d slots of %d bytes",
					len(x.ends), len(x.buf), len(x.flows), len(x.layouts.table), len(x.slots.table), x.slots.bytes)
			}
		}
	})
}

// Anything that a script can do comes through whatever the configuration.
func TestAnythingComesThrough(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Window:      time.Duration(rapid.IntRange(-1, 1000).Draw(rt, "window")) * time.Millisecond,
			AckWait:     time.Duration(rapid.IntRange(-1, 100).Draw(rt, "ackwait")) * time.Millisecond,
			Similarity:  Similarity(rapid.IntRange(0, 31).Draw(rt, "similarity")),
			Compression: rapid.IntRange(-1, 22).Draw(rt, "compression"),
			Limits: wire.Limits{
				Flows: uint32(rapid.IntRange(1, 40).Draw(rt, "flows")), Templates: uint32(rapid.IntRange(1, 20).Draw(rt, "templates")),
				Bodies: uint32(rapid.IntRange(0, 5000).Draw(rt, "bodies")), Packets: uint32(rapid.IntRange(1, 50).Draw(rt, "packets")),
				Bytes: uint32(rapid.IntRange(1, 2).Draw(rt, "bytes") * wire.MaxPacket),
			},
		}
		if rapid.Bool().Draw(rt, "small tables") {
			cfg.Limits = small(rapid.IntRange(2, 8).Draw(rt, "places"))
		}
		play(rt, cfg, rapid.Bool().Draw(rt, "late"), rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(rt, "script"))
	})
}
