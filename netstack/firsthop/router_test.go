package firsthop

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/netstack/link"
)

func TestNew(t *testing.T) {
	prefixes := func(list ...string) (all []netip.Prefix) {
		for _, s := range list {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}
	for _, tt := range []struct {
		addresses []netip.Prefix
		mtu       int
		want      error
	}{
		{prefixes("10.1.0.1/24"), 0, nil},
		{prefixes("10.1.0.1/24", "fd01::1/64"), 1280, nil},
		{prefixes("10.1.0.1/24"), 576, nil},
		{prefixes("10.1.0.0/31"), 0, nil},
		{prefixes("10.1.0.1/32"), link.MaxMTU, nil},
		{nil, 0, ErrAddress},
		{prefixes("10.1.0.1/24", "10.2.0.1/24"), 0, ErrAddress},
		{prefixes("fd01::1/64", "fd02::1/64"), 0, ErrAddress},
		{prefixes("10.1.0.0/24"), 0, ErrAddress},
		{prefixes("10.1.0.255/24"), 0, ErrAddress},
		{prefixes("169.254.0.1/16"), 0, ErrAddress},
		{prefixes("fe80::1/64"), 0, ErrAddress},
		{prefixes("127.0.0.1/8"), 0, ErrAddress},
		{prefixes("224.0.0.1/24"), 0, ErrAddress},
		{prefixes("240.0.0.1/24"), 0, ErrAddress},
		{[]netip.Prefix{{}}, 0, ErrAddress},
		{prefixes("10.1.0.1/24"), 575, ErrMTU},
		{prefixes("fd01::1/64"), 1279, ErrMTU},
		{prefixes("fd01::1/64"), link.MaxMTU + 1, ErrMTU},
	} {
		r, err := New(Config{Addresses: tt.addresses, MTU: tt.mtu})
		if !errors.Is(err, tt.want) {
			t.Errorf("%v, MTU %d: error %v, want %v", tt.addresses, tt.mtu, err, tt.want)
		}
		if r != nil && r.Close() != nil {
			t.Error("not closed")
		}
	}
}

func TestPlug(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		l.two()
		addr := func(s string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(s)} }
		for _, tt := range []struct {
			name string
			cfg  PortConfig
			want error
		}{
			{"", PortConfig{}, ErrName},
			{"a", PortConfig{}, ErrInUse},
			{"c", PortConfig{MAC: macA[:]}, ErrInUse},
			{"c", PortConfig{MAC: routerMAC[:]}, ErrMAC},
			{"c", PortConfig{MAC: broadcast[:]}, ErrMAC},
			{"c", PortConfig{MAC: make(net.HardwareAddr, 6)}, ErrMAC},
			{"c", PortConfig{MAC: make(net.HardwareAddr, 8)}, ErrMAC},
			{"c", PortConfig{Addresses: []netip.Addr{a4}}, ErrInUse},
			{"c", PortConfig{Addresses: []netip.Addr{a6}}, ErrInUse},
			{"c", PortConfig{Addresses: []netip.Addr{router4}}, ErrAddress},
			{"c", PortConfig{Addresses: addr("10.1.0.255")}, ErrAddress},
			{"c", PortConfig{Addresses: addr("10.1.0.0")}, ErrAddress},
			{"c", PortConfig{Addresses: addr("10.2.0.9")}, ErrAddress},
			{"c", PortConfig{Addresses: addr("fd01::")}, ErrAddress},
			{"c", PortConfig{Addresses: []netip.Addr{{}}}, ErrAddress},
			{"c", PortConfig{Addresses: append(addr("10.1.0.9"), addr("10.1.0.9")...)}, ErrAddress},
		} {
			w := newWire()
			if err := l.Plug(tt.name, w, tt.cfg); !errors.Is(err, tt.want) {
				t.Errorf("%q %+v: error %v, want %v", tt.name, tt.cfg, err, tt.want)
			}
			if !w.closed {
				t.Errorf("%q %+v: the link is left open", tt.name, tt.cfg)
			}
		}
		if err := l.Unplug("c"); !errors.Is(err, ErrUnknown) {
			t.Errorf("unplugging nothing: %v", err)
		}
		if n := len(l.Ports()); n != 2 {
			t.Errorf("%d ports", n)
		}
	})
}

// A name's counters outlast its port, and so do they of a port that replaces it.
func TestCountersAreKeptByName(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, _ := l.two()
		a.send(ipFrame(macA, udp(a4, far4, 10)), ipFrame(macA, udp(b4, far4, 10)))
		if n := len(l.left()); n != 1 {
			t.Fatalf("%d packets left", n)
		}
		before := l.counters("a")
		if before.Passed != 1 || before.Spoofed.IPv4 != 1 || before.Received != 2 {
			t.Errorf("%+v", before)
		}
		if err := l.Unplug("a"); err != nil {
			t.Fatal(err)
		}
		if !a.closed {
			t.Error("the link is left open")
		}
		if _, ok := l.Name(a4); ok {
			t.Error("its address is still there")
		}
		l.plug("a", PortConfig{MAC: macB2[:], Addresses: []netip.Addr{a4}}) // another guest
		if d := difference(before, l.counters("a")); d != "answered=1" {    // the advertisement
			t.Errorf("counters after: %s", d)
		}
	})
}

var macB2 = [6]byte{0x52, 0x54, 0, 0x12, 0x34, 0x1b}

func TestName(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		l.two()
		for _, tt := range []struct {
			a    netip.Addr
			want string
		}{
			{a4, "a"}, {a6, "a"}, {b4, "b"}, {b6, "b"}, {netip.AddrFrom16(b4.As16()), "b"},
			{router4, ""}, {router6, ""}, {far4, ""}, {netip.MustParseAddr("10.1.0.99"), ""}, {netip.MustParseAddr("224.0.0.1"), ""}, {netip.Addr{}, ""},
		} {
			if name, ok := l.Name(tt.a); name != tt.want || ok != (tt.want != "") {
				t.Errorf("%v: %q %v, want %q", tt.a, name, ok, tt.want)
			}
		}
	})
}

// As many ports as there may be, and one more.
func TestMostPorts(t *testing.T) {
	inLab(t, Config{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/16")}}, func(l *lab) {
		for i := range maxPorts {
			w := newWire()
			w.batch = 1 // for the memory
			if err := l.Plug(fmt.Sprint(i), w, PortConfig{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Plug("more", newWire(), PortConfig{}); !errors.Is(err, ErrFull) {
			t.Errorf("one more: %v", err)
		}
		if err := l.Unplug("7"); err != nil {
			t.Fatal(err)
		}
		if err := l.Plug("more", newWire(), PortConfig{}); err != nil {
			t.Errorf("in the place of another: %v", err)
		}
	})
}

// Names that have been unplugged for the longest are forgotten for new ones, and those that
// are plugged in are not.
func TestMostNames(t *testing.T) {
	inLab(t, Config{Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24")}}, func(l *lab) {
		w := l.plug("stays", PortConfig{})
		w.send([]byte("short"))
		synctest.Wait()
		l.plug("first", PortConfig{}).send([]byte("short"))
		synctest.Wait()
		if err := l.Unplug("first"); err != nil {
			t.Fatal(err)
		}
		next := 0
		fill := func(until int) {
			for ; next < until; next++ {
				w := newWire()
				w.batch = 1
				name := fmt.Sprint(next)
				if err := l.Plug(name, w, PortConfig{}); err != nil {
					t.Fatal(err)
				}
				if err := l.Unplug(name); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(maxNames - 2)
		if rec := l.names["first"]; rec == nil || rec.count.received.Load() != 1 {
			t.Error("forgotten at the bound")
		}
		fill(maxNames - 1)
		if l.names["first"] != nil || l.names["0"] == nil {
			t.Error("past the bound another one is forgotten")
		}
		if n := l.counters("stays").Received; n != 1 || len(l.names) != maxNames {
			t.Errorf("%d counted of what stays, %d names", n, len(l.names))
		}
	})
}

// Ports come and go while guests send and are sent to, and somebody looks on.
func TestAtTheSameTime(t *testing.T) {
	inLab(t, Config{Between: true}, func(l *lab) {
		const guests, rounds = 4, 50
		addresses := make([]netip.Addr, guests)
		for i := range guests {
			addresses[i] = netip.AddrFrom4([4]byte{10, 1, 0, byte(20 + i)})
		}
		var all sync.WaitGroup
		for i := range guests {
			all.Go(func() {
				mac := [6]byte{0x52, 0x54, 0, 0, 0, byte(i)}
				for range rounds {
					w := newWire()
					if err := l.Plug(fmt.Sprint(i), w, PortConfig{MAC: mac[:], Addresses: addresses[i : i+1]}); err != nil {
						t.Error(err)
						return
					}
					for _, dst := range append(addresses, far4, router4) {
						w.send(ipFrame(mac, udp(addresses[i], dst, 10)))
					}
					time.Sleep(time.Millisecond)
					if err := l.Unplug(fmt.Sprint(i)); err != nil {
						t.Error(err)
					}
				}
			})
			all.Go(func() {
				for range 10 * rounds {
					_ = l.Write([][]byte{udp(far4, addresses[i], 0)})
					_, _ = l.Name(addresses[i])
					l.Ports()
					time.Sleep(100 * time.Microsecond)
				}
			})
		}
		all.Wait()
		far := 0
		for _, p := range l.left() { // beside those to guests that were away, and errors
			if netip.AddrFrom4([4]byte(p[12:])) != router4 && netip.AddrFrom4([4]byte(p[16:])) == far4 {
				far++
			}
		}
		if far != guests*rounds {
			t.Errorf("%d packets to elsewhere, want %d", far, guests*rounds)
		}
	})
}
