package engine

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"sheaf/netstack"
	"sheaf/netstack/certtest"
	"sheaf/parsers/ip"
)

var tlsServer4, tlsServer6 = netip.MustParseAddrPort("10.2.0.10:8883"), netip.MustParseAddrPort("[fd00::10]:8883")

// newAside makes one for servers in front of a plain one on loopback.
func newAside(t *testing.T, plain netip.AddrPort, certificate tls.Certificate) *aside {
	t.Helper()
	f := netstack.NewTLSFront(netstack.TLSFrontConfig{
		To: plain, Config: func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{certificate}} },
	})
	a, err := openAside(map[netip.AddrPort]*netstack.TLSFront{tlsServer4: f, tlsServer6: f}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// segment makes a packet with TCP's ports and 20 bytes of TCP.
func segment(src, dst netip.AddrPort) []byte {
	p := datagram(src.Addr().String(), dst.Addr().String())
	at := len(p) - 8
	p = append(p[:at], make([]byte, 20)...)
	if dst.Addr().Is4() {
		p[9] = ip.TCP
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	} else {
		p[6] = ip.TCP
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-at))
	}
	binary.BigEndian.PutUint16(p[at:], src.Port())
	binary.BigEndian.PutUint16(p[at+2:], dst.Port())
	p[at+12] = 5 << 4
	return p
}

// What is taken aside: TCP to a server's address and port, and ICMP errors about TCP from
// there. All else goes to the device, in order.
func TestAsideTakes(t *testing.T) {
	a := newAside(t, netip.MustParseAddrPort("127.0.0.1:1"), tls.Certificate{})
	client4, client6 := netip.MustParseAddrPort("10.1.0.7:40001"), netip.MustParseAddrPort("[fd00:1::7]:40001")
	port := func(a netip.AddrPort, p uint16) netip.AddrPort { return netip.AddrPortFrom(a.Addr(), p) }
	router4, router6 := netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd00:1::1")
	about := func(p []byte, from netip.Addr) []byte {
		return netstack.AppendUnreachable(nil, p, netstack.NoHost, from)
	}
	fragment := segment(client4, tlsServer4)
	fragment[6] = 0x20
	udp := segment(client4, tlsServer4)
	udp[9] = ip.UDP
	udpFrom := segment(tlsServer4, client4)
	udpFrom[9] = ip.UDP
	var mixed, others [][]byte
	for _, tt := range []struct {
		name   string
		packet []byte
		taken  bool
	}{
		{"to the server", segment(client4, tlsServer4), true},
		{"to the server, IPv6", segment(client6, tlsServer6), true},
		{"to another port", segment(client4, port(tlsServer4, 1883)), false},
		{"to another address", segment(client4, netip.MustParseAddrPort("10.2.0.11:8883")), false},
		{"from the server", segment(tlsServer4, client4), false},
		{"a fragment", fragment, false},
		{"UDP", udp, false},
		{"an error about the server's", about(segment(tlsServer4, client4), router4), true},
		{"an error about the server's, IPv6", about(segment(tlsServer6, client6), router6), true},
		{"an error about another port's", about(segment(port(tlsServer4, 1883), client4), router4), false},
		{"an error about the client's", about(segment(client4, tlsServer4), router4), false},
		{"an error about UDP", about(udpFrom, router4), false},
		{"nothing", nil, false},
		{"a header only", segment(client4, tlsServer4)[:20], false},
	} {
		if got := a.claims(tt.packet); got != tt.taken {
			t.Errorf("%s: taken aside: %v", tt.name, got)
		}
		mixed = append(mixed, tt.packet)
		if !tt.taken {
			others = append(others, tt.packet)
		}
	}
	if got := a.take(slices.Clone(mixed)); !slices.EqualFunc(got, others, slices.Equal) {
		t.Errorf("%d packets are left of %d, want %d", len(got), len(mixed), len(others))
	}
	g, out := hub(t, nil)
	g.aside = a
	if err := g.handOut(slices.Clone(mixed)); err != nil || len(out.packets) != len(others) {
		t.Errorf("%d packets to the device, want %d; %v", len(out.packets), len(others), err)
	}
	n := len(out.packets)
	if err := g.handOut([][]byte{segment(client4, tlsServer4)}); err != nil || len(out.packets) != n {
		t.Errorf("%d packets to the device, want %d; %v", len(out.packets), n, err)
	}
}

// What the stack sends to nobody's address is refused in the stack, as by a router: the
// device, whose host has no part in the connection, hears nothing of it.
func TestAsideIsRefused(t *testing.T) {
	g, out := hub(t, nil)
	g.replies = newReplies()
	g.aside = newAside(t, netip.MustParseAddrPort("127.0.0.1:1"), tls.Certificate{})
	g.route(0, fromHost, segment(tlsServer4, netip.MustParseAddrPort("10.1.0.7:40001")))
	if len(out.packets) != 0 || g.unroutable.Load() != 1 {
		t.Errorf("%d packets to the device, %d unroutable", len(out.packets), g.unroutable.Load())
	}
	g.route(0, fromHost, segment(netip.AddrPortFrom(tlsServer4.Addr(), 1883), netip.MustParseAddrPort("10.1.0.7:40001")))
	if len(out.packets) != 1 {
		t.Errorf("%d packets to the device, want the refusal of the host's own", len(out.packets))
	}
}

// A source is a Port that has a number of packets to read.
type source struct {
	sink
	left   int
	packet []byte
}

func (s *source) Read(bufs [][]byte, sizes []int) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	s.left--
	sizes[0] = copy(bufs[0], s.packet)
	return 1, nil
}

// What two ports read at the same time comes to the lanes, each packet once.
func TestTwoPumps(t *testing.T) {
	g, _ := hub(t, map[string]string{"clients": "10.1.0.0/16"})
	g.since = time.Now()
	l := &laneRunner{stall: time.Second, queue: newQueue(1<<24, time.Hour)}
	for i := range g.peers["clients"].lanes {
		g.peers["clients"].lanes[i] = l
	}
	var pumps sync.WaitGroup
	for range 2 {
		port := &source{left: 2000, packet: segment(tlsServer4, netip.MustParseAddrPort("10.1.0.7:40001"))}
		pumps.Go(func() { _ = g.pump(port, fromHost) })
	}
	pumps.Wait()
	if got := len(l.queue.take(nil)); got != 4000 {
		t.Errorf("%d packets are queued, want 4000", got)
	}
}

// A client behind the tunnel talks TLS to the stack beside the device, and plainly to the
// server behind it; over both versions of IP.
func TestAsideServes(t *testing.T) {
	ca := certtest.NewCA(t, "an authority")
	server := echoServer(t).(*net.TCPAddr).AddrPort()
	a := newAside(t, server, ca.Issue(t, certtest.Leaf{Hosts: []string{"broker.test"}}))
	clients, err := netstack.NewStack(netstack.StackConfig{Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.7/24"), netip.MustParsePrefix("fd00:1::7/64")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = clients.Close() })
	relay := func(from Port, to func([][]byte)) {
		bufs, sizes := make([][]byte, from.BatchSize()), make([]int, from.BatchSize())
		for i := range bufs {
			bufs[i] = make([]byte, netstack.MaxPacket)
		}
		for {
			n, err := from.Read(bufs, sizes)
			if err != nil {
				return
			}
			var packets [][]byte
			for i := range n {
				packets = append(packets, bufs[i][:sizes[i]])
			}
			to(packets)
		}
	}
	go relay(clients, func(p [][]byte) {
		if others := a.take(p); len(others) > 0 {
			t.Errorf("%d packets are not taken", len(others))
		}
	})
	go relay(a, clients.Input)
	for _, to := range []netip.AddrPort{tlsServer4, tlsServer6} {
		open := make(chan error, 10)
		f, err := clients.Forward(context.Background(), netstack.ForwardConfig{From: "tcp:127.0.0.1:0", To: to, Changed: func(err error) { open <- err }})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-open; err != nil {
			t.Fatal(err)
		}
		raw := dial(t, f.Addr().String())
		_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
		c := tls.Client(raw, &tls.Config{ServerName: "broker.test", RootCAs: ca.Pool()})
		_, _ = io.WriteString(c, "hello")
		_ = c.CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
			t.Errorf("%v: %q, %v", to, got, err)
		}
	}
}
