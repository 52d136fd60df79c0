package aggregate

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

// bases are packets that fuzzing starts from.
func bases() [][]byte {
	tcp := segment{Client: 1, Port: 1, Flags: 0x18, Window: 64, Seq: 1000, Ack: 2000, ID: 5, TSval: 100, TSecr: 50}
	var out [][]byte
	for i, payload := range [][]byte{
		nil, codectest.Publish("a/b", `{"seq":1,"t":20.5}`, 0), codectest.Publish("a/b", `{"seq":2,"t":20.6}`, 7),
		{0x40, 2, 0, 7}, {0xc0, 0}, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), append(codectest.Publish("x", "1", 0), codectest.Publish("x", "2", 1)...),
		codectest.Publish("long", string(make([]byte, 3000)), 0)[:1400],
	} {
		s := tcp
		s.Payload = payload
		s.Client += i % 3
		out = append(out, s.Packet())
		s.Down, s.Seq, s.Ack = true, 2000, 1000+uint32(len(payload))
		out = append(out, s.Packet())
		s.TSval, s.TSecr = 0, 0
		out = append(out, s.Packet())
	}
	out = append(out, codectest.SYN(), codectest.UDP(), codectest.ICMP(), codectest.Fragment(), codectest.IPv6TCP())
	tcp.Options = codectest.SACKOption([2]uint32{500, 600}, [2]uint32{300, 400})
	out = append(out, tcp.Packet())
	// WebSocket, masked, from a flow of its own: whole frames, one with two
	// messages, and one in three segments.
	two := frame(0x0badcafe, append(codectest.Publish("m/1", "one", 3), codectest.Publish("m/2", "two", 0)...))
	large := frame(0x12345678, codectest.Publish("m/large", string(make([]byte, 2000)), 9))
	s := segment{Client: 5, Port: 7, Flags: 0x18, Window: 64, Seq: 5000, Ack: 6000, TSval: 70, TSecr: 80}
	for _, payload := range [][]byte{frame(0xdeadbeef, codectest.Publish("m/1", `{"seq":1}`, 1)), two, large[:3], large[3:1001], large[1001:]} {
		s.Payload = payload
		out = append(out, s.Packet())
		s.Seq += uint32(len(payload))
		s.ID++
	}
	return out
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
			codectest.FixIP(b)
			codectest.FixSum(b)
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
		m := newMerger(f, Config{})
		add(f, m, 0, b)
		f.Add(m.Flush(nil, 0, FlushEnd)[5:], i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, control []byte, warm bool) {
		limits := wire.Limits{Flows: 64, Templates: 16, Bodies: 1 << 12, Packets: 100, Bytes: wire.MaxPacket}
		if len(control)%2 == 1 {
			limits = small(2 + len(control)%7)
		}
		reader := func() *Expander {
			p := newPair(t, Config{Limits: limits})
			if warm {
				fan := codectest.NewFanout(5)
				for range 3 {
					fan.Send(func(i int) []byte { return codectest.Publish("a/b", body(fan.Round), i) }, p.run)
				}
				p.due(time.Hour)
			}
			return &p.ends[1].Expander
		}
		x, twin := reader(), reader() // which knows the digests
		for len(control) > 0 && x.broken == nil {
			n := min(len(control), 1+int(control[0])%64)
			frame := wire.Frame{Control: control[:n]}
			if control = control[n:]; n%2 == 1 {
				frame.Literals = frame.Control[n/2:]
			}
			r, refused := twin.decoder.Decode(frame.Control, frame.Literals)
			if refused == nil && n%8 != 0 {
				frame.Digest = r.Digest
				twin.merger.learn(twin.decoder)
			}
			packets, _, err := x.Expand(wire.AppendFrame(nil, frame))
			if (err != nil) != (refused != nil || frame.Digest != r.Digest) || err != nil && !errors.Is(err, ErrFrame) {
				t.Fatalf("%v, the decoder says %v", err, refused)
			}
			if err != nil && len(packets) > 0 {
				t.Fatal("packets with an error")
			}
			size := 0
			for _, b := range packets {
				size += len(b)
			}
			if len(packets) > int(limits.Packets) || size > int(limits.Bytes) || codectest.Size(x.decoder) > int(limits.Flows+limits.Templates) {
				t.Fatalf("limits passed: %d packets of %d bytes, %d contexts and templates", len(packets), size, codectest.Size(x.decoder))
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
