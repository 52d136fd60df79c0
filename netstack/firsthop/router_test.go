package firsthop

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/netstack/link"
)

// A wire is a link.Link in memory, and the guest's side of it.
type wire struct {
	mu      sync.Mutex
	changed sync.Cond
	sent    [][]byte // by the guest, not yet read
	got     [][]byte // what it was given
	stuck   bool     // the guest takes nothing
	closed  bool
	batch   int
}

func newWire() *wire {
	w := &wire{batch: 16}
	w.changed.L = &w.mu
	return w
}

func (w *wire) Read(bufs [][]byte, sizes []int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.sent) == 0 && !w.closed {
		w.changed.Wait()
	}
	if w.closed {
		return 0, os.ErrClosed
	}
	n := 0
	for ; n < len(bufs) && len(w.sent) > 0; n++ {
		sizes[n] = copy(bufs[n], w.sent[0])
		w.sent = w.sent[1:]
	}
	return n, nil
}

func (w *wire) Write(frames [][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.stuck && !w.closed {
		w.changed.Wait()
	}
	if w.closed {
		return os.ErrClosed
	}
	for _, f := range frames {
		w.got = append(w.got, slices.Clone(f))
	}
	return nil
}

func (w *wire) BatchSize() int      { return w.batch }
func (w *wire) Status() link.Status { return link.Status{Up: true} }

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.changed.Broadcast()
	return nil
}

// send sends frames of the guest.
func (w *wire) send(frames ...[]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, frames...)
	w.changed.Broadcast()
}

// take returns what the guest was given since the last time.
func (w *wire) take() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.got
	w.got = nil
	return got
}

func (w *wire) setStuck(stuck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stuck = stuck
	w.changed.Broadcast()
}

// A lab is a Router with guests, whose packets to elsewhere are kept. It lives in a bubble
// of synctest, where settle waits until all has been done.
type lab struct {
	t *testing.T
	*Router
	wires map[string]*wire
	mu    sync.Mutex
	out   [][]byte
}

var (
	testPrefixes = []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("fd01::1/64")}
	macA         = [6]byte{0x52, 0x54, 0, 0x12, 0x34, 0x0a}
	macB         = [6]byte{0x52, 0x54, 0, 0x12, 0x34, 0x0b}
	a4, b4       = netip.MustParseAddr("10.1.0.11"), netip.MustParseAddr("10.1.0.12")
	a6, b6       = netip.MustParseAddr("fd01::11"), netip.MustParseAddr("fd01::12")
	aLocal       = netip.MustParseAddr("fe80::5054:ff:fe12:340a")
	router4      = netip.MustParseAddr("10.1.0.1")
	router6      = netip.MustParseAddr("fd01::1")
	far4         = netip.MustParseAddr("10.2.0.10")
	far6         = netip.MustParseAddr("fd02::10")
)

// inLab runs a test with a Router, and two guests where their ports are wanted: a and b with
// addresses by configuration, or others that the test plugs in.
func inLab(t *testing.T, cfg Config, test func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if cfg.Addresses == nil {
			cfg.Addresses = testPrefixes
		}
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		l := &lab{t: t, Router: r, wires: make(map[string]*wire)}
		var reading sync.WaitGroup
		reading.Go(l.read)
		test(l)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		reading.Wait()
	})
}

func (l *lab) read() {
	bufs, sizes := make([][]byte, l.BatchSize()), make([]int, l.BatchSize())
	for i := range bufs {
		bufs[i] = make([]byte, 65535)
	}
	for {
		n, err := l.Read(bufs, sizes)
		l.mu.Lock()
		for i := range n {
			l.out = append(l.out, slices.Clone(bufs[i][:sizes[i]]))
		}
		l.mu.Unlock()
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				l.t.Error(err)
			}
			return
		}
	}
}

// plug plugs a guest in, whose first advertisement is taken off.
func (l *lab) plug(name string, cfg PortConfig) *wire {
	l.t.Helper()
	w := newWire()
	if err := l.Plug(name, w, cfg); err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
	w.take()
	l.wires[name] = w
	return w
}

// two plugs in the guests a and b.
func (l *lab) two() (a, b *wire) {
	return l.plug("a", PortConfig{MAC: macA[:], Addresses: []netip.Addr{a4, a6}}), l.plug("b", PortConfig{MAC: macB[:], Addresses: []netip.Addr{b4, b6}})
}

// left returns the packets that left since the last time, once all is quiet.
func (l *lab) left() [][]byte {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.out
	l.out = nil
	return out
}

func (l *lab) counters(name string) Counters {
	for _, p := range l.Ports() {
		if p.Name == name {
			return p.Counters
		}
	}
	l.t.Fatalf("no port %q", name)
	return Counters{}
}

func (l *lab) addresses(name string) string {
	for _, p := range l.Ports() {
		if p.Name == name {
			return strings.Trim(fmt.Sprint(p.Addresses), "[]")
		}
	}
	return "no port"
}

// changed says which counters of a port a step changes, and by how much, beside received.
func (l *lab) changed(name string, step func()) string {
	before := l.counters(name)
	step()
	synctest.Wait()
	return difference(before, l.counters(name))
}

func difference(before, after Counters) string {
	var all []string
	was, is := flat(before), flat(after)
	for name, n := range is {
		if d := n - was[name]; d != 0 && name != "received" {
			all = append(all, fmt.Sprintf("%s=%v", name, d))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func flat(c Counters) map[string]float64 {
	b, _ := json.Marshal(c)
	var nested map[string]any
	_ = json.Unmarshal(b, &nested)
	all := make(map[string]float64)
	for name, v := range nested {
		switch v := v.(type) {
		case float64:
			all[name] = v
		case map[string]any:
			for inner, n := range v {
				all[name+"."+inner] = n.(float64)
			}
		}
	}
	return all
}

// unhex returns bytes of a frame that is written out with spaces.
func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// only returns the one frame among frames, nil if there is none.
func only(t *testing.T, frames [][]byte) []byte {
	t.Helper()
	if len(frames) > 1 {
		t.Errorf("%d frames instead of one: %x", len(frames), frames)
	}
	if len(frames) == 0 {
		return nil
	}
	return frames[0]
}

// toRouterFrom returns a frame of a guest to the router.
func toRouterFrom(mac [6]byte, kind etherType, packet []byte) []byte {
	return frameOf(mac, routerMAC, kind, packet)
}

func frameOf(src, dst [6]byte, kind etherType, packet []byte) []byte {
	head := headOf(dst, kind)
	copy(head[6:], src[:])
	return append(head[:], packet...)
}

// ipFrame returns a frame of a guest to the router with an IP packet.
func ipFrame(mac [6]byte, packet []byte) []byte {
	if packet[0]>>4 == 4 {
		return toRouterFrom(mac, etherIPv4, packet)
	}
	return toRouterFrom(mac, etherIPv6, packet)
}

// udp returns a packet with a datagram from port 40000 to 1883.
func udp(src, dst netip.Addr, payload int) []byte {
	return datagram(netip.AddrPortFrom(src, 40000), netip.AddrPortFrom(dst, 1883), make([]byte, payload))
}

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

var testGuest = []netip.Addr{a4, a6}

func sleepSecond() { time.Sleep(time.Second) }

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
