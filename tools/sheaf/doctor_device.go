package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sheaf/netstack"
)

// accessible tells whether this process may make files in a folder.
func accessible(folder string) error {
	return unix.Access(folder, unix.W_OK|unix.X_OK)
}

const tunDriver = "/dev/net/tun"

// checkDriver looks whether the kernel's TUN driver can be used.
func (d *doctor) checkDriver() {
	f, err := os.OpenFile(d.host.file(tunDriver), os.O_RDWR, 0)
	switch {
	case err == nil:
		f.Close()
		d.ok("driver", "%s can be opened", tunDriver)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		d.fail("driver", "modprobe tun; in a container, pass the device in: docker run --device /dev/net/tun --cap-add NET_ADMIN",
			"there is no %s", tunDriver)
	case errors.Is(err, fs.ErrPermission):
		d.fail("driver", "run as root, or use [[forward]] and [terminate], which need no device", "%s may not be opened by this user", tunDriver)
	default:
		d.fail("driver", "see what dmesg says of tun", "%v", err)
	}
}

// checkCapability looks whether this process may set up devices and routes.
func (d *doctor) checkCapability() {
	switch {
	case d.host.capable(unix.CAP_NET_ADMIN):
		d.ok("capability", "CAP_NET_ADMIN is there")
	case d.isRunning():
		d.ok("capability", "the gateway that is running has what it needs")
	default:
		d.fail("capability", "run as root, or with that capability, as examples/sheaf.service does",
			"this process lacks CAP_NET_ADMIN, without which there is no device and no route")
	}
}

// checkNetwork makes the checks that need to know the host's network.
func (d *doctor) checkNetwork() {
	n, err := d.host.network()
	if err != nil {
		d.warn("network", "see whether \"ip route\" works for this user", "the kernel does not tell of devices and routes: %v", err)
		return
	}
	d.net = n
	d.checkName()
	d.checkRoutes()
	d.checkPlaced()
	d.checkFallback()
	d.checkForwarding()
	d.checkReversePath()
	d.checkMTU()
}

// own returns the name of the running gateway's device, or "".
func (d *doctor) own() string {
	if d.running == nil {
		return ""
	}
	return d.running.Device
}

// checkName looks whether the device's name is free.
func (d *doctor) checkName() {
	name := d.cfg.TUN.Name
	switch {
	case d.own() != "" && (name == "" || name == d.own()):
		d.ok("device", "%s is the gateway's that is running", d.own())
	case d.own() != "":
		d.warn("device", "restart the gateway", "the gateway that is running has device %s, not %s", d.own(), name)
	case name == "":
		d.ok("device", "it gets the first free name sheafN")
	case d.net.device(name) != nil:
		d.fail("device", fmt.Sprintf("set name to another one, stop the program that holds it, or: ip link del %s", name), "%s is there already", name)
	default:
		d.ok("device", "%s is free", name)
	}
}

// checkRoutes looks whether the host has routes that keep packets from the
// tunnel, and addresses that are the tunnel's.
func (d *doctor) checkRoutes() {
	before := d.failures + d.warnings
	for _, a := range d.cfg.TUN.Address {
		for _, have := range d.net.addresses {
			if have.device != d.own() && have.prefix.Addr() == a.Addr() {
				d.fail("address", "give the tunnel an address of its own", "%v is device %s's already", a.Addr(), have.device)
			}
		}
		if err := d.overlap(a.Masked()); err != nil {
			d.fail("address", "give the tunnel a subnet that is nowhere else", "%v: %v", a.Prefix, err)
		}
	}
	n := 0
	for i := range d.cfg.Peers {
		p := &d.cfg.Peers[i]
		for _, a := range p.Allowed {
			n++
			if err := d.overlap(a.Prefix); err != nil {
				d.fail("routes", "see \"ip route\" for it, and name in allowed only what is behind the peer", "[[peer]] %q: %v", p.Name, err)
			}
			for _, t := range d.cfg.TUN.Address {
				if a.Prefix == t.Masked() {
					d.fail("routes", fmt.Sprintf("make address a single one, %v/%d, or leave %v out of allowed", t.Addr(), t.Addr().BitLen(), a.Prefix),
						"[[peer]] %q: allowed %v is the subnet of the tunnel itself", p.Name, a.Prefix)
				}
			}
			for _, have := range d.net.addresses {
				if have.device != d.own() && a.Contains(have.prefix.Addr()) && d.overlap(a.Prefix) == nil {
					d.warn("routes", "see that the address is not used at both ends", "[[peer]] %q: allowed %v has this host's own address %v inside, which stays here", p.Name, a.Prefix, have.prefix.Addr())
				}
			}
		}
	}
	if d.failures+d.warnings == before {
		d.ok("routes", "nothing on this host overlaps the %s behind peers", count(uint64(n), "subnet"))
	}
}

// overlap looks for a route of the host that would win over p for some of its
// addresses, as the gateway does when it sets up its own.
func (d *doctor) overlap(p netip.Prefix) error {
	for _, r := range d.net.routes {
		other := r.prefix
		switch {
		case r.device != "" && r.device == d.own():
		case r.ours || r.spare && other == p:
		case other.Addr().Is4() != p.Addr().Is4() || p.Bits() == 0 && other.Bits() != 0:
		case other.Addr().IsLinkLocalUnicast() || other.Addr().IsMulticast():
		case other.Bits() >= p.Bits() && p.Contains(other.Addr()):
			return &netstack.OverlapError{Prefix: p, Other: other, Device: r.device}
		}
	}
	return nil
}

// families tells of which IP versions there are prefixes behind peers that are
// more than the gateways themselves.
func (d *doctor) families() (v4, v6 bool) {
	for i := range d.cfg.Peers {
		for _, a := range d.cfg.Peers[i].Allowed {
			gateway := false
			for _, t := range d.cfg.TUN.Address {
				gateway = gateway || t.Contains(a.Addr()) && t.Bits() <= a.Bits()
			}
			if !gateway {
				v4, v6 = v4 || a.Addr().Is4(), v6 || a.Addr().Is6()
			}
		}
	}
	return v4, v6
}

// checkForwarding looks whether the host forwards packets between its network
// and the tunnel.
func (d *doctor) checkForwarding() {
	v4, v6 := d.families()
	if !v4 && !v6 {
		d.ok("forwarding", "not needed: only the gateways themselves talk through the tunnel")
	}
	check := func(name, more string) {
		switch value := d.host.sysctl(name); value {
		case "":
			d.warn("forwarding", "see whether this kernel has that IP version at all", "%s is not known to this host", name)
		case "0":
			d.warn("forwarding", fmt.Sprintf("sysctl -w %s=1, and write it to /etc/sysctl.d/sheaf.conf to keep it%s", name, more),
				"%s is 0: only this host's own programs reach the tunnel, packets of other hosts are dropped", name)
		default:
			d.ok("forwarding", "%s is %s", name, value)
		}
	}
	if v4 {
		check("net.ipv4.ip_forward", "")
	}
	if v6 {
		check("net.ipv6.conf.all.forwarding", "; if the host gets its own address by router advertisements, set accept_ra of that device to 2 first")
	}
	for _, a := range d.cfg.TUN.Address {
		if !a.Addr().Is6() {
			continue
		}
		for _, which := range []string{"all", "default"} {
			if name := "net.ipv6.conf." + which + ".disable_ipv6"; d.host.sysctl(name) == "1" {
				d.fail("address", fmt.Sprintf("sysctl -w %s=0, or give IPv4 addresses only", name), "%v: IPv6 is off on this host: %s is 1", a.Prefix, name)
				return
			}
		}
	}
}

// strict is the value of rp_filter that drops what would not go back the way it
// came (RFC 3704 section 2.2).
const strict = 1

// checkReversePath looks whether the kernel drops packets that come out of the
// tunnel because it would send their answers elsewhere.
func (d *doctor) checkReversePath() {
	const all = "net.ipv4.conf.all.rp_filter"
	device := "net.ipv4.conf.default.rp_filter" // what a new device begins with
	if name := d.own(); name != "" {
		device = "net.ipv4.conf." + strings.ReplaceAll(name, ".", "/") + ".rp_filter"
	}
	// The kernel takes the greater of the two (ip-sysctl.rst); 2 is loose.
	a, b := d.host.sysctlNumber(all), d.host.sysctlNumber(device)
	switch max(a, b) {
	case strict:
		where := all
		if b == strict {
			where = device
		}
		d.warn("rp_filter", "sysctl -w "+all+"=2, which is loose and wins over what devices have",
			"%s is 1, strict: packets are dropped where the way back is another, as with hosts that are reached both through the tunnel and past it", where)
	case -1:
		d.warn("rp_filter", "see that /proc/sys is there", "it cannot be read")
	default:
		d.ok("rp_filter", "not strict")
	}
}

// The least MTUs, in bytes.
const (
	quicMTU = 1280 // of the path: a QUIC packet of 1200 with UDP and either IP (RFC 9000 section 14), with some room
	ipv6MTU = 1280 // of a device with IPv6 (RFC 8200 section 5)
)

// checkMTU compares the tunnel's MTU with that of the host's devices.
func (d *doctor) checkMTU() {
	mtu := d.cfg.TUN.MTU
	if mtu == 0 {
		mtu = netstack.DefaultMTU
	}
	for _, a := range d.cfg.TUN.Address {
		if a.Addr().Is6() && mtu < ipv6MTU {
			d.fail("MTU", fmt.Sprintf("set mtu of [tun] to %d or more", ipv6MTU), "the tunnel's %d is less than IPv6 allows", mtu)
			return
		}
	}
	up := d.net.uplink()
	if up == nil {
		d.ok("MTU", "the tunnel's is %d; there is no default route to compare it with", mtu)
		return
	}
	if up.mtu < quicMTU && d.hasQUIC() {
		d.warn("MTU", `set carrier = ["tls"]`, "device %s of the default route carries %d bytes, too few for QUIC", up.name, up.mtu)
	}
	most := 0
	for i := range d.net.devices {
		if v := &d.net.devices[i]; v.up && !v.loopback && v.name != d.own() {
			most = max(most, v.mtu)
		}
	}
	switch {
	case d.cfg.TUN.MTU > most && most > 0:
		d.warn("MTU", fmt.Sprintf("set mtu of [tun] to %d, or leave it away", most), "the tunnel's %d is more than any device here can carry on", mtu)
	case mtu < up.mtu && mtu < netstack.DefaultMTU:
		d.warn("MTU", "leave mtu of [tun] away: it does not depend on the path between the gateways",
			"the tunnel's %d is less than the %d of %s: larger packets are refused and sent again", mtu, up.mtu, up.name)
	default:
		d.ok("MTU", "the tunnel's is %d, that of %s, which has the default route, %d", mtu, up.name, up.mtu)
	}
}
