package firsthop

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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

var testGuest = []netip.Addr{a4, a6}

func sleepSecond() { time.Sleep(time.Second) }
