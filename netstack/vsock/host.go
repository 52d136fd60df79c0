package vsock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser"
)

// ErrInUse is what errors wrap for what can be had once: a port of the host, a name, a CID.
var ErrInUse = errors.New("already in use")

// A Host is whom guests reach by vsock, as CID 2, and by whom they are reached. A gateway
// has one. Its methods may be called from several goroutines.
//
// For [[forward]], ForwardConfig.Listen calls Listen, and SourceOf finds the address of the
// port that Addr.Guest names, or whose CID the Addr has. For [terminate], the functions
// of TerminateConfig.Via call Dial.
type Host struct {
	log    *slog.Logger
	kernel kernel

	mu        sync.Mutex
	closed    bool
	ports     map[string]*port
	listeners map[uint32]*listener
}

// NewHost returns a Host without ports. It has to be closed. log may be nil.
func NewHost(log *slog.Logger) *Host {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Host{log: log, kernel: linuxKernel, ports: make(map[string]*port), listeners: make(map[uint32]*listener)}
}

// A PortConfig says where the socket device of a guest is to be had.
type PortConfig struct {
	CID  uint32 // the guest's, 3 to 2^32-2
	Path string // of the unix socket of vhost-user
	Dial bool   // the hypervisor listens there, not the gateway
}

// A PortStatus tells of a port. Counters are since Plug, over all that ran there.
type PortStatus struct {
	Name string `json:"name"`
	CID  uint32 `json:"cid"`

	// Received and Sent are packets, Invalid those of another CID than the guest's.
	// Nothing is dropped.
	link.Status

	StreamStatus
}

// A StreamStatus tells of the streams of a guest without a NIC.
type StreamStatus struct {
	Streams    int    `json:"streams"`    // that are open, or about to be or to end
	Calls      uint64 `json:"calls"`      // streams that the guest opened
	Dials      uint64 `json:"dials"`      // that were opened to it
	Refused    uint64 `json:"refused"`    // calls where nobody listens, or for which there was no room
	Violations uint64 `json:"violations"` // streams that were reset for what the guest sent
	Overdue    uint64 `json:"overdue"`    // and those whose end it did not confirm in time
	BytesFrom  uint64 `json:"bytes_from"` // payload of streams from the guest
	BytesTo    uint64 `json:"bytes_to"`   // and to it
}

// A port is the socket device of one guest, and outlives it.
type port struct {
	host    *Host
	name    string
	cid     uint32
	offer   vhostuser.Offer
	backend *vhostuser.Backend // guarded by the Host's mu, not nil once Plug is done
	running sync.WaitGroup     // the goroutines of sessions

	mu      sync.Mutex
	count   counters
	session *session // nil while there is no guest
}

// Plug makes a port. name is what Addr.Guest and the status call the guest. The error
// wraps ErrAddress, ErrInUse, os.ErrClosed, or what vhostuser.Open says.
func (h *Host) Plug(name string, c PortConfig) error {
	if c.CID < firstCID || c.CID == anyCID {
		return fmt.Errorf("vsock port %s: %w: CID %d: a guest's is %d to %d", name, ErrAddress, c.CID, firstCID, uint32(anyCID-1))
	}
	p := &port{host: h, name: name, cid: c.CID}
	// Without a feature of the device's own it is one of streams (section 5.10.3).
	p.offer = vhostuser.Offer{
		Name:   "virtio-vsock",
		Queues: []vhostuser.Direction{receiveQueue: vhostuser.ToGuest, transmitQueue: vhostuser.FromGuest},
		Config: configOf(c.CID),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return fmt.Errorf("vsock port %s: %w", name, os.ErrClosed)
	}
	for _, o := range h.ports {
		if o.name == name || o.cid == c.CID {
			return fmt.Errorf("vsock port %s: %w: port %s has the name, or CID %d", name, ErrInUse, o.name, o.cid)
		}
	}
	var err error
	p.backend, err = vhostuser.Open(vhostuser.Config{Path: c.Path, Dial: c.Dial, Log: h.log.With("port", name)}, p)
	if err != nil {
		return fmt.Errorf("vsock port %s: %w", name, err)
	}
	h.ports[name] = p
	return nil
}

// Unplug takes a port away and resets its streams. The error wraps os.ErrNotExist if there
// is none of that name.
func (h *Host) Unplug(name string) error {
	h.mu.Lock()
	p := h.ports[name]
	delete(h.ports, name)
	h.mu.Unlock()
	if p == nil {
		return fmt.Errorf("vsock port %s: %w", name, os.ErrNotExist)
	}
	p.close()
	return nil
}

func (p *port) close() {
	p.backend.Close()
	p.running.Wait()
}

// Ports tells of the ports, by name.
func (h *Host) Ports() []PortStatus {
	h.mu.Lock()
	ports := make([]*port, 0, len(h.ports))
	for _, p := range h.ports {
		ports = append(ports, p)
	}
	h.mu.Unlock()
	status := make([]PortStatus, len(ports))
	for i, p := range ports {
		status[i] = p.status()
	}
	slices.SortFunc(status, func(a, b PortStatus) int { return cmp.Compare(a.Name, b.Name) })
	return status
}

// Port tells of the port of a name; ok is false where there is none.
func (h *Host) Port(name string) (s PortStatus, ok bool) {
	h.mu.Lock()
	p := h.ports[name]
	h.mu.Unlock()
	if p == nil {
		return PortStatus{}, false
	}
	return p.status(), true
}

func (p *port) status() PortStatus {
	s := PortStatus{Name: p.name, CID: p.cid, Status: p.backend.Status()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		s.Streams = len(p.session.table.streams)
	}
	c := &p.count
	s.Received, s.Sent, s.Invalid = c.received, c.sent, c.stray
	s.Calls, s.Dials, s.Refused, s.Violations, s.Overdue = c.calls, c.dials, c.refused, c.violations, c.overdue
	s.BytesFrom, s.BytesTo = c.bytesFrom, c.bytesTo
	return s
}

// Listen listens on an address of the host: on vsock:PORT for guests of ports and, where
// the kernel has them, those of vhost-vsock; on vsock:/PATH:PORT for the one whose
// hypervisor has its socket at PATH. Remote addresses are Addrs. While the listener is closed
// who comes is refused, and Close resets who waits to be accepted. The error
// wraps ErrAddress or ErrInUse where one fits.
func (h *Host) Listen(ctx context.Context, a Addr) (net.Listener, error) {
	switch {
	case a.Path != "":
		return listenUnix(a)
	case !a.isHost():
		return nil, fmt.Errorf("%s: %w: guests are listened for at vsock:PORT or vsock:/PATH:PORT", a, ErrAddress)
	}
	l := newListener(h, a.Port)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, fmt.Errorf("%s: %w", a, net.ErrClosed)
	}
	if h.listeners[a.Port] != nil {
		return nil, fmt.Errorf("%s: %w", a, ErrInUse)
	}
	var err error
	if l.kernel, err = h.kernel.listen(l); err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	h.listeners[a.Port] = l
	return l, nil
}

// forget gives a listener's port back.
func (h *Host) forget(l *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[l.port] == l {
		delete(h.listeners, l.port)
	}
}

// admit opens a stream that a guest asks for, if somebody listens. The port's mu is held.
func (h *Host) admit(s *session, st *stream) bool {
	h.mu.Lock()
	l := h.listeners[st.local]
	h.mu.Unlock()
	if l == nil || !l.push(newConn(s, st)) {
		return false
	}
	s.table.admit(st)
	return true
}

// Dial connects with a port of a guest: of the guest of a port by name or CID, of one of
// vhost-vsock by CID, or of the one whose hypervisor has a socket at Path. The error
// wraps unix.ECONNREFUSED if the guest refuses, ErrAddress for an address of the host,
// and the guest is not there with unix.EHOSTUNREACH.
func (h *Host) Dial(ctx context.Context, a Addr) (net.Conn, error) {
	if a.isHost() || a.Port == 0 {
		return nil, fmt.Errorf("%s: %w: expected a guest, as in vsock:GUEST:PORT", a, ErrAddress)
	}
	c, err := h.dial(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a, err)
	}
	return c, nil
}

func (h *Host) dial(ctx context.Context, a Addr) (net.Conn, error) {
	if a.Path != "" {
		return dialUnix(ctx, a)
	}
	p := h.find(a)
	switch {
	case p != nil:
		return p.dial(ctx, a.Port)
	case a.Guest != "":
		return nil, unix.EHOSTUNREACH
	}
	return h.kernel.dial(ctx, a)
}

// find returns the port of the guest that a names, or nil.
func (h *Host) find(a Addr) *port {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.Guest != "" {
		return h.ports[a.Guest]
	}
	for _, p := range h.ports {
		if p.cid == a.CID {
			return p
		}
	}
	return nil
}

func (p *port) dial(ctx context.Context, to uint32) (net.Conn, error) {
	p.mu.Lock()
	s := p.session
	if s == nil {
		p.mu.Unlock()
		return nil, unix.EHOSTUNREACH
	}
	st, err := s.table.dial(to)
	if err != nil {
		p.mu.Unlock()
		return nil, err
	}
	c := newConn(s, st)
	s.say()
	p.mu.Unlock()
	if err := c.awaitOpen(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Close unplugs all ports and closes all listeners but those of unix sockets. Closing again
// does nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	ports, listeners := h.ports, make([]*listener, 0, len(h.listeners))
	for _, l := range h.listeners {
		listeners = append(listeners, l)
	}
	h.ports = nil
	h.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, p := range ports {
		p.close()
	}
	return nil
}

// Offer, Start and Stop are of vhostuser.Device.
func (p *port) Offer() vhostuser.Offer { return p.offer }

func (p *port) Start(rings []*vhostuser.Ring, _ uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = newSession(p, rings)
}

func (p *port) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.session != nil {
		p.session.end()
		p.session = nil
	}
}
