package main

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sheaf/netstack"
)

// A host is what doctor looks at beyond the configuration. Tests give it a file
// system and a network of their own.
type host struct {
	root    string // before the paths of /dev and /proc
	network func() (*network, error)
	now     func() time.Time
}

func thisHost() *host { return &host{network: readNetwork, now: time.Now} }

// file returns where a file of the system is.
func (h *host) file(path string) string { return filepath.Join("/", h.root, path) }

// sysctl returns a kernel setting, such as net.ipv4.ip_forward, or "" where the
// kernel has none of that name. Dots in device names are written as slashes.
func (h *host) sysctl(name string) string {
	path := strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return '/'
		case '/':
			return '.'
		}
		return r
	}, name)
	b, err := os.ReadFile(h.file("/proc/sys/" + path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// sysctlNumber returns a kernel setting that is a number, or -1.
func (h *host) sysctlNumber(name string) int {
	n, err := strconv.Atoi(h.sysctl(name))
	if err != nil {
		return -1
	}
	return n
}

// capable tells whether this process has a capability (linux/capability.h).
func (h *host) capable(bit uint) bool {
	b, _ := os.ReadFile(h.file("/proc/self/status"))
	for line := range strings.Lines(string(b)) {
		if set, ok := strings.CutPrefix(line, "CapEff:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(set), 16, 64)
			return err == nil && mask&(1<<bit) != 0
		}
	}
	return false
}

// A network is what the kernel knows of devices, addresses and routes.
type network struct {
	devices   []device
	addresses []located
	routes    []located
}

// A device is a network device.
type device struct {
	name     string
	mtu      int
	up       bool
	loopback bool
}

// A located prefix is an address with the length of its subnet, or a route.
type located struct {
	prefix netip.Prefix
	device string // "" if of no one device
	spare  bool   // a route that leads nowhere and gives way to another one for the same prefix
	ours   bool   // a spare one that a gateway made
}

// device returns a device by its name, or nil.
func (n *network) device(name string) *device {
	for i := range n.devices {
		if n.devices[i].name == name {
			return &n.devices[i]
		}
	}
	return nil
}

// uplink returns the device of the first default route, or nil.
func (n *network) uplink() *device {
	for _, r := range n.routes {
		if r.prefix.Bits() == 0 && r.device != "" {
			return n.device(r.device)
		}
	}
	return nil
}

// readNetwork asks the kernel by netlink. It only reads.
func readNetwork() (*network, error) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, err
	}
	n := &network{}
	names := map[int]string{}
	for _, l := range links {
		a := l.Attrs()
		names[a.Index] = a.Name
		n.devices = append(n.devices, device{a.Name, a.MTU, a.RawFlags&unix.IFF_UP != 0, a.RawFlags&unix.IFF_LOOPBACK != 0})
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, err
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			ones, _ := a.Mask.Size()
			n.addresses = append(n.addresses, located{prefix: netip.PrefixFrom(ip.Unmap(), ones), device: names[a.LinkIndex]})
		}
	}
	for family, all := range map[int]netip.Prefix{
		netlink.FAMILY_V4: netip.PrefixFrom(netip.IPv4Unspecified(), 0),
		netlink.FAMILY_V6: netip.PrefixFrom(netip.IPv6Unspecified(), 0),
	} {
		routes, err := netlink.RouteList(nil, family)
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, err
		}
		for i := range routes {
			r := &routes[i]
			prefix := all
			if r.Dst != nil {
				ip, ok := netip.AddrFromSlice(r.Dst.IP)
				if all.Addr().Is4() {
					ip = ip.Unmap()
				}
				if ones, _ := r.Dst.Mask.Size(); ok && ip.BitLen() == all.Addr().BitLen() {
					prefix = netip.PrefixFrom(ip, ones)
				} else {
					continue
				}
			}
			n.routes = append(n.routes, located{
				prefix: prefix, device: names[r.LinkIndex], spare: netstack.IsSpare(r), ours: netstack.IsFallback(r),
			})
		}
	}
	return n, nil
}
