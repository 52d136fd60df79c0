package aggregate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
)

// datagram makes a UDP packet without a checksum of a segment.
func datagram(s segment) []byte {
	s.TSval, s.TSecr = 0, 0
	b := s.Packet()
	b = append(b[:28], s.Payload...)
	b[9] = 17
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	b[26], b[27] = 0, 0
	codectest.FixIP(b)
	return b
}

// noisy returns n packets of random payloads of least to most bytes behind a head,
// over 20 flows of TCP or UDP, and the bytes of payload.
func noisy(n, least, most int, head string, packet func(segment) []byte) (list [][]byte, payload int) {
	source := rand.NewChaCha8([32]byte{byte(n), byte(least), byte(most)})
	random := rand.New(source)
	var flows [20]segment
	for i := range n {
		s := &flows[i%len(flows)]
		s.Client, s.Port, s.Flags, s.Window = i%len(flows), i%len(flows), 0x18, 500
		s.Payload = append(make([]byte, 0, most), head...)
		s.Payload = s.Payload[:max(len(head), least+random.IntN(most-least+1))]
		source.Read(s.Payload[len(head):])
		payload += len(s.Payload)
		list = append(list, packet(*s))
		s.Seq += uint32(len(s.Payload))
		s.ID++
	}
	return list, payload
}

// overhead is what random payloads may cost beyond themselves: so much for each
// frame, with its digest, lengths and the counters of the headers, and for each
// packet; and a share, for what does not look random by chance.
func overhead(frames, packets, payload int) int { return 16*frames + 3*packets + payload/100 }

// contextCost is what a new flow costs, at most.
const contextCost = 24

// TestNoise holds that what looks random, of whatever size, costs what it is.
func TestNoise(t *testing.T) {
	for name, packet := range map[string]func(segment) []byte{"tcp": segment.Packet, "udp": datagram} {
		for _, size := range []struct{ least, most int }{{1, 11}, {12, 20}, {20, 60}, {60, 140}, {120, 400}, {400, 1400}, {1, 1400}} {
			for _, each := range []int{1, 20} {
				t.Run(fmt.Sprintf("%s/%d-%d/%d a frame", name, size.least, size.most, each), func(t *testing.T) {
					packets, payload := noisy(1000, size.least, size.most, "", packet)
					p := newPair(t, Config{Registry: parsers.NewRegistry()})
					for i, b := range packets {
						p.add(0, time.Duration(i)*ms, b)
						if (i+1)%each == 0 {
							p.flush(0, time.Duration(i)*ms)
						}
					}
					most := payload + overhead(p.count[0], len(packets), payload) + 20*contextCost
					if p.bytes[0] > most {
						t.Errorf("%d bytes for %d of payload, want at most %d", p.bytes[0], payload, most)
					}
				})
			}
		}
	}
}

// The same of any mix of sizes, protocols and flows.
func TestNoiseMixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := rand.NewChaCha8([32]byte{byte(rapid.IntRange(0, 255).Draw(t, "seed"))})
		p := newPair(t, Config{})
		flows := make([]segment, rapid.IntRange(1, 40).Draw(t, "flows"))
		rounds := rapid.IntRange(1, 8).Draw(t, "rounds")
		payload, packets := 0, 0
		for round := range rounds {
			for i := range flows {
				s := &flows[i]
				s.Client, s.Port, s.Flags, s.Window = i, 5000+i, 0x18, 500
				s.Payload = make([]byte, rapid.IntRange(1, 1400).Draw(t, "size"))
				source.Read(s.Payload)
				payload += len(s.Payload)
				packets++
				if i%2 == 0 {
					p.add(0, 0, s.Packet())
				} else {
					p.add(0, 0, datagram(*s))
				}
				s.Seq += uint32(len(s.Payload))
				s.ID++
			}
			p.flush(0, time.Duration(round)*ms)
		}
		// a run in a hundred does not look random, and costs up to a half more
		most := payload + overhead(rounds, packets, payload) + len(flows)*contextCost + 700
		if p.bytes[0] > most {
			t.Fatalf("%d bytes for %d of payload in %d packets and %d frames, want at most %d", p.bytes[0], payload, packets, rounds, most)
		}
	})
}

// TestNoiseBehind holds that what is known before random bytes is not sent with
// them, and that bytes that look random only to a model cost no more than they are.
func TestNoiseBehind(t *testing.T) {
	source := rand.NewChaCha8([32]byte{6})
	random := rand.New(source)
	fill := func(head string, n int) []byte {
		b := append([]byte(head), make([]byte, n)...)
		source.Read(b[len(head):])
		return b
	}
	for _, tt := range []struct {
		name     string
		payload  func(i, n int) []byte
		registry *parsers.Registry
		least, n int
		most     float64 // bytes for a byte of payload
	}{
		{"counter and ciphertext", func(i, n int) []byte {
			b := fill("\x04\x00\x00\x00\x17\x9a\x3b\xe1\x00\x00\x00\x00\x00\x00\x00\x00", n)
			binary.LittleEndian.PutUint64(b[8:], uint64(i/20))
			return b
		}, parsers.NewRegistry(), 40, 80, 0.95},
		{"records", func(i, n int) []byte {
			b := fill("\x17\xfe\xfd\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", n)
			binary.BigEndian.PutUint32(b[7:], uint32(i/20))
			binary.BigEndian.PutUint16(b[11:], uint16(n))
			return b
		}, parsers.NewRegistry(), 30, 90, 0.95},
		{"messages", func(i, n int) []byte {
			return codectest.Publish(fmt.Sprintf("site/plant/line%d/data", i%20), string(fill("", n)), 0)
		}, builtin.Registry(), 20, 200, 0.95},
		{"masked", func(i, n int) []byte {
			text := fmt.Sprintf(`{"device":"sensor-%d","temp":%d.%d,"humidity":%d,"status":"ok","seq":%d,"more":%d}`, i%20, 15+i*7%20, i%10, 40+i%30, i, random.Uint32())
			b := append(fill("\x82\xfe\x00", 5), text...)
			b[3] = byte(len(text))
			for k := range text {
				b[8+k] ^= b[4+k%4]
			}
			return b
		}, parsers.NewRegistry(), 0, 1, 1.06},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, Config{Registry: tt.registry})
			var flows [20]segment
			payload := 0
			for i := range 4000 {
				s := &flows[i%20]
				s.Client, s.Port, s.Flags, s.Window = i%20, i%20, 0x18, 500
				s.Payload = tt.payload(i, tt.least+random.IntN(tt.n))
				payload += len(s.Payload)
				p.add(0, time.Duration(i)*ms, s.Packet())
				s.Seq += uint32(len(s.Payload))
				s.ID++
				if i%20 == 19 {
					p.flush(0, time.Duration(i)*ms)
				}
			}
			got := float64(p.bytes[0]) / float64(payload)
			t.Logf("%.3f bytes for a byte of payload", got)
			if got > tt.most {
				t.Errorf("%.3f bytes for a byte of payload, want at most %.2f", got, tt.most)
			}
		})
	}
}

// TestTextAfterNoise holds that a flow of noise, and one of small noise that its
// edits did no good, costs as little as any other once it sends text.
func TestTextAfterNoise(t *testing.T) {
	text := func(i int) []byte {
		return fmt.Appendf(nil, `{"device":"pump-4","state":"running","temp":%d.%d,"n":%d}`, 20+i%3, i*7%10, 1000+i)
	}
	cost := func(noise int) int {
		source := rand.NewChaCha8([32]byte{8})
		p := newPair(t, Config{Registry: parsers.NewRegistry()})
		s := segment{Client: 1, Port: 1, Flags: 0x18, Window: 500}
		send := func(b []byte) {
			s.Payload = b
			p.add(0, 0, s.Packet())
			p.flush(0, 0)
			s.Seq += uint32(len(b))
			s.ID++
		}
		for range 100 {
			if noise > 0 {
				b := make([]byte, noise)
				source.Read(b)
				send(b)
			}
		}
		before := p.bytes[0]
		for i := range 100 {
			send(text(i))
		}
		return p.bytes[0] - before
	}
	plain := cost(0)
	for _, noise := range []int{8, 11, 60, 1000} {
		if got, most := cost(noise), plain+plain/10+(15+1)*len(text(0)); got > most {
			t.Errorf("%d bytes behind noise of %d, %d without", got, noise, plain)
		}
	}
}

// TestNoiseKeepsText holds that noise does not drive out what is remembered of
// others: each would else have a template of its own.
func TestNoiseKeepsText(t *testing.T) {
	limits := wire.DefaultLimits
	limits.Templates = 256
	p := newPair(t, Config{Registry: parsers.NewRegistry(), Limits: limits})
	s := segment{Client: 99, Port: 99, Flags: 0x18, Window: 500}
	send := func(n int) int {
		s.Payload = fmt.Appendf(nil, `{"device":"pump-4","state":"running","note":"as it was before","n":%d}`, n)
		before := p.bytes[0]
		p.add(0, 0, s.Packet())
		p.flush(0, 0)
		s.Seq += uint32(len(s.Payload))
		s.ID++
		return p.bytes[0] - before
	}
	for i := range 10 {
		send(i)
	}
	packets, _ := noisy(2000, 20, 200, "", datagram)
	for _, b := range packets {
		p.add(0, 0, b)
		p.flush(0, 0)
	}
	if n := send(10); n > 20 {
		t.Errorf("%d bytes for text like the one before the noise", n)
	}
}

// Copies of what looks random are found, also where each has a number of its own.
func TestNoiseCopies(t *testing.T) {
	source := rand.NewChaCha8([32]byte{10})
	p := newPair(t, Config{Registry: parsers.NewRegistry()})
	var flows [20]segment
	body := make([]byte, 304)
	const rounds = 20
	for round := range rounds {
		source.Read(body)
		for i := range flows {
			s := &flows[i]
			s.Client, s.Port, s.Down, s.Flags, s.Window = i, i, true, 0x18, 500
			s.Payload = append([]byte(nil), body...)
			binary.BigEndian.PutUint32(s.Payload[300:], uint32(i*7919+round))
			p.add(0, time.Duration(round)*ms, s.Packet())
			p.flush(0, time.Duration(round)*ms) // or zstd finds them
			s.Seq += uint32(len(s.Payload))
			s.ID++
		}
	}
	if most := rounds*3*len(body) + rounds*len(flows)*20; p.bytes[0] > most {
		t.Errorf("%d bytes, want at most %d", p.bytes[0], most)
	}
}

func BenchmarkNoise(b *testing.B) {
	for _, size := range []struct{ least, most int }{{20, 60}, {60, 140}, {120, 400}, {1000, 1400}, {20, 1400}} {
		for name, packet := range map[string]func(segment) []byte{"tcp": segment.Packet, "udp": datagram} {
			b.Run(fmt.Sprintf("%s/%d-%d", name, size.least, size.most), func(b *testing.B) {
				packets, payload := noisy(4000, size.least, size.most, "", packet)
				l, err := NewLane(Config{Registry: parsers.NewRegistry()})
				if err != nil {
					b.Fatal(err)
				}
				var frame []byte
				bytes, i := 0, 0
				b.ReportAllocs()
				for b.Loop() {
					l.Merger.Add(time.Duration(i)*time.Millisecond/20, packets[i%len(packets)])
					if i++; i%20 == 0 {
						frame = l.Merger.Flush(frame[:0], time.Duration(i)*time.Millisecond/20, FlushQuiet)
						bytes += len(frame)
					}
				}
				b.ReportMetric(float64(bytes)/float64(i)*float64(len(packets))/float64(payload), "bytes/byte")
			})
		}
	}
}
