package netstack

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"sheaf/parsers/ip"
)

const (
	nicID         = 1
	stackBatch    = 64      // packets a Read returns at most
	defaultQueue  = 512     // packets
	defaultBuffer = 1 << 20 // bytes
	firstBuffer   = 1 << 18 // bytes; what a connection starts with
	errorQueue    = 64      // ICMP errors
	abortInterval = 10 * time.Millisecond
	minBuffer     = 1 << 12 // bytes
)

// StackConfig says what a stack is. The zero value is one that has no address
// and can only Terminate.
type StackConfig struct {
	Addresses []netip.Prefix // its own; it answers for the addresses, not for their subnets
	MTU       int            // bytes, 1280 to 65535; 0 is DefaultMTU
	Queue     int            // packets emitted but not yet read before writers wait; 0 is 512
	Buffer    int            // bytes that a connection holds in each direction at most; 0 is 1 MiB
}

// StackStats counts since NewStack.
type StackStats struct {
	Stray    uint64   `json:"stray"`     // packets to Write that are not for this stack, or too many ICMP errors
	Dropped  uint64   `json:"dropped"`   // answers to stray packets for which Queue had no room, and what a closing stack held back
	Forward  EndStats `json:"forward"`   // of the Forwarders
	Terminal EndStats `json:"terminate"` // of the Terminators
}

// A Stack is a TCP/IP stack of the gateway's own. Its methods may be called at
// the same time, except that one goroutine at a time reads.
type Stack struct {
	buffer   int
	own      atomic.Pointer[map[netip.Addr]bool] // replaced as a whole, under mu
	first    [2]netip.Addr                       // the first address of StackConfig: IPv4, IPv6
	endpoint *endpoint
	stack    *stack.Stack
	syns     *tcp.Forwarder

	forwards  ends
	terminals ends

	terminators atomic.Pointer[[]*Terminator] // replaced as a whole, under mu

	mu     sync.Mutex // guards closed and open, and changes of own and terminators
	closed bool
	open   map[interface{ Close() error }]bool // Forwarders and Terminators

	icmpErrors chan *stack.PacketBuffer
	working    sync.WaitGroup // the goroutine that delivers them

	stray atomic.Uint64
}

// NewStack makes a stack and starts it.
func NewStack(cfg StackConfig) (*Stack, error) {
	if cfg.MTU == 0 {
		cfg.MTU = DefaultMTU
	}
	if cfg.MTU < minMTU6 || cfg.MTU > MaxPacket {
		return nil, fmt.Errorf("stack: MTU %d: %w: give %d to %d bytes", cfg.MTU, ErrMTU, minMTU6, MaxPacket)
	}
	if cfg.Queue <= 0 {
		cfg.Queue = defaultQueue
	}
	if cfg.Buffer <= 0 {
		cfg.Buffer = defaultBuffer
	}
	s := &Stack{
		buffer:   max(cfg.Buffer, minBuffer),
		endpoint: newEndpoint(cfg.MTU, cfg.Queue),
		open:     make(map[interface{ Close() error }]bool),

		icmpErrors: make(chan *stack.PacketBuffer, errorQueue),
		stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
		}),
	}
	s.own.Store(&map[netip.Addr]bool{})
	s.terminators.Store(&[]*Terminator{})
	s.syns = tcp.NewForwarder(s.stack, min(firstBuffer, s.buffer), maxInFlight, s.serveTCP)
	s.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, s.strayTCP)
	if err := s.setUp(cfg.Addresses); err != nil {
		s.Close()
		return nil, err
	}
	s.working.Go(s.deliverErrors)
	return s, nil
}

func (s *Stack) setUp(addresses []netip.Prefix) error {
	first := min(firstBuffer, s.buffer)
	sack := tcpip.TCPSACKEnabled(true)
	moderate := tcpip.TCPModerateReceiveBufferOption(true)
	for _, option := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: minBuffer, Default: first, Max: s.buffer},
		&tcpip.TCPSendBufferSizeRangeOption{Min: minBuffer, Default: first, Max: s.buffer},
	} {
		if err := s.stack.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return fmt.Errorf("stack: %T: %s", option, err)
		}
	}
	if err := s.stack.CreateNIC(nicID, s.endpoint); err != nil {
		return fmt.Errorf("stack: interface: %s", err)
	}
	for _, a := range addresses {
		if err := s.AddAddress(a.Addr()); err != nil {
			return err
		}
		if f := familyIndex(a.Addr()); !s.first[f].IsValid() {
			s.first[f] = a.Addr()
		}
	}
	s.stack.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: nicID},
		{Destination: header.IPv6EmptySubnet, NIC: nicID},
	})
	return nil
}

// AddAddress gives the stack one more address of its own, which ForwardConfig.SourceOf may
// then name.
func (s *Stack) AddAddress(a netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.IsValid() || a.Is4In6() || a.Zone() != "" || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || s.owns(a) {
		return fmt.Errorf("stack: address %s: %w: give each address of the gateway once, like 10.99.0.1/24", a, ErrAddress)
	}
	address := tcpip.ProtocolAddress{
		Protocol:          networkProtocol(a),
		AddressWithPrefix: tcpip.AddrFromSlice(a.AsSlice()).WithPrefix(),
	}
	if err := s.stack.AddProtocolAddress(nicID, address, stack.AddressProperties{}); err != nil {
		return fmt.Errorf("stack: address %s: %s", a, err)
	}
	own := maps.Clone(*s.own.Load())
	own[a] = true
	s.own.Store(&own)
	return nil
}

// RemoveAddress takes an address away that AddAddress gave. Of connections from it no
// further packet gets in.
func (s *Stack) RemoveAddress(a netip.Addr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owns(a) || slices.Contains(s.first[:], a) {
		return fmt.Errorf("stack: address %s: %w: it is not one that was added", a, ErrAddress)
	}
	own := maps.Clone(*s.own.Load())
	delete(own, a)
	s.own.Store(&own)
	if err := s.stack.RemoveAddress(nicID, tcpip.AddrFromSlice(a.AsSlice())); err != nil {
		return fmt.Errorf("stack: address %s: %s", a, err)
	}
	return nil
}

// owns reports whether a is an address of the stack's own.
func (s *Stack) owns(a netip.Addr) bool { return (*s.own.Load())[a] }

// Input puts packets that came out of the tunnel into the stack. It does not wait
// for Read. The packets are borrowed until it returns. Packets that are not for the
// stack are dropped and counted.
func (s *Stack) Input(packets [][]byte) {
	for _, p := range packets {
		var h ip.Header
		if h.Parse(p) != nil || !s.accepts(&h) {
			s.stray.Add(1)
			continue
		}
		pb := newPacket(p)
		if isError(&h) {
			select {
			case s.icmpErrors <- pb:
				continue
			default: // too many at once; their cause will bring more
				s.stray.Add(1)
			}
		} else {
			s.endpoint.deliver(networkProtocol(h.Dst()), pb)
		}
		pb.DecRef()
	}
}

// deliverErrors puts ICMP errors into the stack. It is a goroutine of its own
// because they take the lock of their connection, and who holds that may be
// waiting for Read.
func (s *Stack) deliverErrors() {
	for {
		select {
		case pb := <-s.icmpErrors:
			version := header.IPVersion(pb.Data().AsRange().ToSlice())
			protocol := tcpip.NetworkProtocolNumber(ipv4.ProtocolNumber)
			if version == header.IPv6Version {
				protocol = ipv6.ProtocolNumber
			}
			s.endpoint.deliver(protocol, pb)
			pb.DecRef()
		case <-s.endpoint.closing:
			return
		}
	}
}

// accepts decides on a packet. For an address that a Terminator stands in for,
// only TCP, UDP and the ICMP that belongs to them is: a ping would learn that a
// server is up from somebody who does not know, and what is authenticated (AH) that
// the server cannot check it.
func (s *Stack) accepts(h *ip.Header) bool {
	dst := h.Dst()
	if s.owns(dst) {
		return true
	}
	if s.terminator(dst) == nil || h.Authenticated {
		return false
	}
	switch h.Proto {
	case ip.TCP, ip.UDP:
		return true
	case ip.ICMP, ip.ICMPv6:
		return !isEcho(h)
	}
	return false
}

// emit sends a packet that was made outside of the stack. It is dropped if there
// is no room.
func (s *Stack) emit(packet []byte) {
	pb := newPacket(packet)
	if !s.endpoint.push(pb, false) {
		pb.DecRef()
		s.endpoint.dropped.Add(1)
	}
}

func newPacket(packet []byte) *stack.PacketBuffer {
	return stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(packet)})
}

// Write implements engine.Port with Input.
func (s *Stack) Write(packets [][]byte) error {
	select {
	case <-s.endpoint.closing:
		return fmt.Errorf("stack: %w", os.ErrClosed)
	default:
		s.Input(packets)
		return nil
	}
}

// Read implements engine.Port: it returns packets that the stack emits. After Close it
// returns what is left, resets among it, and then os.ErrClosed.
func (s *Stack) Read(bufs [][]byte, sizes []int) (int, error) {
	return s.endpoint.read(bufs, sizes)
}

// BatchSize implements engine.Port.
func (s *Stack) BatchSize() int { return stackBatch }

// Stats returns the counters so far.
func (s *Stack) Stats() StackStats {
	return StackStats{
		Stray:    s.stray.Load(),
		Dropped:  s.endpoint.dropped.Load(),
		Forward:  s.forwards.stats(),
		Terminal: s.terminals.stats(),
	}
}

// Close resets all connections, ends the Forwarders and Terminators and waits for
// their goroutines. Closing again does nothing.
func (s *Stack) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()

	close(s.endpoint.closing) // a writer that waits holds its connection's lock
	var errs []error
	for c := range open {
		errs = append(errs, c.Close())
	}
	s.working.Wait()
	s.stack.Close()
	s.endHandshakes()
	s.stack.Wait()
	close(s.endpoint.closed)
	return errors.Join(errs...)
}

// endHandshakes waits for the goroutines of connections. Of those it ends the
// handshakes: gVisor waits for the client in them, whom nobody answers any more,
// and one may have begun after all others were reset.
func (s *Stack) endHandshakes() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.forwards.wait()
		s.terminals.wait()
	}()
	for {
		for _, e := range s.stack.RegisteredEndpoints() {
			e.Abort()
		}
		select {
		case <-done:
			return
		case <-time.After(abortInterval):
		}
	}
}

// adopt makes Close close c as well. It fails once the stack is closed.
func (s *Stack) adopt(c interface{ Close() error }) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("stack: %w", os.ErrClosed)
	}
	s.open[c] = true
	return nil
}

func (s *Stack) abandon(c interface{ Close() error }) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

func networkProtocol(a netip.Addr) tcpip.NetworkProtocolNumber {
	if a.Is4() {
		return ipv4.ProtocolNumber
	}
	return ipv6.ProtocolNumber
}

func familyIndex(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

func fullAddress(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFromSlice(a.Addr().AsSlice()), Port: a.Port()}
}

func addrPort(a tcpip.Address, port uint16) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(a.AsSlice())
	return netip.AddrPortFrom(ip, port)
}
