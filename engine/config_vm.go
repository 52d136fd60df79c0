package engine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// VM is the [vm] table: virtual machines on this host whose NICs, or vsock devices, end
// in the gateway. With it alone the gateway needs no device and no root.
type VM struct {
	Address   Prefixes  `toml:"address"`   // of the gateway in the guests' network, one or two, with the guests' prefixes
	MTU       int       `toml:"mtu"`       // of the guests' NICs; default 1500
	DNS       Resolvers `toml:"dns"`       // ADDR or ADDR:PORT that guests' queries go on to; none: no DNS
	Directory string    `toml:"directory"` // path of a folder in which each NAME.toml is a port, watched; empty: none
	Between   bool      `toml:"between"`   // guests reach one another
	Host      bool      `toml:"host"`      // guests and this host reach one another through [tun], [[forward]] or [terminate]
	Ports     []VMPort  `toml:"port"`
}

// A VMPort is a [[vm.port]] table: where one guest's NIC or vsock device ends.
type VMPort struct {
	Name    string   `toml:"name" json:"name"`
	At      string   `toml:"at" json:"at"`                              // KIND:PATH of a unix socket, see PortKinds
	Dial    bool     `toml:"dial" json:"dial,omitempty"`                // the hypervisor listens there, and the gateway calls; default: the gateway listens
	MAC     string   `toml:"mac" json:"mac,omitempty"`                  // all that the guest may send from; empty: that of its first frame, for as long as it is plugged in
	Address Prefixes `toml:"address" json:"address,omitempty,omitzero"` // of the guest, at most one IPv4 and one IPv6, without a length; empty: leased
	CID     uint32   `toml:"cid" json:"cid,omitempty"`                  // of a vhost-user-vsock port: the guest's number
}

// The kinds of ports.
const (
	KindVhostUser = "vhost-user"       // a NIC over vhost-user: the guest's memory is shared
	KindStream    = "stream"           // QEMU's -netdev stream
	KindDgram     = "dgram"            // QEMU's -netdev dgram
	KindPasst     = "passt"            // QEMU's -netdev passt
	KindVsock     = "vhost-user-vsock" // a guest without a NIC
)

// PortKinds are the kinds that a port's at begins with.
var PortKinds = []string{KindVhostUser, KindStream, KindDgram, KindPasst, KindVsock}

const (
	// MaxSocketPath is the longest path of a unix socket, in bytes (unix(7): sun_path has
	// room for 108 with a zero at the end).
	MaxSocketPath = 107
	// maxPortName is the longest name of a port in bytes: that of a host (RFC 1035 section
	// 2.3.4), since DHCP and orchestrators name guests by it.
	maxPortName = 63
	// The CIDs of guests: 0 and 1 are reserved, 2 is the host, and the last is any
	// (virtio 1.2 section 5.10.4).
	minCID, maxCID = 3, 1<<32 - 2
	// The smallest networks in which there is a guest beside the gateway, apart from the
	// addresses of the network and of all in it: /30, and /126, which leaves out the
	// subnet routers' anycast address (RFC 4291 section 2.6.1).
	maxBits4, maxBits6 = 30, 126
	// minMTU6 is the least that a link with IPv6 has (RFC 8200 section 5), in bytes.
	minMTU6 = 1280
	// portDNS is where DNS is asked that is named without a port.
	portDNS = 53
)

// Kind returns what a port's at begins with, "" where it is none of PortKinds.
func (p *VMPort) Kind() string {
	kind, _, _ := strings.Cut(p.At, ":")
	if !slices.Contains(PortKinds, kind) {
		return ""
	}
	return kind
}

// Path returns the path of the port's socket.
func (p *VMPort) Path() string {
	_, path, _ := strings.Cut(p.At, ":")
	return path
}

// Addresses returns the guest's addresses.
func (p *VMPort) Addresses() []netip.Addr {
	var all []netip.Addr
	for _, a := range p.Address {
		all = append(all, a.Addr())
	}
	return all
}

// HardwareAddr returns the guest's MAC, nil where there is none.
func (p *VMPort) HardwareAddr() net.HardwareAddr {
	mac, _ := net.ParseMAC(p.MAC) // checked
	return mac
}

// resolve makes the path of the port's socket one that is relative to no folder.
func (p *VMPort) resolve(folder string) {
	if kind, path, ok := strings.Cut(p.At, ":"); ok && path != "" && !filepath.IsAbs(path) {
		p.At = kind + ":" + filepath.Join(folder, path)
	}
}

// resolve makes the table's paths such that are relative to no folder.
func (v *VM) resolve(folder string) {
	if v.Directory != "" && !filepath.IsAbs(v.Directory) {
		v.Directory = filepath.Join(folder, v.Directory)
	}
	for i := range v.Ports {
		v.Ports[i].resolve(folder)
	}
}

// checkVM checks the [vm] table, if there is one, and its ports.
func (c *Config) checkVM() error {
	v := c.VM
	if v == nil {
		return nil
	}
	if err := v.check(); err != nil {
		return fmt.Errorf("[vm]: %w", err)
	}
	if err := c.checkGuestsNetworks(); err != nil {
		return err
	}
	taken := newTakenPorts(c)
	for i := range v.Ports {
		p := &v.Ports[i]
		if p.Name == "" {
			return fmt.Errorf("[[vm.port]] %d: name is missing", i+1)
		}
		if err := taken.add(p); err != nil {
			return fmt.Errorf("[[vm.port]] %q: %w", p.Name, err)
		}
	}
	return nil
}

// checkGuestsNetworks checks that the guests' networks are nobody else's.
func (c *Config) checkGuestsNetworks() error {
	v := c.VM
	for i := range c.Peers {
		for _, a := range c.Peers[i].Allowed {
			if err := v.outside(a.Prefix); err != nil {
				return fmt.Errorf("[[peer]] %q: allowed %w", c.Peers[i].Name, err)
			}
		}
	}
	if c.TUN != nil {
		for _, a := range c.TUN.Address {
			for _, n := range v.networks() {
				if n.Overlaps(a.Masked()) {
					return fmt.Errorf("[vm]: the guests' network %v overlaps that of [tun]'s address %v: guests need one of their own", n, a.Prefix)
				}
			}
		}
	}
	for _, a := range c.Address {
		if v.guests(a.Addr()) {
			return fmt.Errorf("address %v lies in the guests' network of [vm]: [[forward]] needs one outside", a.Addr())
		}
	}
	if c.Terminate != nil {
		for _, p := range c.Terminate.Prefixes {
			if err := v.outside(p.Prefix); err != nil {
				return fmt.Errorf("[terminate]: prefix %w", err)
			}
		}
	}
	return nil
}

// check checks a [vm] table without its ports.
func (v *VM) check() error {
	if len(v.Address) == 0 {
		return errors.New("address is missing: the gateway's own in the guests' network, for example 10.1.0.1/24")
	}
	var seen [2]bool
	for _, a := range v.Address {
		family := 0
		bits := maxBits4
		if a.Addr().Is6() {
			family, bits = 1, maxBits6
		}
		switch {
		case a.Addr().Is4In6() || !a.Addr().IsGlobalUnicast():
			return fmt.Errorf("address %v: expected one of a host, for example 10.1.0.1/24", a.Prefix)
		case a.Bits() > bits:
			return fmt.Errorf("address %v leaves no room for guests: give the length of their network, for example 10.1.0.1/24 or fd01::1/64", a.Prefix)
		case edge(a.Prefix, a.Addr()):
			return fmt.Errorf("address %v is that of the network or of all in it: the gateway needs one of a host, for example %v", a.Prefix, a.Masked().Addr().Next())
		case seen[family]:
			return fmt.Errorf("address %v: at most one of IPv4 and one of IPv6", a.Prefix)
		}
		seen[family] = true
	}
	least := minMTU
	if seen[1] {
		least = minMTU6
	}
	if v.MTU != 0 && (v.MTU < least || v.MTU > maxMTU) {
		return fmt.Errorf("mtu = %d is not between %d and %d", v.MTU, least, maxMTU)
	}
	return nil
}

// edge tells whether an address stands for no host of its network: the first, and of IPv4
// the last.
func edge(network netip.Prefix, a netip.Addr) bool {
	if a == network.Masked().Addr() {
		return true
	}
	if !a.Is4() {
		return false
	}
	b := a.As4()
	for i := network.Bits(); i < a.BitLen(); i++ {
		if b[i/8]&(0x80>>(i%8)) == 0 {
			return false
		}
	}
	return true
}

// networks returns the guests' prefixes.
func (v *VM) networks() []netip.Prefix {
	var all []netip.Prefix
	for _, a := range v.Address {
		all = append(all, a.Masked())
	}
	return all
}

// guests tells whether an address is in the guests' network.
func (v *VM) guests(a netip.Addr) bool {
	return slices.ContainsFunc(v.Address, func(p Prefix) bool { return p.Contains(a) })
}

// outside returns an error if a prefix, which is to lie behind a peer, lies in the guests'
// network. One around it may: the longer one wins.
func (v *VM) outside(p netip.Prefix) error {
	for _, n := range v.networks() {
		if n.Overlaps(p) && p.Bits() >= n.Bits() {
			return fmt.Errorf("%v lies in the guests' network %v of [vm], which is here", p, n)
		}
	}
	return nil
}
