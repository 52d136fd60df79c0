package netstack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/parsers/ip"
)

func newTestStack(t *testing.T, cfg StackConfig) *Stack {
	t.Helper()
	s, err := NewStack(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A port is what the tests read and write: a TUN, a Stack, or one that checks what
// comes out of it.
type port interface {
	Read(bufs [][]byte, sizes []int) (int, error)
	Write(packets [][]byte) error
	BatchSize() int
	Close() error
}

// pump reads from one port and writes to another until the first is closed.
func pump(from, to port) {
	bufs, sizes := buffers(from)
	for {
		n, err := from.Read(bufs, sizes)
		if err != nil {
			return
		}
		packets := make([][]byte, n)
		for i := range packets {
			packets[i] = bufs[i][:sizes[i]]
		}
		to.Write(packets)
	}
}

func buffers(p port) ([][]byte, []int) {
	bufs := make([][]byte, p.BatchSize())
	for i := range bufs {
		bufs[i] = make([]byte, MaxPacket)
	}
	return bufs, make([]int, len(bufs))
}

// backToBack makes two gateways without a tunnel between them:
//
//	Forward -> clients' stack (10.99.0.1, fd99::1) <-> brokers' stack (10.99.0.2, fd99::2) -> Terminate
func backToBack(t *testing.T, cfg StackConfig) (clients, brokers *Stack) {
	t.Helper()
	noLeaks(t)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	cfg.Addresses = []netip.Prefix{netip.MustParsePrefix("10.99.0.1/24"), netip.MustParsePrefix("fd99::1/64")}
	clients = newTestStack(t, cfg)
	cfg.Addresses = []netip.Prefix{netip.MustParsePrefix("10.99.0.2/24"), netip.MustParsePrefix("fd99::2/64")}
	brokers = newTestStack(t, cfg)
	running.Go(func() { pump(clients, brokers) })
	running.Go(func() { pump(brokers, clients) })
	return clients, brokers
}

// readOne reads one packet from a stack that nobody else reads.
func readOne(t *testing.T, s *Stack) []byte {
	t.Helper()
	type result struct {
		p   []byte
		err error
	}
	got := make(chan result, 1)
	go func() {
		b, sizes := [][]byte{make([]byte, MaxPacket)}, []int{0}
		_, err := s.Read(b, sizes)
		got <- result{b[0][:sizes[0]], err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.p
	case <-time.After(5 * time.Second):
		t.Fatal("nothing to read")
	}
	return nil
}

func TestStackConfig(t *testing.T) {
	noLeaks(t)
	tests := []struct {
		name string
		cfg  StackConfig
		want error
	}{
		{"MTU small", StackConfig{MTU: 1279}, ErrMTU},
		{"MTU large", StackConfig{MTU: 65536}, ErrMTU},
		{"no address", StackConfig{Addresses: make([]netip.Prefix, 1)}, ErrAddress},
		{"unspecified", StackConfig{Addresses: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}, ErrAddress},
		{"multicast", StackConfig{Addresses: []netip.Prefix{netip.MustParsePrefix("ff02::1/64")}}, ErrAddress},
		{"twice", StackConfig{Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("10.0.0.1/8")}}, ErrAddress},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := NewStack(tt.cfg); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

func TestPing(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24), netip.PrefixFrom(gateway6, 64)}})
	body := append([]byte{0x12, 0x34, 0, 1}, bytes.Repeat([]byte("ping"), 300)...)
	s.Input([][]byte{icmpPacket(client4, gateway4, 8, body)})
	p := header.IPv4(readOne(t, s))
	if !p.IsValid(len(p)) || !p.IsChecksumValid() || p.SourceAddress().String() != gateway4.String() || p.DestinationAddress().String() != client4.String() {
		t.Errorf("bad IPv4 header % x", p[:20])
	}
	if i := p.Payload(); i[0] != 0 || !bytes.Equal(i[4:], body) {
		t.Error("not an echo reply with the same body")
	}
	s.Input([][]byte{icmpPacket(client6, gateway6, 128, body)})
	q := header.IPv6(readOne(t, s))
	if !q.IsValid(len(q)) || q.SourceAddress().String() != gateway6.String() || q.Payload()[0] != 129 || !bytes.Equal(q.Payload()[4:], body) {
		t.Error("not an ICMPv6 echo reply with the same body")
	}
}

// owns reports whether packets to an address are for the stack.
func owns(s *Stack, addr netip.Addr) bool {
	h := ip.Header{}
	p := icmpPacket(client4, addr, 0, make([]byte, 8))
	if addr.Is6() {
		p = icmpPacket(client6, addr, 129, make([]byte, 8))
	}
	return h.Parse(p) == nil && s.accepts(&h)
}

func TestStray(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
	if !owns(s, gateway4) || owns(s, server4) || owns(s, gateway6) || owns(s, netip.MustParseAddr("10.99.0.77")) {
		t.Error("owns more or less than its address")
	}
	s.Input([][]byte{icmpPacket(client4, server4, 8, make([]byte, 8)), nil, {0x45}, make([]byte, 40)})
	if got := s.Stats().Stray; got != 4 {
		t.Errorf("%d stray packets, want 4", got)
	}
	term, err := s.Terminate(TerminateConfig{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("fd02::/64")}})
	if err != nil {
		t.Fatal(err)
	}
	if !owns(s, server4) || owns(s, netip.MustParseAddr("10.2.1.1")) {
		t.Error("owns more or less than its prefix")
	}
	s.Input([][]byte{icmpPacket(client4, server4, 8, make([]byte, 8))})
	if got := s.Stats().Stray; got != 5 {
		t.Error("a ping to a terminated address was taken")
	}
	later := icmpPacket(client4, server4, 8, make([]byte, 8))
	later[7] = 1 // an offset: what looks like the type is not
	header.IPv4(later).SetChecksum(0)
	header.IPv4(later).SetChecksum(^header.IPv4(later).CalculateChecksum())
	s.Input([][]byte{later})
	if got := s.Stats().Stray; got != 5 {
		t.Error("a later fragment was taken for a ping")
	}
	syn := testSegment{src: client6, dst: server6, flags: header.TCPFlagSyn}.bytes()
	signed := slices.Concat(syn[:40], []byte{ip.TCP, 4}, make([]byte, 22), syn[40:])
	signed[5], signed[6] = byte(len(signed)-40), 51
	s.Input([][]byte{signed})
	if got := s.Stats().Stray; got != 6 {
		t.Error("an authenticated segment to a terminated address was taken")
	}
	// A segment of a connection from before: reset, so that the client notices.
	s.Input([][]byte{testSegment{flags: header.TCPFlagAck, seq: 5, ack: 9, payload: []byte("x")}.bytes()})
	p := readOne(t, s)
	if tcp := header.TCP(p[20:]); tcp.Flags()&header.TCPFlagRst == 0 || header.IPv4(p).SourceAddress().String() != server4.String() {
		t.Errorf("flags %s from %s, want a reset from the server", tcp.Flags(), header.IPv4(p).SourceAddress())
	}
	term.Close()
	if owns(s, server4) {
		t.Error("owns the prefix after Close")
	}
}

// Nobody reads: what may not wait does not, and is counted.
func TestInputDoesNotWait(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}, Queue: 4})
	done := make(chan bool)
	go func() {
		for i := range 20 {
			body := make([]byte, 8)
			binary.BigEndian.PutUint16(body, uint16(i))
			s.Input([][]byte{icmpPacket(client4, gateway4, 8, body)})
			s.Input([][]byte{testSegment{dst: gateway4, src: client4, flags: header.TCPFlagSyn}.bytes()})
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("Input waits for Read")
	}
	if got := s.Stats().Dropped; got != 36 {
		t.Errorf("%d dropped, want 36 of 40", got)
	}
}

func TestReadAfterClose(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
	got := make(chan error)
	bufs, sizes := buffers(s)
	go func() {
		_, err := s.Read(bufs, sizes)
		got <- err
	}()
	time.Sleep(10 * time.Millisecond)
	s.Close()
	if err := <-got; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Read: %v", err)
	}
	if err := s.Write(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
	if _, err := s.Forward(t.Context(), ForwardConfig{From: "tcp:127.0.0.1:0", To: netip.AddrPortFrom(server4, 1)}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Forward: %v", err)
	}
	if _, err := s.Terminate(TerminateConfig{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Terminate: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Packets from the tunnel are not trusted.
func FuzzStack(f *testing.F) {
	f.Add(testSegment{dst: gateway4, src: client4, flags: header.TCPFlagSyn}.bytes())
	f.Add(icmpPacket(client4, gateway4, 8, make([]byte, 20)))
	f.Add(icmpPacket(client4, gateway4, 3, make([]byte, 40)))
	f.Add(icmpPacket(client6, gateway6, 2, make([]byte, 60)))
	f.Add(testSegment{src: client6, dst: gateway6, flags: header.TCPFlagSyn}.bytes())
	s, err := NewStack(StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24), netip.PrefixFrom(gateway6, 64)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, packet []byte) {
		s.Input([][]byte{packet})
	})
}
