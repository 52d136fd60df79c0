package netstack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/parsers/ip"
)

// A SYN is answered with a reset if the server refuses, with an ICMP error if it
// does not answer, and by nothing before that.
func TestSYN(t *testing.T) {
	noLeaks(t)
	for _, tt := range []struct {
		name string
		err  error
	}{{"refused", unix.ECONNREFUSED}, {"no answer", context.DeadlineExceeded}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
			asked := make(chan netip.AddrPort, 4)
			answer := make(chan error)
			_, err := s.Terminate(TerminateConfig{
				Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")},
				Dial: func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error) {
					asked <- server
					return nil, <-answer
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			syn := testSegment{flags: header.TCPFlagSyn, seq: 4711}.bytes()
			s.Input([][]byte{syn, syn})
			if got := <-asked; got != netip.AddrPortFrom(server4, 1883) {
				t.Errorf("dialed %s", got)
			}
			time.Sleep(20 * time.Millisecond)
			if len(asked) != 0 || len(s.endpoint.queue) != 0 {
				t.Error("answered or dialed again while the server was being dialed")
			}
			answer <- tt.err
			p := readOne(t, s)
			if tt.err == unix.ECONNREFUSED {
				if tcp := header.TCP(p[20:]); tcp.Flags() != header.TCPFlagRst|header.TCPFlagAck || tcp.AckNumber() != 4712 {
					t.Errorf("flags %s, acknowledges %d", tcp.Flags(), tcp.AckNumber())
				}
				return
			}
			kind, code, quote := readICMP(t, p, gateway4)
			if kind != 3 || code != 1 || !bytes.Equal(quote, syn) {
				t.Errorf("type %d code %d quoting % x", kind, code, quote)
			}
		})
	}
}

// Closing while a client does not answer the SYN-ACK.
func TestCloseInHandshake(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
	server := serve(t, echo)
	_, err := s.Terminate(TerminateConfig{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")},
		Map:      func(netip.AddrPort) netip.AddrPort { return server },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Input([][]byte{testSegment{flags: header.TCPFlagSyn}.bytes()})
	if p := header.TCP(readOne(t, s)[20:]); p.Flags() != header.TCPFlagSyn|header.TCPFlagAck {
		t.Fatalf("flags %s", p.Flags())
	}
	closed := make(chan bool)
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("Close waits for the client")
	}
}

// An ICMP error from the tunnel reaches the connection that it is about.
func TestDialUnreachable(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(client4, 24)}})
	got := make(chan error, 1)
	go func() {
		_, err := s.dialStack(t.Context(), netip.Addr{}, netip.AddrPortFrom(server4, 1883))
		got <- err
	}()
	refusal := AppendUnreachable(nil, readOne(t, s), NoHost, gateway4)
	refusal[21] = 3 // the port
	binary.BigEndian.PutUint16(refusal[22:], 0)
	binary.BigEndian.PutUint16(refusal[22:], ^checksum.Checksum(refusal[20:], 0))
	s.Input([][]byte{refusal})
	select {
	case err := <-got:
		if !errors.Is(err, unix.ECONNREFUSED) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the dial goes on")
	}
}

// Many connections that are reset at once, through a queue that cannot hold all
// the resets: the servers hear of each.
func TestResetsArrive(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{Queue: 8})
	addr, _ := join(t, clients, brokers, serve(t, echo), TerminateConfig{})
	const n = 200
	for range n {
		dial(t, addr)
	}
	waitFor(t, "all to be connected", func() bool { return brokers.Stats().Terminal.Active == n })
	clients.mu.Lock()
	var forwarders []io.Closer
	for f := range clients.open {
		forwarders = append(forwarders, f)
	}
	clients.mu.Unlock()
	for _, f := range forwarders {
		f.Close()
	}
	waitFor(t, "all to end", func() bool { return brokers.Stats().Terminal.Active == 0 })
}

func TestCloseResets(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	got := make(chan error, 1)
	server := serve(t, func(c *net.TCPConn) {
		_, err := io.ReadAll(c)
		got <- err
	})
	addr, _ := join(t, clients, brokers, server, TerminateConfig{})
	c := dial(t, addr)
	c.Write([]byte("x"))
	waitFor(t, "the connection", func() bool { return brokers.Stats().Terminal.Active == 1 })
	clients.Close()
	if err := <-got; !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("server got %v, want a reset", err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("client got %v, want a reset", err)
	}
}

func TestUDP(t *testing.T) {
	noLeaks(t)
	server, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go func() {
		b := make([]byte, 2000)
		for {
			n, from, err := server.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			server.WriteToUDPAddrPort(bytes.ToUpper(b[:n]), from)
		}
	}()
	s := newTestStack(t, StackConfig{})
	_, err = s.Terminate(TerminateConfig{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")},
		Map:      func(netip.AddrPort) netip.AddrPort { return server.LocalAddr().(*net.UDPAddr).AddrPort() },
		Limits:   Limits{Idle: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"hello", "again"} {
		s.Input([][]byte{datagram(word)})
		answer := readOne(t, s)
		if u := header.UDP(answer[20:]); string(u.Payload()) != strings.ToUpper(word) || u.SourcePort() != 0x1633 || header.IPv4(answer).SourceAddress().String() != server4.String() {
			t.Errorf("answer %q", u.Payload())
		}
	}
	if got := s.Stats().Terminal.Opened; got != 1 {
		t.Errorf("%d sessions, want 1", got)
	}
	terminator := (*s.terminators.Load())[0]
	waitFor(t, "the session to end", func() bool {
		terminator.mu.Lock()
		defer terminator.mu.Unlock()
		return terminator.sessions == 0
	})
}

// datagram returns a client's datagram to the server.
func datagram(word string) []byte {
	p := testSegment{payload: []byte(word)}.bytes()
	p = append(p[:20], append([]byte{0x9C, 0x40, 0x16, 0x33, 0, byte(8 + len(word)), 0, 0}, word...)...)
	h := header.IPv4(p)
	p[9] = ip.UDP
	h.SetTotalLength(uint16(len(p)))
	h.SetChecksum(0)
	h.SetChecksum(^h.CalculateChecksum())
	return p
}

func TestTerminateConfig(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{})
	for _, p := range []string{"", "10.2.0.1/24", "127.0.0.0/8", "224.0.0.0/4", "10.0.0.0/8 10.2.0.0/24"} {
		var cfg TerminateConfig
		for _, f := range strings.Fields(p) {
			cfg.Prefixes = append(cfg.Prefixes, netip.MustParsePrefix(f))
		}
		if _, err := s.Terminate(cfg); !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v", p, err)
		}
	}
	cfg := TerminateConfig{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}}
	first, err := s.Terminate(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inside := TerminateConfig{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.3.0/24")}}
	if _, err := s.Terminate(inside); !errors.Is(err, ErrInUse) {
		t.Errorf("overlapping: %v", err)
	}
	first.Close()
	if _, err := s.Terminate(inside); err != nil {
		t.Errorf("after Close: %v", err)
	}
}
