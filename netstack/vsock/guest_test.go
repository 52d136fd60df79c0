package vsock

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/netstack/vhostuser/vhosttest"
	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// patience is how long anything may take that is a matter of milliseconds, on a machine
// with other things to do.
const patience = 20 * time.Second

// noLeaks fails the test if it leaves goroutines or descriptors behind. Call it first.
func noLeaks(t testing.TB) {
	t.Helper()
	r, w, err := os.Pipe() // the runtime opens its poller, and keeps it
	if err != nil {
		t.Fatal(err)
	}
	r.SetReadDeadline(time.Now())
	r.Close()
	w.Close()
	before := held(t)
	t.Cleanup(func() {
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			now := held(t)
			if now[0] <= before[0] && now[1] <= before[1] {
				return
			}
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				t.Errorf("goroutines and descriptors before %v, now %v\n%s", before, now, buf[:runtime.Stack(buf, true)])
				return
			}
		}
	})
}

// held counts goroutines of these packages, and descriptors.
func held(t testing.TB) (n [2]int) {
	buf := make([]byte, 4<<20)
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "sheaf/netstack") && !strings.Contains(g, "testing.tRunner") {
			n[0]++
		}
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n[1] = len(names)
	return n
}

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// guestSize is the size of a test guest's rings, and guestSlot that of a buffer: as Linux's
// 4 KiB of payload behind a header.
const (
	guestSize = 32
	guestSlot = headerLen + 4096
)

// A testGuest is a guest with a socket device whose driver keeps the rules, and the
// hypervisor that it is in.
type testGuest struct {
	t      testing.TB
	path   string
	cid    uint64
	memory *virtiotest.Memory
	front  *vhosttest.FrontEnd
	rings  [2]*guestRing
	done   sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	conns   map[key]*guestConn
	listens map[uint32]chan *guestConn
	last    uint32 // port that it called from
	slot    int    // of a receive buffer
	dead    bool
}

type guestRing struct {
	mu         sync.Mutex
	driver     *virtiotest.Driver
	kick, call *vhosttest.Eventfd
}

// bootGuest starts a guest behind the socket at path.
func bootGuest(t testing.TB, path string, cid uint32) *testGuest {
	t.Helper()
	g := newGuest(t, path, cid, guestSlot)
	g.done.Go(g.run)
	return g
}

// newGuest is bootGuest without what receives.
func newGuest(t testing.TB, path string, cid uint32, slot int) *testGuest {
	t.Helper()
	g := &testGuest{t: t, path: path, cid: uint64(cid), conns: make(map[key]*guestConn), listens: make(map[uint32]chan *guestConn), last: 1023, slot: slot}
	g.changed.L = &g.mu
	var err error
	if g.memory, err = virtiotest.NewMemory(4 << 20); err != nil {
		t.Fatal(err)
	}
	for i := range g.rings {
		r := &guestRing{}
		g.rings[i] = r
		if r.driver, err = virtiotest.NewDriver(g.memory, guestSize, headerLen+window, virtio.FeaturesOfRings); err != nil {
			t.Fatal(err)
		}
		for _, e := range []**vhosttest.Eventfd{&r.kick, &r.call} {
			if *e, err = vhosttest.NewEventfd(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for g.post() {
	}
	g.rings[receiveQueue].driver.Kick()
	if g.front, err = vhosttest.Dial(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.kill)
	if err := g.plug(); err != nil {
		t.Fatal(err)
	}
	return g
}

// post gives the device a buffer of two parts, as Linux 6.1 does.
func (g *testGuest) post() bool {
	return g.rings[receiveQueue].driver.Post(min(headerLen, g.slot-1), max(g.slot-headerLen, 1))
}

func (g *testGuest) plug() error {
	f := g.front
	if err := f.Negotiate(virtio.FeaturesOfRings, vhosttest.ProtocolReplyAck); err != nil {
		return err
	}
	for i := range g.rings {
		if err := f.Acknowledged(vhosttest.SetVringEnable, vhosttest.State(uint32(i), 1)); err != nil {
			return err
		}
	}
	if err := f.Send(vhosttest.SetFeatures, vhosttest.U64(virtio.FeaturesOfRings|vhosttest.FeatureProtocol)); err != nil {
		return err
	}
	table, fds := vhosttest.TableOf(g.memory)
	if err := f.Acknowledged(vhosttest.SetMemTable, table, fds...); err != nil {
		return err
	}
	for i, r := range g.rings {
		n := uint32(i)
		if err := errors.Join(
			f.Send(vhosttest.SetVringNum, vhosttest.State(n, guestSize)),
			f.Send(vhosttest.SetVringBase, vhosttest.State(n, uint32(r.driver.UsedIndex()))),
			f.Send(vhosttest.SetVringAddr, vhosttest.Address(n, g.memory, r.driver.Ring)),
			f.Send(vhosttest.SetVringKick, vhosttest.U64(uint64(i)), r.kick.FD()),
			f.Send(vhosttest.SetVringCall, vhosttest.U64(uint64(i)), r.call.FD()),
		); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the guest as SIGKILL ends its hypervisor.
func (g *testGuest) kill() {
	g.mu.Lock()
	if g.dead {
		g.mu.Unlock()
		return
	}
	g.dead = true
	g.changed.Broadcast()
	g.mu.Unlock()
	g.front.Close()
	for _, r := range g.rings {
		r.kick.Close()
		r.call.Close()
	}
	g.done.Wait()
	for _, r := range g.rings {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	g.memory.Close()
}

// send sends a packet, as soon as the ring has room.
func (g *testGuest) send(h header, payload []byte) error {
	h.length = uint32(len(payload))
	return g.sendRaw(h, payload)
}

func (g *testGuest) sendRaw(h header, payload []byte) error {
	var b [headerLen]byte
	h.put(&b)
	r := g.rings[transmitQueue]
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := [][]byte{b[:], payload}
	if len(payload) == 0 {
		parts = parts[:1]
	}
	for !r.driver.Send(parts...) {
		if _, ok, err := r.driver.Reap(); ok || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		if !r.driver.Arm() {
			if err := r.call.Wait(); err != nil {
				return err
			}
		}
	}
	if r.driver.Kick() {
		r.kick.Signal()
	}
	return nil
}

// receive waits for a packet.
func (g *testGuest) receive() (h header, payload []byte, err error) {
	r := g.rings[receiveQueue]
	for {
		r.mu.Lock()
		p, ok, err := r.driver.Reap()
		if ok && len(p) >= headerLen {
			h = parseHeader((*[headerLen]byte)(p))
			payload = bytes.Clone(p[headerLen:])
			g.post()
			if r.driver.Kick() {
				r.kick.Signal()
			}
			r.mu.Unlock()
			if int(h.length) != len(payload) {
				return h, nil, errors.New("a payload of another length than the header has")
			}
			return h, payload, nil
		}
		more := ok || r.driver.Arm()
		r.mu.Unlock()
		if err != nil {
			return h, nil, err
		}
		if !more {
			if err := r.call.Wait(); err != nil {
				return h, nil, err
			}
		}
	}
}

// A guestConn is a stream in the guest.
type guestConn struct {
	g                             *testGuest
	key                           key // of the guest's side: peer is the host's port
	opened, eof, closed, reset    bool
	in                            []byte
	sent, forwarded               uint32
	hostAlloc, hostForw, received uint32
}

const guestAlloc = 8192

func (c *guestConn) header(op uint16) header {
	return header{
		srcCID: c.g.cid, dstCID: hostCID, srcPort: c.key.local, dstPort: c.key.peer, kind: typeStream, op: op,
		alloc: guestAlloc, forwarded: c.forwarded,
	}
}

// run hears packets until the guest is dead.
func (g *testGuest) run() {
	for {
		h, payload, err := g.receive()
		if err != nil {
			if !errors.Is(err, os.ErrClosed) {
				g.t.Error(err)
			}
			return
		}
		for _, answer := range g.hear(h, payload) {
			if err := g.send(answer, nil); err != nil {
				return
			}
		}
	}
}

func (g *testGuest) hear(h header, payload []byte) (answers []header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.changed.Broadcast()
	k := key{h.dstPort, h.srcPort}
	c := g.conns[k]
	if h.srcCID != hostCID || h.dstCID != g.cid || h.kind != typeStream {
		g.t.Errorf("a packet with header %+v", h)
		return nil
	}
	if c == nil {
		listens := g.listens[h.dstPort]
		c = &guestConn{g: g, key: k, opened: true}
		if h.op != opRequest || listens == nil {
			if h.op != opReset {
				answers = append(answers, c.header(opReset))
			}
			return answers
		}
		g.conns[k] = c
		listens <- c
		answers = append(answers, c.header(opResponse))
	}
	c.hostAlloc, c.hostForw = h.alloc, h.forwarded
	switch h.op {
	case opResponse:
		c.opened = true
	case opReset:
		c.reset, c.eof = true, true
		delete(g.conns, k)
	case opShutdown:
		c.eof = c.eof || h.flags&noSend != 0
		c.closed = c.closed || h.flags&noReceive != 0
		if c.eof && c.closed {
			c.reset = true
			delete(g.conns, k)
			answers = append(answers, c.header(opReset))
		}
	case opData:
		c.in = append(c.in, payload...)
		c.received += uint32(len(payload))
		if c.received-c.forwarded > guestAlloc {
			g.t.Errorf("%d bytes for a room of %d", c.received-c.forwarded, guestAlloc)
		}
	case opCreditRequest:
		answers = append(answers, c.header(opCreditUpdate))
	}
	return answers
}

// dial opens a stream to a port of the host.
func (g *testGuest) dial(port uint32) (*guestConn, error) {
	g.mu.Lock()
	g.last++
	c := &guestConn{g: g, key: key{g.last, port}}
	g.conns[c.key] = c
	h := c.header(opRequest)
	g.mu.Unlock()
	if err := g.send(h, nil); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for !c.opened && !c.reset && !g.dead {
		g.changed.Wait()
	}
	if !c.opened {
		return nil, unix.ECONNREFUSED
	}
	return c, nil
}

// listen accepts streams of the host.
func (g *testGuest) listen(port uint32) chan *guestConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listens[port] = make(chan *guestConn, 100)
	return g.listens[port]
}

func (c *guestConn) Write(b []byte) (n int, err error) {
	g := c.g
	for n < len(b) {
		g.mu.Lock()
		for c.hostAlloc == c.sent-c.hostForw && !c.closed && !c.reset && !g.dead {
			g.changed.Wait()
		}
		if c.closed || c.reset || g.dead {
			g.mu.Unlock()
			return n, unix.EPIPE
		}
		part := b[n:]
		part = part[:min(len(part), int(c.hostAlloc-(c.sent-c.hostForw)))]
		c.sent += uint32(len(part))
		h := c.header(opData)
		g.mu.Unlock()
		if err := g.send(h, part); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

func (c *guestConn) Read(b []byte) (int, error) {
	g := c.g
	g.mu.Lock()
	for len(c.in) == 0 && !c.eof && !g.dead {
		g.changed.Wait()
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	c.forwarded += uint32(n)
	h := c.header(opCreditUpdate)
	over := c.reset
	g.mu.Unlock()
	if n == 0 {
		return 0, io.EOF
	}
	if over {
		return n, nil
	}
	return n, g.send(h, nil)
}

// shutdown ends directions.
func (c *guestConn) shutdown(flags uint32) error {
	c.g.mu.Lock()
	h := c.header(opShutdown)
	c.g.mu.Unlock()
	h.flags = flags
	return c.g.send(h, nil)
}

func (c *guestConn) isReset() bool {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	return c.reset
}

// plugged returns a Host with one guest at a port "meter", and one that listens at 1883.
func plugged(t testing.TB) (*Host, net.Listener, *testGuest) {
	t.Helper()
	h := NewHost(nil)
	t.Cleanup(func() { h.Close() })
	path := filepath.Join(t.TempDir(), "s")
	if err := h.Plug("meter", PortConfig{CID: testCID, Path: path}); err != nil {
		t.Fatal(err)
	}
	l := listenAt(t, h, "vsock:1883")
	return h, l, bootGuest(t, path, testCID)
}

func listenAt(t testing.TB, h *Host, address string) net.Listener {
	t.Helper()
	a, err := ParseAddr(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.Listen(context.Background(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
