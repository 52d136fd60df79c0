package capgen

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// writeOddity returns the packets of the oddity of a name.
func writeOddity(t *testing.T, name string) [][]byte {
	t.Helper()
	for _, odd := range oddities {
		if odd.name != name {
			continue
		}
		var packets [][]byte
		odd.write(&oddWriter{
			rng:    rand.New(rand.NewPCG(1, 1)),
			number: 1,
			emit: func(_ time.Duration, p []byte) error {
				packets = append(packets, p)
				return nil
			},
		})
		return packets
	}
	t.Fatalf("no oddity %q", name)
	return nil
}

func TestEveryOddityHasPackets(t *testing.T) {
	names := map[string]bool{}
	for _, odd := range oddities {
		if names[odd.name] {
			t.Errorf("%s: twice", odd.name)
		}
		names[odd.name] = true
		packets := writeOddity(t, odd.name)
		if len(packets) == 0 {
			t.Errorf("%s: no packets", odd.name)
		}
		for i, p := range packets {
			if len(p) == 0 || len(p) > 1<<16-1 {
				t.Errorf("%s: packet %d has %d bytes", odd.name, i, len(p))
			}
		}
	}
}

func TestBothFormsOfZeroChecksum(t *testing.T) {
	for i, p := range writeOddity(t, "checksum 0x0000 and its other form 0xFFFF") {
		check := binary.BigEndian.Uint16(p[36:])
		h := ipHeader{src: brokerAddr(false), dst: clientAddr(1001, false)}
		if i == 2 || i == 5 { // the acknowledgements
			continue
		}
		if got := transportChecksum(&h, protoTCP, p[20:]); got != 0 {
			t.Errorf("packet %d: the sum with the checksum is %#04x, want 0: both forms are right", i, ^got)
		}
		if want := map[int]uint16{0: 0, 1: 0xffff, 3: 0, 4: 0xffff}[i]; check != want {
			t.Errorf("packet %d: checksum %#04x, want %#04x", i, check, want)
		}
	}
}

func TestOneTCPChecksumIsBad(t *testing.T) {
	bad := 0
	for _, p := range writeOddity(t, "bad TCP checksum") {
		pseudo := sum(p[12:20], protoTCP+uint64(len(p)-20))
		if fold(sum(p[20:], pseudo)) != 0xffff {
			bad++
		}
	}
	if bad != 2 {
		t.Errorf("%d bad checksums, want 2", bad)
	}
}

func TestFragmentsAddUp(t *testing.T) {
	whole := appendSegment(nil, &segment{ip: ipHeader{src: brokerAddr(false), dst: clientAddr(0, false), ttl: 64, frag: dontFragment}}, make([]byte, 1000))
	got := append([]byte{}, whole[:20]...)
	for _, part := range fragmentIPv4(whole, 320) {
		p := gopacket.NewPacket(part, layers.LayerTypeIPv4, gopacket.Default)
		ip := p.NetworkLayer().(*layers.IPv4)
		if int(ip.FragOffset)*8 != len(got)-20 || int(ip.Length) != len(part) || fold(sum(part[:20], 0)) != 0xffff {
			t.Errorf("fragment at %d of %d bytes: offset %d, length %d", len(got)-20, len(part), ip.FragOffset*8, ip.Length)
		}
		got = append(got, part[20:]...)
	}
	if string(got) != string(whole) {
		t.Error("the fragments do not add up to the packet")
	}
}
