package firsthop

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"sheaf/parsers/ip"
)

// tcpResolver answers queries over TCP on loopback with as many addresses as fill 4 kB, and
// returns its address.
func tcpResolver(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for {
					var n [2]byte
					if _, err := io.ReadFull(c, n[:]); err != nil {
						return
					}
					q := make([]byte, binary.BigEndian.Uint16(n[:]))
					if _, err := io.ReadFull(c, q); err != nil {
						return
					}
					answer := answerOf(q, 200)
					_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// A tcpGuest is a guest with gVisor's TCP/IP.
type tcpGuest struct {
	stack *stack.Stack
	to    tcpip.FullAddress
	proto tcpip.NetworkProtocolNumber
}

func newTCPGuest(t *testing.T, w *wire, own, router netip.Addr) *tcpGuest {
	t.Helper()
	g := &tcpGuest{proto: ipv4.ProtocolNumber}
	all := header.IPv4EmptySubnet
	if own.Is6() {
		g.proto, all = ipv6.ProtocolNumber, header.IPv6EmptySubnet
	}
	g.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	nic := channel.New(512, 1500, "")
	address := tcpip.ProtocolAddress{Protocol: g.proto, AddressWithPrefix: tcpip.AddrFromSlice(own.AsSlice()).WithPrefix()}
	if err := g.stack.CreateNIC(1, nic); err != nil {
		t.Fatal(err)
	}
	if err := g.stack.AddProtocolAddress(1, address, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	g.stack.SetRouteTable([]tcpip.Route{{Destination: all, NIC: 1}})
	g.to = tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFromSlice(router.AsSlice()), Port: dnsPort}
	ctx, cancel := context.WithCancel(context.Background())
	var carrying sync.WaitGroup
	carrying.Go(func() {
		for p := nic.ReadContext(ctx); p != nil; p = nic.ReadContext(ctx) {
			b := p.ToView().AsSlice()
			if h := (ip.Header{}); h.Parse(b) == nil && h.Src() == own {
				w.send(ipFrame(macA, slices.Clone(b)))
			}
			p.DecRef()
		}
	})
	carrying.Go(func() {
		for ctx.Err() == nil {
			for _, f := range w.take() {
				if [6]byte(f) == macA {
					p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(f[headLen:])})
					nic.InjectInbound(g.proto, p)
					p.DecRef()
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); carrying.Wait(); g.stack.Close(); g.stack.Wait() })
	return g
}

// ask sends a query over a connection and returns how long the answer was, and an error where
// there was no connection.
func (g *tcpGuest) ask(t *testing.T) (n int, c net.Conn, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err = gonet.DialContextTCP(ctx, g.stack, g.to, g.proto)
	if err != nil {
		return 0, nil, err
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	q := dnsQuery(7, "broker.example.")
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
		t.Fatal(err)
	}
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint16(head[:]))
	if _, err := io.ReadFull(c, answer); err != nil {
		t.Fatal(err)
	}
	return len(answer), c, nil
}

// A long answer comes over TCP, both families; a guest has so many connections, and what it
// holds is given back.
func TestDNSOverTCP(t *testing.T) {
	want := len(answerOf(dnsQuery(7, "broker.example."), 200))
	l, w := dnsLab(t, netip.MustParseAddrPort("127.0.0.1:9"), tcpResolver(t)) // nobody listens at the first
	g := newTCPGuest(t, w, a4, router4)
	var open []net.Conn
	for i := range tcpConnections {
		n, c, err := g.ask(t)
		if err != nil || n != want {
			t.Fatalf("connection %d: %d bytes, want %d: %v", i, n, want, err)
		}
		open = append(open, c)
	}
	if _, _, err := g.ask(t); err == nil {
		t.Error("one more is connected")
	}
	if len(l.dns.slots) != tcpConnections {
		t.Errorf("%d places are taken, want %d", len(l.dns.slots), tcpConnections)
	}
	for _, c := range open {
		c.Close()
	}
	for i := 0; len(l.dns.slots) > 0; i++ {
		if i == 1000 {
			t.Fatalf("%d places are still taken", len(l.dns.slots))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n, _, err := g.ask(t); n != want {
		t.Errorf("after the others: %d bytes, %v", n, err)
	}
	if err := l.Unplug("a"); err != nil {
		t.Fatal(err)
	}
	if len(l.dns.slots) != 0 {
		t.Errorf("%d places are taken by a port that is gone", len(l.dns.slots))
	}
}

func TestDNSOverTCPAndIPv6(t *testing.T) {
	_, w := dnsLab(t, tcpResolver(t))
	g := newTCPGuest(t, w, a6, router6)
	if n, _, err := g.ask(t); err != nil || n != len(answerOf(dnsQuery(7, "broker.example."), 200)) {
		t.Errorf("%d bytes", n)
	}
}
