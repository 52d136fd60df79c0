package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sheaf/e2e/order"
)

func setUp(name string) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// nic returns the interface that has a MAC.
func nic(mac string) (netlink.Link, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.Attrs().HardwareAddr.String() == mac {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no NIC has the MAC %s", mac)
}

// bringUp takes all NICs down, which ends their addresses and routes, and brings one up.
func bringUp(a order.Net) (*order.Up, error) {
	all, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if len(l.Attrs().HardwareAddr) == 0 {
			continue
		}
		if err := takeDown(l); err != nil {
			return nil, err
		}
	}
	l, err := nic(a.MAC)
	if err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return nil, err
	}
	begin := time.Now()
	up := &order.Up{Addresses: a.Addresses, Routers: a.Routers, MTU: l.Attrs().MTU}
	if a.DHCP {
		if err := lease(l, up); err != nil {
			return nil, fmt.Errorf("DHCP: %w", err)
		}
	}
	if err := configure(l, up); err != nil {
		return nil, err
	}
	if a.RA {
		if err := awaitRouter(l, up); err != nil {
			return nil, err
		}
	}
	up.Took = time.Since(begin)
	return up, nil
}

func takeDown(l netlink.Link) error {
	if err := netlink.LinkSetDown(l); err != nil {
		return err
	}
	addresses, err := netlink.AddrList(l, unix.AF_INET) // IPv6's went with the link
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := netlink.AddrDel(l, &a); err != nil {
			return err
		}
	}
	return nil
}

// configure gives the NIC addresses, MTU and routers, these last as they need the others.
func configure(l netlink.Link, up *order.Up) error {
	if err := netlink.LinkSetMTU(l, up.MTU); err != nil {
		return err
	}
	for _, p := range up.Addresses {
		a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}, Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(l, a); err != nil {
			return fmt.Errorf("address %v: %w", p, err)
		}
	}
	for _, r := range up.Routers {
		route := &netlink.Route{LinkIndex: l.Attrs().Index, Gw: r.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("router %v: %w", r, err)
		}
	}
	return nil
}

// lease asks for an IPv4 address and what goes with it (RFC 2131).
func lease(l netlink.Link, up *order.Up) error {
	c, err := nclient4.New(l.Attrs().Name, nclient4.WithTimeout(2*time.Second), nclient4.WithRetry(5))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	got, err := c.Request(ctx, dhcpv4.WithRequestedOptions(dhcpv4.OptionInterfaceMTU))
	if err != nil {
		return err
	}
	ack := got.ACK
	a, _ := netip.AddrFromSlice(ack.YourIPAddr.To4())
	bits, _ := ack.SubnetMask().Size()
	up.Addresses = append(up.Addresses, netip.PrefixFrom(a, bits))
	for _, r := range ack.Router() {
		a, _ := netip.AddrFromSlice(r.To4())
		up.Routers = append(up.Routers, a)
	}
	for _, d := range ack.DNS() {
		a, _ := netip.AddrFromSlice(d.To4())
		up.DNS = append(up.DNS, a)
	}
	if mtu, err := dhcpv4.GetUint16(dhcpv4.OptionInterfaceMTU, ack.Options); err == nil {
		up.MTU = int(mtu)
	}
	return nil
}

// awaitRouter waits until router advertisements have given the NIC an address and a
// default route (RFC 4861, RFC 4862), for 10 s.
func awaitRouter(l netlink.Link, up *order.Up) error {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		routes, err := netlink.RouteList(l, unix.AF_INET6)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) { // by a change
			return err
		}
		addresses, err := netlink.AddrList(l, unix.AF_INET6)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
		router, address := defaultRouter(routes), usable(addresses)
		if router.IsValid() && address.IsValid() {
			up.Routers, up.Addresses = append(up.Routers, router), append(up.Addresses, address)
			return nil
		}
	}
	return errors.New("no router has advertised itself and an address in 10 s")
}

func defaultRouter(routes []netlink.Route) netip.Addr {
	for _, r := range routes {
		if r.Dst == nil || r.Dst.IP.IsUnspecified() && len(r.Gw) > 0 {
			if a, ok := netip.AddrFromSlice(r.Gw); ok {
				return a
			}
		}
	}
	return netip.Addr{}
}

// usable returns an address of more than the link's scope that is not tentative.
func usable(addresses []netlink.Addr) netip.Prefix {
	for _, a := range addresses {
		ip, _ := netip.AddrFromSlice(a.IP)
		if bits, _ := a.Mask.Size(); ip.IsGlobalUnicast() && a.Flags&unix.IFA_F_TENTATIVE == 0 {
			return netip.PrefixFrom(ip, bits)
		}
	}
	return netip.Prefix{}
}

// packetSocket opens one for all frames of a NIC (packet(7)).
func packetSocket(mac string) (fd int, err error) {
	l, err := nic(mac)
	if err != nil {
		return 0, err
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all); err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: l.Attrs().Index})
}

func sendFrames(a order.Frames) (sent int, err error) {
	fd, err := packetSocket(a.MAC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	frames, err := rubbish(a)
	if err != nil {
		return 0, err
	}
	frames = append(frames, a.Frames...)
	for _, f := range frames {
		if _, err := unix.Write(fd, f); err != nil && !errors.Is(err, unix.ENOBUFS) {
			return sent, fmt.Errorf("frame of %d bytes: %w", len(f), err)
		}
		sent++
	}
	return sent, nil
}

// rubbish returns frames of random bytes.
func rubbish(a order.Frames) ([][]byte, error) {
	if a.Rubbish == 0 {
		return nil, nil
	}
	own, err := net.ParseMAC(a.MAC)
	if err != nil {
		return nil, err
	}
	to, err := net.ParseMAC(a.To)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(a.Seed, 0))
	types := []uint16{unix.ETH_P_IP, unix.ETH_P_IPV6, unix.ETH_P_ARP}
	frames := make([][]byte, a.Rubbish)
	for i := range frames {
		f := make([]byte, 14+r.IntN(1501))
		for j := range f {
			f[j] = byte(r.Uint32())
		}
		if i%2 == 0 {
			copy(f[copy(f, to):], own)
			binary.BigEndian.PutUint16(f[12:], types[r.IntN(len(types))])
		}
		frames[i] = f
	}
	return frames, nil
}

// mostHeard bounds what an answer has.
const mostHeard = 1000

func hear(a order.Hear) (frames [][]byte, err error) {
	fd, err := packetSocket(a.MAC)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 65536)
	for end := time.Now().Add(a.For); time.Now().Before(end); {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, int(time.Until(end)/time.Millisecond)+1); n == 0 || errors.Is(err, unix.EINTR) {
			continue
		}
		n, from, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			return nil, err
		}
		if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype != unix.PACKET_OUTGOING && len(frames) < mostHeard {
			frames = append(frames, append([]byte(nil), b[:n]...))
		}
	}
	return frames, nil
}
