package firsthop

import (
	"net/netip"
	"testing"
)

// hot returns a Router with n guests by configuration, whose ports do nothing by themselves,
// and a frame of the first one, of as many bytes as a small message has.
func hot(t testing.TB, n int) (r *Router, first *port, frame []byte) {
	t.Helper()
	r, err := New(Config{Addresses: testPrefixes, Between: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	for i := range n {
		mac := [6]byte{0x52, 0x54, 0, 0, 0, byte(i)}
		r.mu.Lock()
		p, err := r.plug(string(rune('a'+i)), newWire(), PortConfig{MAC: mac[:], Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, 0, byte(20 + i)}), nth(i)}})
		r.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = p
		}
	}
	return r, first, ipFrame([6]byte{0x52, 0x54}, udp(netip.MustParseAddr("10.1.0.20"), far4, 160-14-28))
}

// giveAll takes what waits for a guest, as send does.
func (p *port) giveAll(taken []*frame) { p.queue.giveBack(p.queue.take(taken)) }

// A packet of a known guest and one to it cost no memory.
func TestHotPathDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector a sync.Pool forgets by chance")
	}
	r, p, v4 := hot(t, 8)
	v6 := ipFrame([6]byte{0x52, 0x54}, udp(nth(0), far6, 100))
	between := ipFrame([6]byte{0x52, 0x54}, udp(netip.MustParseAddr("10.1.0.20"), netip.MustParseAddr("10.1.0.21"), 100))
	packets := [][]byte{udp(far4, netip.MustParseAddr("10.1.0.20"), 100), udp(far6, nth(0), 1400)}
	other := r.ports["b"]
	taken := make([]*frame, 0, 16)
	for name, step := range map[string]func(){
		"from a guest": func() {
			if p.input(v4) == nil || p.input(v6) == nil {
				t.Fatal("not passed")
			}
		},
		"between guests": func() { p.input(between); other.giveAll(taken) },
		"to a guest": func() {
			if err := r.Write(packets); err != nil {
				t.Fatal(err)
			}
			p.giveAll(taken)
		},
		"spoofed": func() { p.input(ipSpoofed) },
	} {
		if n := testing.AllocsPerRun(1000, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

var ipSpoofed = ipFrame([6]byte{0x52, 0x54}, udp(netip.MustParseAddr("10.9.0.20"), far4, 100))

// BenchmarkFromGuest is what a frame of 160 bytes costs from where its link has put it to
// where Read copies it.
func BenchmarkFromGuest(b *testing.B) {
	_, p, frame := hot(b, 8)
	frame6 := ipFrame([6]byte{0x52, 0x54}, udp(nth(0), far6, 160-14-48))
	for name, f := range map[string][]byte{"IPv4": frame, "IPv6": frame6} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p.input(f) == nil {
					b.Fatal("not passed")
				}
			}
		})
	}
}

// BenchmarkToGuest is what such a packet costs from Write to its link, the queue included.
func BenchmarkToGuest(b *testing.B) {
	r, p, _ := hot(b, 8)
	taken := make([]*frame, 0, 16)
	for name, packet := range map[string][]byte{"IPv4": udp(far4, netip.MustParseAddr("10.1.0.20"), 118), "IPv6": udp(far6, nth(0), 98)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			packets := [][]byte{packet, packet, packet, packet, packet, packet, packet, packet}
			for n := 0; b.Loop(); n++ {
				if n%len(packets) == 0 {
					if err := r.Write(packets); err != nil {
						b.Fatal(err)
					}
					p.giveAll(taken)
				}
			}
		})
	}
}
