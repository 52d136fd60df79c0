package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
)

// A mode is found from the checksum, and the checksum from its mode. Where right is one
// of the two ways to write zero, the other one has a mode as well.
func TestResolve(t *testing.T) {
	for _, tt := range []struct {
		sum, right, partial uint16
		mode                sumMode
	}{
		{0x1234, 0x1234, 0x5678, sumRight},
		{0x5678, 0x1234, 0x5678, sumPartial},
		{0x1234, 0x1234, 0x1234, sumRight},
		{0, 0x1234, 0x5678, sumZero},
		{0, 0x1234, 0, sumPartial},
		{0xffff, 0x1234, 0x5678, sumExplicit},
		{0x1235, 0x1234, 0x5678, sumExplicit},
		{0, 0, 0x5678, sumRight},
		{0xffff, 0, 0x5678, sumOther},
		{0xffff, 0xffff, 0x5678, sumRight},
		{0, 0xffff, 0x5678, sumOther},
	} {
		f := Fields{sum: tt.sum, sumMode: unresolved}
		if f.resolve(tt.right, tt.partial); f.sumMode != tt.mode || f.sum != tt.sum {
			t.Errorf("%04x where %04x is right: mode %d, expected %d; %04x", tt.sum, tt.right, f.sumMode, tt.mode, f.sum)
		}
		if tt.mode != sumExplicit {
			f.sum = 0x9999
		}
		if f.resolve(tt.right, tt.partial); f.sum != tt.sum || f.sumMode != tt.mode {
			t.Errorf("mode %d where %04x is right: %04x, expected %04x", tt.mode, tt.right, f.sum, tt.sum)
		}
	}
}

// The header checksum is right or explicit to begin with, which of its two other modes it
// has is found later; once the modes are known it is what they say.
func TestResolveIP(t *testing.T) {
	f := Fields{ipSum: 7, sumMode: unresolved, ipSumMode: ipSumSame}
	if f.resolveIP(7); f.ipSumMode != ipSumRight {
		t.Errorf("a right one has mode %d", f.ipSumMode)
	}
	if f.resolveIP(8); f.ipSumMode != ipSumExplicit || f.ipSum != 7 {
		t.Errorf("a wrong one has mode %d, and is %d", f.ipSumMode, f.ipSum)
	}
	f = Fields{ipSum: 7, sumMode: sumRight, ipSumMode: ipSumRight}
	if f.resolveIP(9); f.ipSum != 9 {
		t.Errorf("it is %d where 9 is right", f.ipSum)
	}
	f.ipSumMode = ipSumSame
	if f.resolveIP(8); f.ipSum != 9 || f.ipSumMode != ipSumSame {
		t.Errorf("it became %d, with mode %d", f.ipSum, f.ipSumMode)
	}
}

// Both modes are one number, which tells each pair from the others.
func TestSums(t *testing.T) {
	seen := map[uint8]bool{}
	for ip := range numIPSumModes {
		for mode := range numSumModes {
			f := Fields{sumMode: mode, ipSumMode: ip}
			n := f.sums()
			if seen[n] || n >= uint8(numSumModes)*uint8(numIPSumModes) || n%uint8(numSumModes) != uint8(mode) {
				t.Errorf("modes %d and %d are %d", mode, ip, n)
			}
			seen[n] = true
		}
	}
}

// Checksums as last time take next to nothing, whatever last time was; 16 bits are what
// each takes that is explicit.
func TestCodeSums(t *testing.T) {
	const n = 20
	for _, tt := range []struct {
		name     string
		ip       ipSumMode
		mode     sumMode
		most     float64
		least    float64
		otherwas bool
	}{
		{name: "right", most: 0.2},
		{name: "partial", mode: sumPartial, most: 0.2},
		{name: "the same wrong one", ip: ipSumSame, mode: sumZero, most: 0.2},
		{name: "explicit", mode: sumExplicit, most: 16*n + 0.2, least: 16 * n},
		{name: "explicit in the header", ip: ipSumExplicit, most: 16*n + 0.2, least: 16 * n},
		{name: "both explicit", ip: ipSumExplicit, mode: sumExplicit, most: 32*n + 0.2, least: 32 * n},
		{name: "another mode than last time", mode: sumPartial, otherwas: true, most: 3, least: 1e-3},
	} {
		p := newTwins(t, n)
		p.both(func(s *state) {
			for i, f := range s.contexts {
				f.ipSum = uint16(40000 + i)
				if f.sums = uint8(numSumModes)*uint8(tt.ip) + uint8(tt.mode); tt.otherwas {
					f.sums = 0
				}
			}
		})
		fill := each(func(i int, mb *Member) {
			mb.sumMode, mb.ipSumMode, mb.sum, mb.ipSum = tt.mode, tt.ip, uint16(7*i), uint16(9*i)
		})
		var read *Group
		bits := 0.0
		for range 80 {
			_, read, bits = p.code(fill, (*codec).codeSums)
		}
		atMost(t, tt.name, bits, tt.most)
		atLeast(t, tt.name, bits, tt.least)
		for i := range read.Members {
			mb := &read.Members[i]
			if mb.sumMode != tt.mode || mb.ipSumMode != tt.ip {
				t.Errorf("%s: modes %d and %d", tt.name, mb.sumMode, mb.ipSumMode)
			}
			if tt.mode == sumExplicit && mb.sum != uint16(7*i) || tt.ip == ipSumExplicit && mb.ipSum != uint16(9*i) ||
				tt.ip == ipSumSame && mb.ipSum != uint16(40000+i) {
				t.Errorf("%s: member %d has %d and %d", tt.name, i, mb.sum, mb.ipSum)
			}
		}
	}
}

// There are 15 pairs of modes in IPv4, and without a header checksum 5.
func TestCodeSumsIsBounded(t *testing.T) {
	for kind, last := range map[Kind]int{TCP4: 14, IP4: 14, TCP6: 4, IP6: 4} {
		for n := range 17 {
			p := newTwins(t, 1)
			err := p.refused(func(g *Group) {
				g.Members[0].sumMode, g.Members[0].ipSumMode = sumMode(n%5), ipSumMode(n/5)
			}, func(x *codec, g *Group) error {
				g.Kind = kind
				return x.codeSums(g)
			})
			if errors.Is(err, ErrFrame) != (n > last) {
				t.Errorf("kind %d, modes %d: %v", kind, n, err)
			}
		}
	}
	p := newTwins(t, 1)
	p.w.contexts[0].sums, p.r.contexts[0].sums = 2, 1 // two less is none
	if err := p.refused(func(*Group) {}, (*codec).codeSums); !errors.Is(err, ErrFrame) {
		t.Errorf("modes below zero: %v", err)
	}
}

// What a host sends to itself has a header checksum of 0, or another value that stays,
// and a transport checksum that is only begun. It costs no more than right ones do.
func TestOddChecksumsArePredicted(t *testing.T) {
	cost := func(spoil func(b []byte)) int {
		x := newExchange(t, Config{})
		f := codectest.NewFanout(20)
		before := 0
		for range 40 {
			if f.Round == 20 {
				before = x.bytes[0] + x.bytes[1]
			}
			f.Send(func(int) []byte { return codectest.Publish("plant/4/alarms", time.Duration(f.Round).String(), 0) }, func(d int, now time.Duration, b []byte) {
				spoil(b)
				x.run(d, now, b)
			})
		}
		x.settle()
		return x.bytes[0] + x.bytes[1] - before
	}
	right := cost(func([]byte) {})
	for name, spoil := range map[string]func(b []byte){
		"left to the card": func(b []byte) { b[10], b[11] = 0, 0; partial(b) },
		"one value":        func(b []byte) { b[10], b[11] = 0xde, 0xad },
	} {
		if got := cost(spoil); got > right+20 { // a decision each frame, nearly sure
			t.Errorf("%s: %d bytes, %d with right checksums", name, got, right)
		}
	}
	n := uint16(0)
	if got := cost(func(b []byte) { n += 40503; binary.BigEndian.PutUint16(b[10:], n) }); got < right+1500 { // two for each of 800 packets
		t.Errorf("checksums that cannot be predicted: %d bytes, %d with right ones", got, right)
	}
}

// Whatever is in the places of the checksums comes out again, from flow to flow
// and from one packet of a flow to the next.
func TestAnyChecksumsComeThrough(t *testing.T) {
	s := codectest.Segment{Client: 1, Flags: 0x18, Window: 9, Seq: 5, Ack: 6, TSval: 8, TSecr: 9, Payload: []byte("payload")}
	other := s
	other.Client = 2
	bases := [][]byte{s.Packet(), other.Packet(), codectest.UDP(), codectest.ICMP(), codectest.Fragment(), codectest.IPv6TCP()}
	rapid.Check(t, func(rt *rapid.T) {
		x := newExchange(rt, Config{})
		sums := rapid.SampledFrom([]int{-1, 0, 0xffff, 1, 0x5a5a}) // -1: as it is
		for range rapid.IntRange(1, 30).Draw(rt, "packets") {
			b := bytes.Clone(rapid.SampledFrom(bases).Draw(rt, "base"))
			at := []int{-1, 36, 26}[map[byte]int{6: 1, 17: 2}[b[9]]]
			if b[0]>>4 == 6 {
				at = 56
			} else if v := sums.Draw(rt, "header"); v >= 0 {
				binary.BigEndian.PutUint16(b[10:], uint16(v))
			}
			if v := sums.Draw(rt, "transport"); v >= 0 && at >= 0 {
				binary.BigEndian.PutUint16(b[at:], uint16(v))
			}
			if x.add(0, b); rapid.Bool().Draw(rt, "flush") {
				x.flush(0)
			}
		}
		x.flush(0)
		for _, g := range x.last[0].groups {
			if g.Kind == Verbatim {
				rt.Fatal("a packet goes as it is")
			}
		}
	})
}
