package aggregate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// frame is a WebSocket frame with binary data; masked, as clients send it, where
// key is not 0.
func frame(key uint32, data []byte) []byte {
	b := []byte{0x82, byte(len(data))}
	if len(data) > 125 {
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
	}
	if key == 0 {
		return append(b, data...)
	}
	b[1] |= 0x80
	return parsers.Mask(binary.BigEndian.AppendUint32(b, key), data, key, 0)
}

// publishers open a WebSocket, send what payload makes of each in turn, in
// segments, and return how many bytes of frames a message takes once the first few are known.
func publishers(t *testing.T, n, rounds, warm int, payload func(i, round int) []byte) float64 {
	t.Helper()
	p := newPair(t, Config{})
	flows := make([]segment, n)
	for i := range flows {
		flows[i] = segment{
			Client: i, Port: i, Flags: 0x18, Window: 64, Seq: uint32(i) * 7919, Ack: 5,
			ID: uint16(i * 31), TSval: uint32(i)*65537 + 1, TSecr: uint32(i)*257 + 1,
		}
	}
	before := 0
	now := time.Duration(0)
	for round := range rounds {
		if round == warm {
			before = p.bytes[0]
		}
		for i := range flows {
			now += 10 * ms
			s := &flows[i]
			b := payload(i, round)
			if round == 0 {
				b = []byte("GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n")
			}
			for len(b) > 0 {
				s.Payload = b[:min(len(b), 1448)]
				b = b[len(s.Payload):]
				out := *s
				out.TSval += uint32(now / ms)
				p.run(0, now, out.Packet())
				s.Seq += uint32(len(s.Payload))
				s.ID++
			}
		}
		p.due(now + 50*ms)
	}
	return float64(p.bytes[0]-before) / float64(n*(rounds-warm))
}

// reading is telemetry that looks alike: of a device, with values that move.
func reading(i, round int) []byte {
	return codectest.Publish(fmt.Sprintf("site/1/dev/%d/telemetry", i), fmt.Sprintf(
		`{"dev":"dev-%04d","seq":%d,"t":%d.%d,"bat":%d,"st":"ok"}`, i, round, 20+(i+round)%3, (i*7+round*3)%10, 97-round/20), 1+round)
}

// Masks cost their keys, four bytes for each message, and little else.
func TestMasksCostTheirKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	key := func() uint32 { return max(1, random.Uint32()) }
	ack := func(_, round int) []byte { return []byte{0x40, 2, 0, byte(1 + round)} }
	large := strings.Repeat("a large body that is the same each time, ", 120)
	for _, tt := range []struct {
		name    string
		payload func(i, round int) []byte
		most    float64 // bytes for a mask
	}{
		{"telemetry", reading, 5},
		{"acknowledgements", ack, 5},
		{"over several segments", func(i, _ int) []byte { return codectest.Publish(fmt.Sprint("dev/", i), large, 0) }, 6},
	} {
		plain := publishers(t, 20, 60, 20, func(i, round int) []byte { return frame(0, tt.payload(i, round)) })
		masked := publishers(t, 20, 60, 20, func(i, round int) []byte { return frame(key(), tt.payload(i, round)) })
		constant := publishers(t, 20, 60, 20, func(i, round int) []byte { return frame(0x01020304, tt.payload(i, round)) })
		t.Logf("%s: %.2f bytes for a message without masks, %.2f with, %.2f with the same key each time", tt.name, plain, masked, constant)
		if masked-plain > tt.most || masked-plain < 3.5 {
			t.Errorf("%s: %.2f bytes for a message, %.2f without masks", tt.name, masked, plain)
		}
		if constant-plain > 0.5 {
			t.Errorf("%s: %.2f bytes for a message with the same key each time, %.2f without masks", tt.name, constant, plain)
		}
	}
}

// The second message of a masked frame goes on with the first one's mask.
func TestMaskGoesOnInTheSegment(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	two := func(key uint32) func(i, round int) []byte {
		return func(i, round int) []byte {
			return frame(key*random.Uint32(), append(reading(i, round), reading(i, round)...))
		}
	}
	plain, masked := publishers(t, 10, 40, 20, two(0)), publishers(t, 10, 40, 20, two(1))
	t.Logf("%.2f bytes for two messages in a frame, %.2f masked", plain, masked)
	if masked-plain > 6 {
		t.Errorf("%.2f bytes for two messages in a frame, %.2f masked", plain, masked)
	}
}

// Whatever segments a masked stream comes in, and whichever are missing, late or
// there twice, they come through.
func TestMaskedStreamsComeThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPair(t, Config{})
		now := time.Duration(0)
		for client := range rapid.IntRange(1, 3).Draw(t, "clients") {
			var stream []byte
			for range rapid.IntRange(1, 12).Draw(t, "frames") {
				m := codectest.Publish("a/b", strings.Repeat("body ", rapid.IntRange(0, 60).Draw(t, "size")), rapid.IntRange(0, 3).Draw(t, "id"))
				if rapid.Bool().Draw(t, "two") {
					m = append(m, codectest.Publish("c", "other", 0)...)
				}
				b := frame(rapid.Uint32().Draw(t, "key"), m)
				if rapid.IntRange(0, 9).Draw(t, "damage") == 0 {
					b[rapid.IntRange(0, len(b)-1).Draw(t, "where")] ^= rapid.Byte().Draw(t, "by")
				}
				stream = append(stream, b...)
			}
			s := segment{Client: client, Flags: 0x18, Window: 64, Ack: 1, TSval: 5, TSecr: 6}
			for at := 0; at < len(stream); {
				end := min(len(stream), at+rapid.SampledFrom([]int{1, 2, 5, 7, 40, 200, 1448}).Draw(t, "piece"))
				out := s
				out.Seq, out.Payload = uint32(at), stream[at:end]
				now += 300 * time.Microsecond
				switch rapid.IntRange(0, 9).Draw(t, "fate") {
				case 0: // lost
				case 1: // again, and more with it
					p.run(0, now, out.Packet())
					back := rapid.IntRange(0, at).Draw(t, "back")
					out.Seq, out.Payload = uint32(back), stream[back:end]
					fallthrough
				default:
					p.run(0, now, out.Packet())
				}
				at = end
			}
		}
		p.flush(0, now)
	})
}

// A scanner that is wrong about a mask costs bytes, never correctness.
func TestTrustMask(t *testing.T) {
	const key = 0x01020304
	payload := []byte("ab\x01\x02\x03\x04" + "9876543210")
	parsers.MaskInPlace(payload[6:], key, 0)
	mask := func(h parsers.Hole, more ...parsers.Hole) []parsers.Span {
		h.Kind = parsers.HoleMask
		s := parsers.Span{Len: len(payload), Protocol: 1, NumHoles: 1 + len(more)}
		copy(s.Holes[:], append([]parsers.Hole{h}, more...))
		return []parsers.Span{s}
	}
	digits := parsers.Hole{Off: 6, Len: 4, Kind: parsers.HoleDecimal}
	for _, tt := range []struct {
		name  string
		spans []parsers.Span
		want  string // the payload without its mask; empty where the spans are not trusted
	}{
		{"key", mask(parsers.Hole{Off: 2, Len: 4, Key: key}), "ab\x01\x02\x03\x049876543210"},
		{"digits behind it", mask(parsers.Hole{Off: 2, Len: 4, Key: key}, digits), "ab\x01\x02\x03\x049876543210"},
		{"no digits behind it", mask(parsers.Hole{Off: 6, Key: 0}, digits), ""},
		{"goes on", mask(parsers.Hole{Off: 6, Key: key}, digits), "ab\x01\x02\x03\x049876543210"},
		{"goes on in phase", mask(parsers.Hole{Off: 6, Key: 0x04010203, Phase: 1}), "ab\x01\x02\x03\x049876543210"},
		{"at the end", mask(parsers.Hole{Off: len(payload), Key: key}), string(payload)},
		{"at the begin", mask(parsers.Hole{Off: 0, Key: 0}), string(payload)},
		{"another key", mask(parsers.Hole{Off: 2, Len: 4, Key: key + 1}), ""},
		{"phase of a key", mask(parsers.Hole{Off: 2, Len: 4, Key: key, Phase: 1}), ""},
		{"no phase", mask(parsers.Hole{Off: 2, Key: key, Phase: 4}), ""},
		{"step", mask(parsers.Hole{Off: 2, Len: 4, Key: key, Step: 2}), ""},
		{"part of a key", mask(parsers.Hole{Off: 2, Len: 3, Key: key}), ""},
		{"past the end", mask(parsers.Hole{Off: len(payload) - 3, Len: 4, Key: key}), ""},
		{"far past the end", mask(parsers.Hole{Off: 1 << 62, Len: 4, Key: key}), ""},
		{"before the start", mask(parsers.Hole{Off: -1, Key: key}), ""},
		{"twice", mask(parsers.Hole{Off: 2, Len: 4, Key: key}, parsers.Hole{Off: 6, Kind: parsers.HoleMask}), ""},
		{"too long", []parsers.Span{{Len: 3}, mask(parsers.Hole{Off: 2, Len: 4, Key: key})[0]}, ""},
		{"negative length", []parsers.Span{{Len: -1, NumHoles: 1, Holes: [parsers.MaxHoles]parsers.Hole{{Kind: parsers.HoleMask}}}}, ""},
	} {
		m := Merger{spans: tt.spans}
		got := m.unmask(payload)
		trusted := len(m.spans) > 0 && m.spans[0].Protocol == 1
		switch {
		case tt.want == "" && (trusted || string(got) != string(payload)):
			t.Errorf("%s: trusted, %q", tt.name, got)
		case tt.want != "" && (!trusted || string(got) != tt.want):
			t.Errorf("%s: %+v, %q", tt.name, m.spans, got)
		}
	}
}
