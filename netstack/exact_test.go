package netstack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/parsers/ip"
)

// readPackets reads until there are n packets that keep accepts, and returns
// copies.
func readPackets(t *testing.T, p port, n int, keep func([]byte) bool) [][]byte {
	t.Helper()
	bufs, sizes := buffers(p)
	var got [][]byte
	timer := time.AfterFunc(10*time.Second, func() { p.Close() })
	defer timer.Stop()
	for len(got) < n {
		m, err := p.Read(bufs, sizes)
		if err != nil {
			t.Fatalf("after %d of %d packets: %v", len(got), n, err)
		}
		for i := range m {
			if b := bufs[i][:sizes[i]]; keep(b) {
				got = append(got, bytes.Clone(b))
			}
		}
	}
	return got
}

// forServer keeps router solicitations and the like out.
func forServer(p []byte) bool {
	var h ip.Header
	return h.Parse(p) == nil && (h.Dst() == server4 || h.Dst() == server6)
}

func eachMode(t *testing.T, f func(t *testing.T, offload bool)) {
	for _, offload := range []bool{true, false} {
		t.Run(fmt.Sprintf("offload=%v", offload), func(t *testing.T) {
			noLeaks(t)
			f(t, offload)
		})
	}
}

// What a program sends with its own IP header is what Read returns.
func TestTUNReadExact(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24"), Offload: offload})
		if err := d.AddRoute(netip.MustParsePrefix("10.2.0.0/24")); err != nil {
			t.Fatal(err)
		}
		raw, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(raw)
		ping := icmpPacket(netip.MustParseAddr("10.99.0.1"), server4, 8, bytes.Repeat([]byte("ping"), 300))
		binary.BigEndian.PutUint16(ping[4:], 777) // the kernel would fill in zero
		header.IPv4(ping).SetChecksum(0)
		header.IPv4(ping).SetChecksum(^header.IPv4(ping).CalculateChecksum())
		wrong := testSegment{src: netip.MustParseAddr("10.99.0.1"), dst: server4, id: 3, payload: []byte("TCP checksum wrong")}.bytes()
		wrong[36]++
		sent := [][]byte{ping, wrong}
		for _, p := range sent {
			if err := unix.Sendto(raw, p, 0, &unix.SockaddrInet4{Addr: server4.As4()}); err != nil {
				t.Fatal(err)
			}
		}
		for i, got := range readPackets(t, d, len(sent), forServer) {
			if !bytes.Equal(got, sent[i]) {
				t.Errorf("packet %d: got % x\nwant % x", i, got, sent[i])
			}
		}
	})
}

// Packets written to one device are routed out of another, where nothing is
// offloaded, and come out with only the hop count changed:
//
//	Write -> in (offload or not) -> kernel forwarding -> out (no offload) -> Read
func TestTUNWriteExact(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		in := openTestTUN(t, TUNConfig{Name: "in", Addresses: prefixes("10.99.0.1/24", "fd99::1/64"), Offload: offload})
		out := openTestTUN(t, TUNConfig{Name: "out", Addresses: prefixes("10.98.0.1/24", "fd98::1/64")})
		setSysctl(t, "ipv4/ip_forward", "1")
		setSysctl(t, "ipv6/conf/all/forwarding", "1")
		for p, d := range map[string]*TUN{"10.1.0.0/24": in, "fd01::/64": in, "10.2.0.0/24": out, "fd02::/64": out} {
			if err := d.AddRoute(netip.MustParsePrefix(p)); err != nil {
				t.Fatal(err)
			}
		}
		v6 := func(i int, s *testSegment) { s.src, s.dst, s.flow = client6, server6, 0x12345 }
		var sent [][]byte
		add := func(packets ...[]byte) { sent = append(sent, packets...) }
		add(segments(10, 1000, nil)...) // may be joined
		add(segments(10, 1000, v6)...)
		add(segments(4, 1000, func(i int, s *testSegment) { s.id = 0 })...) // may not, each for its reason
		add(segments(4, 1000, func(i int, s *testSegment) { s.seq = uint32(9000 - 1000*i) })...)
		add(segments(4, 1000, func(i int, s *testSegment) { s.window += uint16(i) })...)
		add(segments(3, 700, func(i int, s *testSegment) {
			if s.payload = s.payload[:700-300*i]; i == 2 {
				s.flags |= header.TCPFlagPsh
			}
		})...)
		damaged := segments(3, 500, nil)
		damaged[1][len(damaged[1])-1]++ // the TCP checksum is wrong now
		add(damaged...)
		add(bytes.Clone(segments(1, 8, nil)[0]), icmpPacket(client4, server4, 8, make([]byte, 64)), icmpPacket(client6, server6, 128, make([]byte, 64)))
		zero := segments(5, 900, nil) // checksums 0x0000 and 0xFFFF are both right: keep either
		for _, p := range zero[1:3] {
			makeZeroSum(p)
		}
		binary.BigEndian.PutUint16(zero[2][36:], 0xFFFF)
		add(zero...)

		before := make([][]byte, len(sent))
		for i, p := range sent {
			before[i] = bytes.Clone(p)
		}
		written := make(chan error, 1)
		go func() { written <- in.Write(sent) }()
		got := readPackets(t, out, len(sent), forServer)
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		for i, p := range before {
			if !bytes.Equal(p, sent[i]) {
				t.Fatalf("Write changed packet %d", i)
			}
			if want := oneHopOn(p); !bytes.Equal(got[i], want) {
				t.Errorf("packet %d: got % x\nwant % x", i, got[i][:60], want[:min(60, len(want))])
			}
		}
		if joined := in.Stats().Joined; offload != (joined >= 20) || !offload && joined != 0 {
			t.Errorf("%d packets joined", joined)
		}
	})
}

// makeZeroSum changes a TCP segment so that its checksum computes to zero.
func makeZeroSum(p []byte) {
	binary.BigEndian.PutUint16(p[len(p)-2:], 0)
	setTCPChecksum(p, header.IPv4MinimumSize)
	binary.BigEndian.PutUint16(p[len(p)-2:], header.TCP(p[header.IPv4MinimumSize:]).Checksum())
	setTCPChecksum(p, header.IPv4MinimumSize)
}

// oneHopOn returns what a router makes of a packet.
func oneHopOn(p []byte) []byte {
	p = bytes.Clone(p)
	if p[0]>>4 == 6 {
		p[7]--
		return p
	}
	p[8]--
	header.IPv4(p).SetChecksum(0)
	header.IPv4(p).SetChecksum(^header.IPv4(p).CalculateChecksum())
	return p
}

// A malformed packet does not hold up the others, and is counted.
func TestTUNWriteRefused(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24"), Offload: offload})
		ping := icmpPacket(client4, netip.MustParseAddr("10.99.0.1"), 8, make([]byte, 20))
		if err := d.AddRoute(netip.MustParsePrefix("10.1.0.0/24")); err != nil {
			t.Fatal(err)
		}
		err := d.Write([][]byte{make([]byte, 40), ping, {}})
		if err == nil || !strings.Contains(err.Error(), "packet 1 of 3, 40 bytes") {
			t.Errorf("error %v", err)
		}
		if got := d.Stats().Refused; got != 2 && got != 1 { // the kernel takes an empty write for nothing
			t.Errorf("%d refused", got)
		}
		answer := readPackets(t, d, 1, func(p []byte) bool { var h ip.Header; return h.Parse(p) == nil && h.Dst() == client4 })[0]
		if answer[20] != 0 {
			t.Errorf("type %d, want an echo reply", answer[20])
		}
	})
}

// A kernel socket on one side of the device and a stack behind the other, with a
// segment size so small that a super-segment has more packets than Read returns.
func TestTUNBulk(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		for _, mss := range []int{0, 88} {
			t.Run(fmt.Sprintf("mss=%d", mss), func(t *testing.T) { bulk(t, offload, mss) })
		}
	})
}

func bulk(t *testing.T, offload bool, mss int) {
	server := serve(t, echo) // in the test process's own namespace
	enterNamespace(t)
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24"), Offload: offload})
	if err := d.AddRoute(netip.MustParsePrefix("10.2.0.0/24")); err != nil {
		t.Fatal(err)
	}
	s := newTestStack(t, StackConfig{})
	if _, err := s.Terminate(TerminateConfig{
		Prefixes: prefixes("10.2.0.0/24"),
		Map:      func(netip.AddrPort) netip.AddrPort { return server },
	}); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { d.Close(); s.Close() })
	seen := &checkedPort{port: d, t: t, mtu: d.mtu}
	running.Go(func() { pump(seen, s) })
	running.Go(func() { pump(s, d) })

	dialer := net.Dialer{Timeout: 5 * time.Second, Control: func(_, _ string, raw syscall.RawConn) error {
		if mss == 0 {
			return nil
		}
		return raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss) })
	}}
	c, err := dialer.Dial("tcp", netip.AddrPortFrom(server4, 1883).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if mss != 0 {
		data = data[:1<<18]
	}
	go func() {
		c.Write(data)
		c.(*net.TCPConn).CloseWrite()
	}()
	back, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(back, data) {
		t.Errorf("%d bytes of %d came back, %v", len(back), len(data), err)
	}
	if stats := d.Stats(); stats.Truncated != 0 || stats.Unsplit != 0 || stats.Refused != 0 {
		t.Errorf("%+v", stats)
	}
	if most := seen.most.Load(); offload != (most > 1) {
		t.Errorf("%d packets in a read at most", most)
	}
}

// checkedPort checks that what is read are finished packets.
type checkedPort struct {
	port
	t    *testing.T
	mtu  int
	most atomic.Int64
}

func (p *checkedPort) Read(bufs [][]byte, sizes []int) (int, error) {
	n, err := p.port.Read(bufs, sizes)
	p.most.Store(max(p.most.Load(), int64(n)))
	for i := range n {
		b := bufs[i][:sizes[i]]
		if b[0]>>4 != 4 || b[9] != ip.TCP {
			continue
		}
		h := header.IPv4(b)
		sum := header.PseudoHeaderChecksum(tcpip.TransportProtocolNumber(ip.TCP), h.SourceAddress(), h.DestinationAddress(), h.PayloadLength())
		if len(b) > p.mtu || !h.IsValid(len(b)) || !h.IsChecksumValid() || checksum.Checksum(h.Payload(), sum) != 0xFFFF {
			p.t.Errorf("packet of %d bytes is not finished: % x", len(b), b[:40])
		}
	}
	return n, err
}

// The wrappers allocate nothing per packet.
func TestTUNAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24"), Offload: offload})
		if err := d.AddRoute(netip.MustParsePrefix("10.1.0.0/24")); err != nil {
			t.Fatal(err)
		}
		pings := [][]byte{icmpPacket(client4, netip.MustParseAddr("10.99.0.1"), 8, make([]byte, 20))}
		others := segments(20, 1000, nil) // to nobody
		bufs, sizes := buffers(d)
		var failed error
		got := testing.AllocsPerRun(50, func() {
			if err := d.Write(others); err != nil {
				failed = err
			}
			if err := d.Write(pings); err != nil {
				failed = err
			}
			if _, err := d.Read(bufs, sizes); err != nil {
				failed = err
			}
		})
		if failed != nil {
			t.Fatal(failed)
		}
		if got != 0 {
			t.Errorf("%v allocations for 21 packets written and one read", got)
		}
	})
}

func TestTUNCloseWakesRead(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		d := openTestTUN(t, TUNConfig{Offload: offload})
		got := make(chan error, 1)
		go func() {
			bufs, sizes := buffers(d)
			for {
				if _, err := d.Read(bufs, sizes); err != nil {
					got <- err
					return
				}
			}
		}()
		time.Sleep(20 * time.Millisecond)
		d.Close()
		select {
		case err := <-got:
			if !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		case <-time.After(5 * time.Second):
			t.Error("Read waits on")
		}
	})
}

// Somebody removes the device under a Read.
func TestTUNRemoved(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		d := openTestTUN(t, TUNConfig{Offload: offload})
		link, err := netlink.LinkByName(d.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkDel(link); err != nil {
			t.Fatal(err)
		}
		bufs, sizes := buffers(d)
		for err == nil {
			_, err = d.Read(bufs, sizes)
		}
		if !errors.Is(err, ErrGone) {
			t.Errorf("Read: %v", err)
		}
		if err := d.Write([][]byte{testSegment{}.bytes()}); !errors.Is(err, ErrGone) {
			t.Errorf("Write: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
