package aggregate

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

// hostile draws a packet that is meant to cost much: its header and payload are
// random, or random in places, and so is who it is from.
func hostile(t *rapid.T) []byte {
	seed := rapid.Uint64().Draw(t, "seed")
	r := rand.New(rand.NewPCG(seed, 1))
	random := func(b []byte) {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	payload := make([]byte, rapid.IntRange(0, 100).Draw(t, "payload"))
	random(payload)
	var b []byte
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); kind {
	case 0: // no packet at all
		return append(payload, 1)
	case 1:
		b = codectest.UDP()[:28]
		b = append(b, payload...)
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
		random(b[26:28])
	case 2:
		b = codectest.IPv6TCP()
		random(b[2:4])
		random(b[8:52])
		return b
	default:
		s := segment{
			Client: r.IntN(1 << 16), Port: r.IntN(20000), Seq: r.Uint32(), Ack: r.Uint32(), Flags: uint8(r.Uint32()),
			Window: uint16(r.Uint32()), ID: uint16(r.Uint32()), Payload: payload,
		}
		if kind > 5 {
			s.Client, s.Port = r.IntN(4), 0 // flows that are known
		}
		options := []byte{}
		for range r.IntN(4) {
			n := 2 + r.IntN(9)
			options = append(options, byte(r.IntN(40)), byte(n))
			options = append(options, make([]byte, n-2)...)
			random(options[len(options)-n+2:])
		}
		for len(options)%4 != 0 {
			options = append(options, 1)
		}
		if len(options) > 40 {
			options = options[:40]
		}
		b = s.With(options...)
		if r.IntN(2) == 0 {
			random(b[36:38])
		}
	}
	b[1], b[8] = byte(r.Uint32()), byte(r.Uint32())
	if rapid.Bool().Draw(t, "stranger") {
		random(b[12:24])
	}
	if r.IntN(4) > 0 {
		codectest.FixIP(b)
	}
	return b
}

// Whatever comes, a frame is at most a few bytes longer than what it carries, for
// each packet: pair.flush holds that in all other tests as well.
func TestFramesAreHardlyLonger(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(rt, Config{Window: time.Hour, AckWait: time.Hour, Compression: rapid.IntRange(-1, 3).Draw(rt, "compression")})
		for range rapid.IntRange(1, 12).Draw(rt, "frames") {
			if rapid.Bool().Draw(rt, "friendly") { // teaches the models the opposite
				for n := range rapid.IntRange(1, 40).Draw(rt, "alike") {
					s := data(1, "alike")
					s.Seq += uint32(n)
					p.add(0, 0, s.Packet())
				}
				p.flush(0, 0)
			}
			for range rapid.IntRange(1, 6).Draw(rt, "packets") {
				p.add(0, 0, hostile(rt))
			}
			p.flush(0, 0)
		}
	})
}

// Frames stay below the length that a reader accepts, however much the packets'
// headers take and whatever fills their holes.
func TestFramesOfLongHeaders(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	long := codectest.IPv6TCP()
	extension := make([]byte, 160)
	extension[0], extension[1], extension[2] = 6, byte(len(extension)/8-1), 30
	long = append(long[:40:40], append(extension, long[40:]...)...)
	long[6] = 60
	binary.BigEndian.PutUint16(long[4:], uint16(len(long)-40))
	p := newPair(t, Config{Window: time.Hour, AckWait: time.Hour})
	for n := range 3 * int(wire.DefaultLimits.Packets) {
		binary.BigEndian.PutUint32(long[24:], uint32(n)) // each of a flow of its own
		for i := 43; i < 200; i++ {
			long[i] = byte(r.Uint32())
		}
		p.run(0, 0, long)
	}
	p.flush(0, 0)
	if p.ends[0].Merger.Stats().Verbatim > 0 {
		t.Error("packets went as they are")
	}
}
