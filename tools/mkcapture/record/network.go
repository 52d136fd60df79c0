package record

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"sheaf/tools/pubsub"
)

const (
	nic = 1
	mtu = 1500
)

// brokerHost is the address of the broker's host.
var brokerHost = netip.AddrFrom4([4]byte{10, 2, 0, 10})

// client returns the address of a client's host.
func client(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 1, byte(1 + i/250), byte(1 + i%250)})
}

// A network is the hosts of the clients, that of the broker, and the cable between
// them.
type network struct {
	clients, broker *stack.Stack
	tap             *tap

	mu      sync.Mutex
	open    []io.Closer // listeners and connections
	closing bool
	serving sync.WaitGroup
}

// newNetwork makes a network with so many clients, whose cable is recorded by rec
// and whose time is rec's.
func newNetwork(clients int, rec *recorder) (*network, error) {
	near, far := pipe.New("", "", mtu)
	n := &network{tap: newTap(far, rec)}
	var own []netip.Addr
	for i := range clients {
		own = append(own, client(i))
	}
	var err error
	if n.clients, err = newHost(near, own, rec.clock); err != nil {
		return nil, fmt.Errorf("the clients' stack: %w", err)
	}
	if n.broker, err = newHost(n.tap, []netip.Addr{brokerHost}, rec.clock); err != nil {
		return nil, fmt.Errorf("the broker's stack: %w", err)
	}
	return n, nil
}

// newHost makes a stack with an interface and its addresses.
func newHost(link stack.LinkEndpoint, own []netip.Addr, c tcpip.Clock) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
		Clock:              c,
	})
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return nil, errors.New(err.String())
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return nil, errors.New(err.String())
	}
	for _, a := range own {
		address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddrFromSlice(a.AsSlice()).WithPrefix()}
		if err := s.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
			return nil, fmt.Errorf("%s: %s", a, err)
		}
	}
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return s, nil
}

func fullAddress(a netip.AddrPort) tcpip.FullAddress {
	return tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFromSlice(a.Addr().AsSlice()), Port: a.Port()}
}

// dialer dials from a client's host.
func (n *network) dialer(i int) pubsub.DialFunc {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		c, err := gonet.DialTCPWithBind(ctx, n.clients, fullAddress(netip.AddrPortFrom(client(i), 0)), fullAddress(to), ipv4.ProtocolNumber)
		if err != nil {
			return nil, err
		}
		return c, n.keep(c)
	}
}

// keep makes close close c.
func (n *network) keep(c io.Closer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closing {
		return errors.Join(net.ErrClosed, c.Close())
	}
	n.open = append(n.open, c)
	return nil
}

// serve has the broker's host take connections at a port and calls handle for
// each, which owns it.
func (n *network) serve(port uint16, handle func(net.Conn)) (netip.AddrPort, error) {
	at := netip.AddrPortFrom(brokerHost, port)
	l, err := gonet.ListenTCP(n.broker, fullAddress(at), ipv4.ProtocolNumber)
	if err != nil {
		return at, fmt.Errorf("listening at %s: %w", at, err)
	}
	n.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n.keep(c) == nil {
				n.serving.Go(func() { handle(c) })
			}
		}
	})
	return at, n.keep(listener{l})
}

// A listener is gVisor's with a Close that ends Accept.
type listener struct{ *gonet.TCPListener }

// Close implements io.Closer.
func (l listener) Close() error {
	l.Shutdown()
	return l.TCPListener.Close()
}

// forward has the broker's host carry connections at a port to a broker at an
// address of this machine, through TLS if cfg is not nil.
func (n *network) forward(port uint16, to string, cfg *tls.Config) (netip.AddrPort, error) {
	return n.serve(port, func(c net.Conn) {
		b, err := net.DialTimeout("tcp", to, 10*time.Second)
		if err != nil {
			c.Close()
			return
		}
		if cfg != nil {
			c = tls.Server(c, cfg)
		}
		splice(c, b)
	})
}

// splice carries bytes both ways until one of the connections ends.
func splice(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			a.Close()
			b.Close()
		})
	}
	both.Wait()
}

// close ends all connections and the stacks. What they say then is recorded no
// more.
func (n *network) close() {
	n.tap.rec.stop()
	n.mu.Lock()
	n.closing = true
	open := n.open
	n.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	n.serving.Wait()
	n.clients.Close() // without waiting for connections that wait for time to go on
	n.broker.Close()
}
