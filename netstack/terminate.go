package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	serverTimeout  = 10 * time.Second
	defaultPending = 1024
	// A handshake of TLS is three flights and about 5 kB: for 500 clients at once on 1
	// Mbit/s, 20 s.
	longestHandshake = 30 * time.Second
	defaultSessions  = 1024
	maxInFlight      = 1 << 30 // in gVisor's forwarder; Pending is what counts
)

// TerminateConfig says for which addresses a stack stands in, and how it reaches
// who really has them.
type TerminateConfig struct {
	// Prefixes are the addresses. They must not overlap those of another
	// Terminator of the stack.
	Prefixes []netip.Prefix

	// Map says where the server for an address is, if not there. The result is
	// given to Dial.
	Map func(netip.AddrPort) netip.AddrPort

	// Dial connects with a server; nil is an ordinary socket. The network is tcp
	// or udp. An error that wraps ECONNREFUSED refuses the client, any other is an
	// unreachable host. Half-closing needs a CloseWrite method.
	Dial func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error)

	// Via are the servers that no address of the host leads to, by what Map makes of
	// theirs: each is connected with by its function, whose errors are taken as those of
	// Dial. There is no UDP with them.
	Via map[netip.AddrPort]func(ctx context.Context) (net.Conn, error)

	// ProxyProtocol puts a PROXY protocol version 2 header, with the client's
	// address and the one that it wanted, before the bytes of each connection. The
	// server must expect it. Connections of TLS have their own header, or none.
	ProxyProtocol bool

	// TLS are the addresses inside Prefixes where the stack is itself the TLS server, in
	// front of a plain one. Map is not asked for them.
	TLS map[netip.AddrPort]*TLSFront

	Limits Limits
}

// Limits bound what a Terminator holds. The zero value of each is its default.
type Limits struct {
	Pending     int           // clients who wait for a server or the end of a TLS handshake; 1024, further SYNs are dropped
	Connections int           // 16384, further clients are refused
	Sessions    int           // UDP, 128 KiB each; 1024, further datagrams are dropped
	DialTimeout time.Duration // how long a server may take to answer; 10 s
	Handshake   time.Duration // how long a TLS handshake may take; 30 s
	Idle        time.Duration // until a UDP session without datagrams ends; 60 s
}

// A Terminator takes the connections for its prefixes that come out of the tunnel.
type Terminator struct {
	cfg    TerminateConfig
	stack  *Stack
	ctx    context.Context
	cancel context.CancelFunc
	group  group

	mu       sync.Mutex // guards pending and sessions
	pending  map[stack.TransportEndpointID][]byte
	sessions int
}

// Terminate makes the stack answer for addresses that are not its own. The server
// is dialed first, and the client's connection completed only then: a client sees
// a refusal as one, and gets an ICMP error, as from a router, if there is no
// answer. End of file and resets pass in both directions, and who reads slowly
// slows the sender down.
//
// UDP datagrams are carried as well, each pair of a client's and a server's
// address and port with a socket of its own until it is idle.
func (s *Stack) Terminate(cfg TerminateConfig) (*Terminator, error) {
	if err := s.checkTerminate(&cfg); err != nil {
		return nil, err
	}
	t := &Terminator{cfg: cfg, stack: s, pending: make(map[stack.TransportEndpointID][]byte)}
	t.group.ends = &s.terminals
	t.ctx, t.cancel = context.WithCancel(context.Background())
	if err := s.adopt(t); err != nil {
		t.cancel()
		return nil, fmt.Errorf("terminate: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.terminators.Load()
	for _, other := range old {
		for _, p := range cfg.Prefixes {
			if i := slices.IndexFunc(other.cfg.Prefixes, p.Overlaps); i >= 0 {
				delete(s.open, t)
				t.cancel()
				return nil, fmt.Errorf("terminate %s: %w: %s is terminated already", p, ErrInUse, other.cfg.Prefixes[i])
			}
		}
	}
	if len(old) == 0 {
		s.standIn()
	}
	list := append(slices.Clone(old), t)
	s.terminators.Store(&list)
	return t, nil
}

func (s *Stack) checkTerminate(cfg *TerminateConfig) error {
	if len(cfg.Prefixes) == 0 {
		return fmt.Errorf("terminate: %w: give the servers' prefixes, like 10.2.0.0/24", ErrAddress)
	}
	cfg.Prefixes = slices.Clone(cfg.Prefixes)
	for i, p := range cfg.Prefixes {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().IsMulticast() || p.Addr().IsLoopback() {
			return fmt.Errorf("terminate %s: %w: give the servers' prefixes without host bits, like 10.2.0.0/24", p, ErrAddress)
		}
		if slices.ContainsFunc(cfg.Prefixes[:i], p.Overlaps) {
			return fmt.Errorf("terminate %s: %w: it overlaps another one; remove it", p, ErrAddress)
		}
	}
	for server := range cfg.TLS {
		if !slices.ContainsFunc(cfg.Prefixes, func(p netip.Prefix) bool { return p.Contains(server.Addr()) }) {
			return fmt.Errorf("terminate: TLS for %s: %w: it is in none of the prefixes", server, ErrAddress)
		}
	}
	if cfg.Dial == nil {
		var dialer net.Dialer
		cfg.Dial = func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
			return dialer.DialContext(ctx, network, server.String())
		}
	}
	if cfg.Map == nil {
		cfg.Map = func(a netip.AddrPort) netip.AddrPort { return a }
	}
	l := &cfg.Limits
	for limit, value := range map[*int]int{&l.Pending: defaultPending, &l.Connections: defaultConnections, &l.Sessions: defaultSessions} {
		if *limit <= 0 {
			*limit = value
		}
	}
	if l.DialTimeout <= 0 {
		l.DialTimeout = serverTimeout
	}
	if l.Handshake <= 0 {
		l.Handshake = longestHandshake
	}
	if l.Idle <= 0 {
		l.Idle = idleSession
	}
	return nil
}

// standIn makes the stack take packets for any address; accepts has let in only
// those for an address that is its own or terminated.
func (s *Stack) standIn() {
	s.stack.SetPromiscuousMode(nicID, true)
	s.stack.SetSpoofing(nicID, true)
	u := udp.NewForwarder(s.stack, s.serveUDP)
	s.stack.SetTransportProtocolHandler(udp.ProtocolNumber, u.HandlePacket)
}

// terminator returns who answers for addr, or nil.
func (s *Stack) terminator(addr netip.Addr) *Terminator {
	for _, t := range *s.terminators.Load() {
		for _, p := range t.cfg.Prefixes {
			if p.Contains(addr) {
				return t
			}
		}
	}
	return nil
}

// offerTCP begins to serve a client if the segment is its SYN. It keeps what an
// ICMP error would quote of it, once per client that waits for its server.
func (s *Stack) offerTCP(id stack.TransportEndpointID, p *stack.PacketBuffer) bool {
	segment := header.TCP(p.TransportHeader().Slice())
	t := s.terminator(addrPort(id.LocalAddress, 0).Addr())
	if t == nil || len(segment) < minTCP || segment.Flags()&(header.TCPFlagSyn|header.TCPFlagAck) != header.TCPFlagSyn {
		return false
	}
	quote := append(slices.Clone(p.NetworkHeader().Slice()), segment...)
	t.mu.Lock()
	_, waits := t.pending[id]
	full := len(t.pending) >= t.cfg.Limits.Pending
	if !waits && !full {
		t.pending[id] = quote
	}
	t.mu.Unlock()
	if waits || full {
		return true // the client asks again
	}
	if s.syns.HandlePacket(id, p) {
		return true
	}
	t.forget(id)
	return false
}

func (t *Terminator) forget(id stack.TransportEndpointID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, id)
}

// serveTCP serves a client from its SYN on, in a goroutine of its own.
func (s *Stack) serveTCP(r *tcp.ForwarderRequest) {
	id := r.ID()
	server := addrPort(id.LocalAddress, id.LocalPort)
	t := s.terminator(server.Addr())
	if t == nil || !s.terminals.begin() { // closed since offerTCP
		r.Complete(true)
		return
	}
	defer s.terminals.done()
	client := addrPort(id.RemoteAddress, id.RemotePort)
	front := t.cfg.TLS[server]
	socket, err := t.dial(client, server, front)
	if err != nil {
		refused := errors.Is(err, unix.ECONNREFUSED)
		if refused {
			s.terminals.refused.Add(1)
		} else {
			s.terminals.failed.Add(1)
			t.sendUnreachable(id, server.Addr())
		}
		r.Complete(refused)
		t.forget(id)
		return
	}
	queue := new(waiter.Queue)
	ep, terr := r.CreateEndpoint(queue)
	r.Complete(false)
	if terr == nil && front != nil {
		t.serveTLS(front, newStackEnd(ep, queue), socket, endpoints{client, server}, func() { t.forget(id) })
		return
	}
	t.forget(id)
	if terr != nil {
		s.terminals.failed.Add(1)
		socket.abort()
		socket.close()
		return
	}
	t.group.splice(newStackEnd(ep, queue), socket)
}

// dial connects with the server that the client asks for, or the plain one behind front
// where that is not nil.
func (t *Terminator) dial(client, server netip.AddrPort, front *TLSFront) (*socketEnd, error) {
	if t.stack.terminals.active.Load() >= int64(t.cfg.Limits.Connections) {
		return nil, unix.ECONNREFUSED
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.cfg.Limits.DialTimeout)
	defer cancel()
	var at netip.AddrPort
	if front != nil {
		at = front.cfg.To
	} else {
		at = t.cfg.Map(server)
	}
	c, err := t.connect(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	if t.cfg.ProxyProtocol && front == nil {
		// A new connection has room for it.
		if _, err := c.Write(appendProxyHeader(nil, proxyTCP4, proxyTCP6, client, server)); err != nil {
			c.Close()
			return nil, err
		}
	}
	return newSocketEnd(c), nil
}

// connect connects with the server at an address that Map or a TLSFront gave.
func (t *Terminator) connect(ctx context.Context, network string, at netip.AddrPort) (net.Conn, error) {
	via := t.cfg.Via[at]
	switch {
	case via == nil:
		return t.cfg.Dial(ctx, network, at)
	case network == "tcp":
		return via(ctx)
	}
	return nil, unix.ECONNREFUSED
}

// sendUnreachable tells a client that its server does not answer: from the
// gateway's address, or the server's own if the gateway has none of that family.
func (t *Terminator) sendUnreachable(id stack.TransportEndpointID, server netip.Addr) {
	t.mu.Lock()
	quote := t.pending[id]
	t.mu.Unlock()
	from := t.stack.first[familyIndex(server)]
	if !from.IsValid() {
		from = server
	}
	if p := AppendUnreachable(nil, quote, NoHost, from); p != nil {
		t.stack.emit(p)
	}
}

// Close resets the connections, waits for them and stops answering for the
// prefixes. The resets of the stack's side go out by its Read, so somebody has to
// be reading.
func (t *Terminator) Close() error {
	t.cancel()
	s := t.stack
	s.mu.Lock()
	list := slices.DeleteFunc(slices.Clone(*s.terminators.Load()), func(o *Terminator) bool { return o == t })
	s.terminators.Store(&list)
	s.mu.Unlock()
	t.group.close()
	s.abandon(t)
	return nil
}

var _ io.Closer = (*Terminator)(nil)
