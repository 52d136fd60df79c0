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
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// enterNamespace gives the test a network namespace of its own. It binds the
// test's goroutine to its thread, and the namespace ends with it.
func enterNamespace(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(tunDriver); err != nil {
		t.Skipf("needs a TUN driver: %v", err)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("needs root for a network namespace: %v", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openTestTUN(t *testing.T, cfg TUNConfig) *TUN {
	t.Helper()
	d, err := OpenTUN(cfg)
	if errors.Is(err, ErrPermission) || errors.Is(err, ErrNoTUN) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// setSysctl sets a sysctl of the test's namespace.
func setSysctl(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
		t.Skipf("needs to set net/%s in a namespace: %v", name, err)
	}
}

func TestOpenTUN(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24", "fd99::1/64"), MTU: 1400, Offload: true})
	if d.Name() != "sheaf0" || d.MTU() != 1400 || d.BatchSize() < 2 {
		t.Errorf("name %s, MTU %d, batches of %d", d.Name(), d.MTU(), d.BatchSize())
	}
	link, err := netlink.LinkByName("sheaf0")
	if err != nil {
		t.Fatal(err)
	}
	if a := link.Attrs(); a.MTU != 1400 || a.Flags&net.FlagUp == 0 {
		t.Errorf("MTU %d, flags %s", a.MTU, a.Flags)
	}
	var have []string
	addresses, _ := netlink.AddrList(link, netlink.FAMILY_ALL)
	for _, a := range addresses {
		have = append(have, a.IPNet.String())
	}
	if !slices.Equal(have, []string{"10.99.0.1/24", "fd99::1/64"}) {
		t.Errorf("addresses %v", have)
	}
	for _, p := range prefixes("10.2.0.0/24", "10.3.0.0/16", "fd02::/64") {
		if err := d.AddRoute(p); err != nil {
			t.Error(err)
		}
	}
	if err := d.DelRoute(netip.MustParsePrefix("10.3.0.0/16")); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(d.Routes()); got != "[10.2.0.0/24 fd02::/64]" {
		t.Errorf("Routes: %s", got)
	}
	if got := kernelRoutes(t, link); got != "10.2.0.0/24 10.99.0.0/24 fd02::/64 fd99::/64" {
		t.Errorf("the kernel's routes: %s", got)
	}
	second := openTestTUN(t, TUNConfig{})
	if second.Name() != "sheaf1" || second.BatchSize() != 1 || second.MTU() != DefaultMTU {
		t.Errorf("second device: %s, batches of %d, MTU %d", second.Name(), second.BatchSize(), second.MTU())
	}
	for _, d := range []*TUN{d, second} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := d.AddRoute(netip.MustParsePrefix("10.4.0.0/24")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("AddRoute after Close: %v", err)
		}
		if err := d.Write([][]byte{testSegment{}.bytes()}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close: %v", err)
		}
	}
	links, _ := netlink.LinkList()
	routes, _ := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if len(links) != 1 || len(routes) != 0 {
		t.Errorf("left behind: %d devices, routes %v", len(links)-1, routes)
	}
}

// kernelRoutes lists the routes of a device, without those that IPv6 makes for
// every device.
func kernelRoutes(t *testing.T, link netlink.Link) string {
	t.Helper()
	routes, err := netlink.RouteList(link, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range routes {
		if p := r.Dst.String(); !strings.HasPrefix(p, "ff00:") && !strings.HasPrefix(p, "fe80:") {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestOpenTUNErrors(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	openTestTUN(t, TUNConfig{Name: "first", Addresses: prefixes("10.99.0.1/24")})
	tests := []struct {
		name string
		cfg  TUNConfig
		want error
		says string
	}{
		{"name in use", TUNConfig{Name: "first"}, ErrInUse, "choose another name"},
		{"name of another device", TUNConfig{Name: "lo"}, ErrInUse, "choose another name"},
		{"name long", TUNConfig{Name: "sixteen-letters-"}, ErrName, "at most 15"},
		{"name odd", TUNConfig{Name: "a/b"}, ErrName, "at most 15"},
		{"name a pattern", TUNConfig{Name: "x%d"}, ErrName, "at most 15"},
		{"MTU small", TUNConfig{MTU: 575}, ErrMTU, "give 576 to 65535 bytes"},
		{"MTU large", TUNConfig{MTU: 65536}, ErrMTU, "give 576 to 65535 bytes"},
		{"MTU for IPv6", TUNConfig{MTU: 1279, Addresses: prefixes("fd99::1/64")}, ErrMTU, "give 1280 to 65535 bytes, as IPv6"},
		{"address in use", TUNConfig{Addresses: prefixes("10.99.0.1/16")}, ErrInUse, "by device first"},
		{"address twice", TUNConfig{Addresses: prefixes("10.98.0.1/16", "10.98.0.1/16")}, ErrAddress, "remove one"},
		{"address of a group", TUNConfig{Addresses: prefixes("224.0.0.1/24")}, ErrAddress, "like 10.99.0.1/24"},
		{"no address", TUNConfig{Addresses: make([]netip.Prefix, 1)}, ErrAddress, "like 10.99.0.1/24"},
	}
	for _, tt := range tests {
		_, err := OpenTUN(tt.cfg)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %v, saying %q", tt.name, err, tt.want, tt.says)
		}
	}
	var overlap *OverlapError
	if _, err := OpenTUN(TUNConfig{Addresses: prefixes("10.99.0.2/24")}); !errors.As(err, &overlap) || overlap.Device != "first" {
		t.Errorf("same subnet: %v", err)
	}
	if links, _ := netlink.LinkList(); len(links) != 2 {
		t.Errorf("%d devices left behind", len(links)-2)
	}
}

func TestOpenTUNWithoutIPv6(t *testing.T) {
	enterNamespace(t)
	setSysctl(t, "ipv6/conf/default/disable_ipv6", "1")
	_, err := OpenTUN(TUNConfig{Addresses: prefixes("fd99::1/64")})
	if !errors.Is(err, ErrNoIPv6) || !strings.Contains(err.Error(), "disable_ipv6 to 0") {
		t.Error(err)
	}
	openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
}

// Capabilities belong to the thread, and the thread ends with the test.
func TestOpenTUNNotPermitted(t *testing.T) {
	enterNamespace(t)
	caps := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&caps, &new([2]unix.CapUserData)[0]); err != nil {
		t.Skipf("needs to give up its capabilities: %v", err)
	}
	_, err := OpenTUN(TUNConfig{})
	if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
		t.Error(err)
	}
}

func TestOverlap(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	other := openTestTUN(t, TUNConfig{Name: "other", Addresses: prefixes("10.5.0.1/24", "fd05::1/64")})
	for _, p := range prefixes("0.0.0.0/0", "10.6.0.0/16") {
		if err := other.AddRoute(p); err != nil {
			t.Fatal(err)
		}
	}
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
	tests := []struct{ add, other string }{
		{"10.5.0.0/24", "10.5.0.0/24"},
		{"10.4.0.0/14", "10.5.0.0/24"},
		{"10.6.0.0/16", "10.6.0.0/16"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"fd05::/48", "fd05::/64"},
		{"10.6.7.0/24", ""}, // inside: the longer one wins
		{"10.5.0.128/25", ""},
		{"10.2.0.0/24", ""},
		{"fd02::/64", ""},
		{"::/0", ""},
	}
	for _, tt := range tests {
		err := d.AddRoute(netip.MustParsePrefix(tt.add))
		var overlap *OverlapError
		switch {
		case tt.other == "" && err != nil:
			t.Errorf("%s: %v", tt.add, err)
		case tt.other != "" && (!errors.As(err, &overlap) || overlap.Other.String() != tt.other || overlap.Device != "other"):
			t.Errorf("%s: %v; want it to name %s of other", tt.add, err, tt.other)
		}
	}
	if err := d.AddRoute(netip.MustParsePrefix("10.2.0.0/24")); err == nil || !strings.Contains(err.Error(), d.Name()) {
		t.Errorf("twice: %v", err)
	}
	if err := d.AddRoute(netip.MustParsePrefix("10.2.0.1/24")); !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), "10.2.0.0/24") {
		t.Errorf("host bits: %v", err)
	}
	if err := d.DelRoute(netip.MustParsePrefix("10.77.0.0/24")); !errors.Is(err, ErrNoRoute) {
		t.Errorf("no such route: %v", err)
	}
}

// readPackets reads until there are n packets that keep accepts, and returns
// copies.
func readPackets(t *testing.T, p Port, n int, keep func([]byte) bool) [][]byte {
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
	h, ok := parseIP(p)
	return ok && (h.dst == server4 || h.dst == server6)
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
		answer := readPackets(t, d, 1, func(p []byte) bool { h, ok := parseIP(p); return ok && h.dst == client4 })[0]
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
	seen := &checkedPort{Port: d, t: t, mtu: d.MTU()}
	running.Go(func() { pump(seen, s) })
	running.Go(func() { pump(s, d) })

	dialer := net.Dialer{Timeout: 5 * time.Second}
	c, err := dialer.Dial("tcp", netip.AddrPortFrom(server4, 1883).String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if mss != 0 {
		raw, _ := c.(*net.TCPConn).SyscallConn()
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss) })
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
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
	if most := seen.most; offload != (most > 1) {
		t.Errorf("%d packets in a read at most", most)
	}
}

// checkedPort checks that what is read are finished packets.
type checkedPort struct {
	Port
	t         *testing.T
	mtu, most int
}

func (p *checkedPort) Read(bufs [][]byte, sizes []int) (int, error) {
	n, err := p.Port.Read(bufs, sizes)
	p.most = max(p.most, n)
	for i := range n {
		b := bufs[i][:sizes[i]]
		if b[0]>>4 != 4 || b[9] != protoTCP {
			continue
		}
		h := header.IPv4(b)
		sum := header.PseudoHeaderChecksum(tcpip.TransportProtocolNumber(protoTCP), h.SourceAddress(), h.DestinationAddress(), h.PayloadLength())
		if len(b) > p.mtu || !h.IsValid(len(b)) || !h.IsChecksumValid() || checksum.Checksum(h.Payload(), sum) != 0xFFFF {
			p.t.Errorf("packet of %d bytes is not finished: % x", len(b), b[:40])
		}
	}
	return n, err
}

// The wrappers allocate nothing per packet.
func TestTUNAllocations(t *testing.T) {
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
