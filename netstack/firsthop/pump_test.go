package firsthop

import (
	"bytes"
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/netstack"
)

// What is written goes to the guest that has the address, and is refused where none has it.
func TestWrite(t *testing.T) {
	addr := netip.MustParseAddr
	nobody := udp(far4, addr("10.1.0.99"), 0)
	nobody6 := udp(far6, addr("fd01::99"), 0)
	for _, tt := range []struct {
		name    string
		packet  []byte
		err     error
		changed string
		back    []byte
	}{
		{"to a guest", udp(far4, a4, 10), nil, "sent=1", nil},
		{"to a guest, IPv6", udp(far6, a6, 10), nil, "sent=1", nil},
		{"from another guest, by way of elsewhere", udp(b4, a4, 10), nil, "sent=1", nil},
		{"as long as the MTU", udp(far4, a4, 1500-28), nil, "sent=1", nil},
		{"headers cut off", packet6(far6, a6, 0, 17, 4, 0, 0), nil, "sent=1", nil},
		{"too big", udp(far4, a4, 1501-28), nil, "too_big=1", netstack.AppendTooBig(nil, udp(far4, a4, 1501-28), 1500, router4)},
		{"too big, IPv6", udp(far6, a6, 1501-48), nil, "too_big=1", netstack.AppendTooBig(nil, udp(far6, a6, 1501-48), 1500, router6)},
		{"too big, IPv6 headers cut off", packet6(far6, a6, 0, append([]byte{17, 255}, make([]byte, 1500)...)...), nil, "too_big=1", nil},
		{"to nobody in the prefix", nobody, errNoGuest, "", netstack.AppendUnreachable(nil, nobody, netstack.NoHost, router4)},
		{"to nobody, IPv6", nobody6, errNoGuest, "", netstack.AppendUnreachable(nil, nobody6, netstack.NoHost, router6)},
		{"to elsewhere", udp(far4, addr("10.9.0.1"), 0), errNoGuest, "", nil},
		{"broadcast", udp(far4, addr("10.1.0.255"), 0), errNoGuest, "", nil},
		{"multicast", udp(far4, addr("224.0.0.1"), 0), errNoGuest, "", nil},
		{"link-local", udp(far6, aLocal, 0), errNoGuest, "", nil},
		{"to the router", udp(far4, router4, 0), errNoGuest, "", nil},
		{"ping of the router", icmp6(64, "fd020000000000000000000000000010", hexRouter, "80000000 00070001 0102"), nil, "",
			icmp6(64, hexRouter, "fd020000000000000000000000000010", "81000000 00070001 0102")},
		{"no packet", []byte("no packet"), errMalformed, "", nil},
		{"nothing", nil, errMalformed, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLab(t, Config{}, func(l *lab) {
				a, b := l.two()
				before := slices.Clone(tt.packet)
				good := udp(far4, b4, 0)
				var err error
				d := l.changed("a", func() { err = l.Write([][]byte{tt.packet, good}) })
				if !errors.Is(err, tt.err) || d != tt.changed || !bytes.Equal(before, tt.packet) {
					t.Errorf("error %v, changed %q, packet %x", err, d, tt.packet)
				}
				kind := etherIPv4
				if len(tt.packet) > 0 && tt.packet[0]>>4 == 6 {
					kind = etherIPv6
				}
				switch got := only(t, a.take()); {
				case tt.changed != "sent=1" && got != nil:
					t.Errorf("the guest got %x", got)
				case tt.changed == "sent=1" && !bytes.Equal(got, frameOf(routerMAC, macA, kind, tt.packet)):
					t.Errorf("the guest got %x, want %x", got, tt.packet)
				}
				if got := only(t, b.take()); !bytes.Equal(got, frameOf(routerMAC, macB, etherIPv4, good)) {
					t.Errorf("the packet after it: %x", got)
				}
				if back := only(t, l.left()); !bytes.Equal(back, tt.back) {
					t.Errorf("back %x, want %x", back, tt.back)
				}
			})
		})
	}
}

// What goes back to who writes is bounded, in a second and while nobody reads.
func TestErrorsToElsewhereAreBounded(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		packet := [][]byte{udp(far4, netip.MustParseAddr("10.1.0.99"), 0)}
		n := 0
		for range outsideErrors + 10 {
			_ = l.Write(packet)
			n += len(l.left())
		}
		if n != outsideErrors {
			t.Errorf("%d errors at once, want %d", n, outsideErrors)
		}
		time.Sleep(time.Second)
		for range outsideErrors { // the reader does not come in between, or does
			_ = l.Write(packet)
		}
		if n := len(l.left()); n < outsideQueue || n > outsideErrors {
			t.Errorf("%d errors", n)
		}
	})
	r, err := New(Config{Addresses: testPrefixes})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 10 * outsideQueue {
		_ = r.Write([][]byte{udp(far4, netip.MustParseAddr("10.1.0.99"), 0)})
	}
	if len(r.answers) != outsideQueue {
		t.Errorf("%d wait, want %d", len(r.answers), outsideQueue)
	}
}

func TestClosed(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, _ := l.two()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Write([][]byte{udp(far4, a4, 0)}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("write: %v", err)
		}
		if _, err := l.Read(make([][]byte, 1), make([]int, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("read: %v", err)
		}
		w := newWire()
		if err := l.Plug("c", w, PortConfig{}); !errors.Is(err, os.ErrClosed) || !w.closed {
			t.Errorf("plug: %v", err)
		}
		if !a.closed || len(l.Ports()) != 0 {
			t.Error("ports are left")
		}
	})
}

// readOnce is one Read with room for so many packets.
func readOnce(t *testing.T, r *Router, room int) (packets [][]byte) {
	t.Helper()
	bufs, sizes := make([][]byte, room), make([]int, room)
	for i := range bufs {
		bufs[i] = make([]byte, 65535)
	}
	n, err := r.Read(bufs, sizes)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		packets = append(packets, bufs[i][:sizes[i]])
	}
	return packets
}

// quietly runs a test with a Router that the test reads itself.
func quietly(t *testing.T, cfg Config, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Addresses = testPrefixes
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		test(&lab{t: t, Router: r, wires: make(map[string]*wire)})
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// crowd plugs in guests with addresses by configuration: 10.1.0.20 and on.
func (l *lab) crowd(n int) (wires []*wire, macs [][6]byte, addresses []netip.Addr) {
	for i := range n {
		macs = append(macs, [6]byte{0x52, 0x54, 0, 0, 0, byte(i)})
		addresses = append(addresses, netip.AddrFrom4([4]byte{10, 1, 0, byte(20 + i)}))
		wires = append(wires, l.plug(string(rune('a'+i)), PortConfig{MAC: macs[i][:], Addresses: addresses[i : i+1]}))
	}
	return wires, macs, addresses
}

// A guest that floods gets one batch a round, as each that has something; its own link holds
// the rest. Of two to eight guests all but one flood, and the one passes within a round.
func TestFloodedReadIsFair(t *testing.T) {
	for guests := 2; guests <= 8; guests++ {
		quietly(t, Config{}, func(l *lab) {
			wires, macs, addresses := l.crowd(guests)
			const flood = 1000
			for i := range guests - 1 {
				wires[i].send(slices.Repeat([][]byte{ipFrame(macs[i], udp(addresses[i], far4, i))}, flood)...)
			}
			synctest.Wait()
			last := guests - 1
			wires[last].send(ipFrame(macs[last], udp(addresses[last], far4, last)))
			synctest.Wait()
			counts := make([]int, guests)
			for n := 0; n < guests*16; {
				packets := readOnce(t, l.Router, 24) // half of a batch is left for the next
				for _, p := range packets {
					counts[len(p)-28]++
				}
				n += len(packets)
				synctest.Wait()
			}
			if counts[last] != 1 {
				t.Errorf("%d guests: the one that does not flood is still waiting: %v", guests, counts)
			}
			for i := range last {
				if counts[i] < 16 || counts[i] > 3*16 {
					t.Errorf("%d guests: read of each in a round: %v", guests, counts)
				}
			}
			total := 0
			for n := (guests-1)*flood + 1 - sum(counts); total < n; {
				total += len(readOnce(t, l.Router, batch))
				synctest.Wait()
			}
		})
	}
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Packets of a guest keep their order, however little a Read takes.
func TestReadKeepsOrder(t *testing.T) {
	quietly(t, Config{}, func(l *lab) {
		wires, macs, addresses := l.crowd(1)
		for i := range 100 {
			wires[0].send(ipFrame(macs[0], udp(addresses[0], far4, i)))
		}
		for next := 0; next < 100; {
			for _, p := range readOnce(t, l.Router, 1+next%7) {
				if len(p)-28 != next {
					t.Fatalf("packet %d in the place of %d", len(p)-28, next)
				}
				next++
			}
			synctest.Wait()
		}
	})
}

// Once a port is taken out, what of its guest was not yet read is gone.
func TestUnplugWhileRead(t *testing.T) {
	quietly(t, Config{}, func(l *lab) {
		wires, macs, addresses := l.crowd(2)
		for i := range 40 {
			wires[0].send(ipFrame(macs[0], udp(addresses[0], far4, i)))
		}
		synctest.Wait()
		if n := len(readOnce(t, l.Router, 5)); n != 5 {
			t.Fatalf("%d packets", n)
		}
		if err := l.Unplug("a"); err != nil {
			t.Fatal(err)
		}
		wires[1].send(ipFrame(macs[1], udp(addresses[1], far4, 777)))
		synctest.Wait()
		if packets := readOnce(t, l.Router, batch); len(packets) != 1 || len(packets[0]) != 777+28 {
			t.Errorf("%d packets", len(packets))
		}
	})
}

// A guest that takes nothing holds up nobody, and what it has no room for is counted.
func TestStuckGuestHarmsNobody(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, b := l.two()
		a.setStuck(true)
		const packets = 2 * queueFrames
		for range packets {
			if err := l.Write([][]byte{udp(far4, a4, 0), udp(far4, b4, 0)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := len(b.take()); n != packets {
			t.Errorf("%d packets to the other guest, want %d", n, packets)
		}
		const most = queueFrames / 2 // one source's
		if c := l.counters("a"); c.Sent != most || c.Dropped != packets-most {
			t.Errorf("%d queued and %d dropped, want %d and %d", c.Sent, c.Dropped, most, packets-most)
		}
		// Its own questions do not keep the packets out, nor they its answers.
		if d := l.changed("a", func() {
			a.send(unhex(toAll + fromA + "0806" + arpHead + "0001" + fromA + "0a01000b" + zeroMAC + "0a010001"))
		}); d != "answered=1" {
			t.Errorf("a question: %s", d)
		}
		a.setStuck(false)
		synctest.Wait()
		if n := len(a.take()); n != most+1 {
			t.Errorf("%d frames when it goes on, want %d", n, most+1)
		}
		if err := l.Write([][]byte{udp(far4, a4, 0)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(a.take()); n != 1 {
			t.Errorf("%d packets after that, want 1", n)
		}
	})
}

// Guests that flood another one do not keep others' packets from it, nor those from
// elsewhere.
func TestFloodedGuest(t *testing.T) {
	inLab(t, Config{Between: true}, func(l *lab) {
		const guests = 8
		wires, macs, addresses := l.crowd(guests)
		wires[0].setStuck(true)
		for i := 1; i < guests-1; i++ {
			for range 2 * queueFrames {
				wires[i].send(ipFrame(macs[i], udp(addresses[i], addresses[0], 0)))
			}
			synctest.Wait()
		}
		if d := l.changed("a", func() { wires[guests-1].send(ipFrame(macs[guests-1], udp(addresses[guests-1], addresses[0], 0))) }); d != "sent=1" {
			t.Errorf("a packet of a guest that does not flood: %s", d)
		}
		if d := l.changed("a", func() { _ = l.Write([][]byte{udp(far4, addresses[0], 0)}) }); d != "sent=1" {
			t.Errorf("a packet from elsewhere: %s", d)
		}
		if d := l.changed("b", func() { wires[2].send(ipFrame(macs[2], udp(addresses[2], addresses[1], 0))) }); d != "sent=1" {
			t.Errorf("a packet of one that floods to another guest: %s", d)
		}
		wires[0].setStuck(false)
		synctest.Wait()
		var between int
		for _, f := range wires[0].take() {
			if f[headLen+12] == 10 && f[headLen+15] >= 21 {
				between++
			}
		}
		if between != int(l.counters("a").Sent)-1 {
			t.Errorf("%d packets of guests, %+v", between, l.counters("a"))
		}
	})
}

// What a guest holds of the queue of one that is gone is forgotten.
func TestSharesOfThoseGone(t *testing.T) {
	inLab(t, Config{Between: true}, func(l *lab) {
		a, _ := l.two()
		for range 5 {
			a.send(ipFrame(macA, udp(a4, b4, 0)))
			synctest.Wait()
			if err := l.Unplug("b"); err != nil {
				t.Fatal(err)
			}
			l.plug("b", PortConfig{MAC: macB[:], Addresses: []netip.Addr{b4, b6}})
		}
		a.send(ipFrame(macA, udp(a4, b4, 0)))
		synctest.Wait()
		if n := len(l.ports["a"].shares); n != 1 {
			t.Errorf("%d shares", n)
		}
	})
}
