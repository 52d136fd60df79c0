package firsthop

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/gaissmai/bart"
)

// Whose an address is, and who may have it.

// maxClaims is how many IPv6 addresses a guest may have by claiming them. A host that
// makes temporary addresses (RFC 8981) has one a day, each valid for a week, beside a
// stable one: 9 with the one that overlaps.
const maxClaims = 16

// maxDeclined is how many addresses are kept from a port as its guest has found them in
// use. Nobody but the guest can use them there, so that others may have them.
const maxDeclined = 8

// A target is where packets to an address go. An address without one is elsewhere: such
// packets leave by Read.
type target struct {
	kind kind
	port *port // of toGuest
}

type kind uint8

const (
	toGuest kind = iota
	toRouter
	toGroup // broadcast and multicast
	toNone  // what stays where it is, such as link-local addresses, or is no address of a host
)

// special are the prefixes whose packets never leave a link (RFC 6890), and that of
// IPv4-mapped addresses (RFC 4291 section 2.5.5.2), which are for no wire.
var specials = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("::ffff:0:0/96"),
}

var groups = []netip.Prefix{
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("255.255.255.255/32"), netip.MustParsePrefix("ff00::/8"),
}

func special(a netip.Addr) bool {
	return slices.ContainsFunc(specials, func(p netip.Prefix) bool { return p.Contains(a) })
}

// lastOf returns the last address of an IPv4 prefix.
func lastOf(p netip.Prefix) netip.Addr {
	first := p.Masked().Addr().As4()
	last := binary.BigEndian.Uint32(first[:]) | uint32(uint64(1)<<(32-p.Bits())-1)
	return addr4(last)
}

func addr4(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

func whole(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// fixedTargets returns a table without guests.
func (r *Router) fixedTargets() *bart.Table[*target] {
	t := &bart.Table[*target]{}
	router, group, none := &target{kind: toRouter}, &target{kind: toGroup}, &target{kind: toNone}
	for _, p := range specials {
		t.Insert(p, none)
	}
	for _, p := range groups {
		t.Insert(p, group)
	}
	if p := r.prefix4; p.IsValid() {
		if p.Bits() < 31 { // RFC 3021
			t.Insert(whole(p.Masked().Addr()), group) // RFC 1122 section 3.3.6: as broadcast was written once
			t.Insert(whole(lastOf(p)), group)
		}
		t.Insert(whole(p.Addr()), router)
	}
	if p := r.prefix6; p.IsValid() {
		if p.Bits() < 127 { // RFC 6164 section 5.1
			t.Insert(whole(p.Masked().Addr()), router) // subnet-router anycast, RFC 4291 section 2.6.1
		}
		t.Insert(whole(p.Addr()), router)
		t.Insert(whole(routerLocal), router)
	}
	return t
}

// lookup returns the target of an address, nil of one elsewhere.
func (r *Router) lookup(a netip.Addr) *target {
	to, _ := r.table.Load().Lookup(a)
	return to
}

// holder returns the port whose guest has an address, nil of another.
func (r *Router) holder(a netip.Addr) *port {
	if to := r.lookup(a); to != nil {
		return to.port
	}
	return nil
}

// inPrefix reports whether an address is in the guests' prefix of its family.
func (r *Router) inPrefix(a netip.Addr) bool {
	return r.prefix4.IsValid() && r.prefix4.Contains(a) || r.prefix6.IsValid() && r.prefix6.Contains(a)
}

// assign and release are called under mu.
func (r *Router) assign(a netip.Addr, p *port) {
	r.table.Store(r.table.Load().InsertPersist(whole(a), &p.target))
}

func (r *Router) release(a netip.Addr) { r.table.Store(r.table.Load().DeletePersist(whole(a))) }

// checkPort says what is wrong with the configuration of a port. It is called under mu.
func (r *Router) checkPort(cfg PortConfig) error {
	if cfg.MAC != nil {
		if err := r.checkMAC(cfg.MAC); err != nil {
			return err
		}
	}
	for i, a := range cfg.Addresses {
		to := r.lookup(a)
		switch {
		case !a.IsValid() || a.Zone() != "" || !r.inPrefix(a) || to != nil && to.kind != toGuest:
			return fmt.Errorf("address %s: %w: give one of a host in the guests' prefix, and not the router's", a, ErrAddress)
		case slices.Contains(cfg.Addresses[:i], a):
			return fmt.Errorf("address %s is there twice: %w: remove one", a, ErrAddress)
		case to != nil && slices.Contains(to.port.configured, a):
			return fmt.Errorf("address %s: %w by port %q: give each its own", a, ErrInUse, to.port.name)
		}
	}
	return nil
}

func (r *Router) checkMAC(mac net.HardwareAddr) error {
	if len(mac) != 6 || !hostMAC([6]byte(mac)) {
		return fmt.Errorf("MAC address %s: %w: give six bytes that one host can have, like 52:54:00:12:34:01, and not the router's %s", mac, ErrMAC, net.HardwareAddr(routerMAC[:]))
	}
	if q := r.macs[[6]byte(mac)]; q != nil {
		return fmt.Errorf("MAC address %s: %w by port %q: give each its own", mac, ErrInUse, q.name)
	}
	return nil
}

// hostMAC reports whether a guest can have a MAC address: no group, not nothing, and not
// the router's.
func hostMAC(mac [6]byte) bool { return mac[0]&1 == 0 && mac != [6]byte{} && mac != routerMAC }

// learn takes the MAC address of a first frame as the guest's, if it may be.
func (p *port) learn(mac [6]byte) bool {
	if !hostMAC(mac) || p.identity.Load().known {
		return false
	}
	p.router.mu.Lock()
	defer p.router.mu.Unlock()
	if p.router.macs[mac] != nil || p.out {
		return false
	}
	p.setMAC(mac)
	p.publish()
	return true
}

// setMAC says what MAC address the guest has, and gives it the IPv6 address that follows
// from it (RFC 4862 section 5.5.3). It is called under the Router's mu.
func (p *port) setMAC(mac [6]byte) {
	p.mac, p.known = mac, true
	p.router.macs[mac] = p
	if !p.claims6() {
		return
	}
	a := autoconfigured(p.router.prefix6, mac)
	if p.router.lookup(a) == nil {
		p.derived = a
		p.router.assign(a, p)
	}
}

// autoconfigured returns the address that a host with a MAC address makes in a prefix of
// 64 bits: RFC 4291 appendix A.
func autoconfigured(p netip.Prefix, mac [6]byte) netip.Addr {
	a := p.Masked().Addr().As16()
	copy(a[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(a)
}

// claims6 reports whether the guest may claim IPv6 addresses: it has none by
// configuration, and hosts can make some in the prefix, whose identifiers have 64 bits.
func (p *port) claims6() bool {
	return p.router.prefix6.IsValid() && p.router.prefix6.Bits() == 64 && !slices.ContainsFunc(p.configured, netip.Addr.Is6)
}

// leases reports whether the guest's IPv4 address is leased: it has none by configuration.
func (p *port) leases() bool {
	return p.router.prefix4.IsValid() && !slices.ContainsFunc(p.configured, netip.Addr.Is4)
}

// adopt makes an address the guest's that it sends from, and says whether it is now. An
// IPv6 address that nobody has is whose who claims it first (RFC 6620), and an IPv4
// address that nobody has is that of a guest without a lease: it knows it from one of a
// gateway that was restarted, which keeps none.
func (p *port) adopt(a netip.Addr) bool {
	r := p.router
	if !r.inPrefix(a) || r.lookup(a) != nil {
		return false
	}
	if a.Is4() {
		return p.leases() && !p.identity.Load().leased && p.renew(a) == a
	}
	if !p.claims6() || !p.claiming.Allow() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.out || r.lookup(a) != nil {
		return false
	}
	if len(p.claims) == maxClaims {
		r.release(p.claims[0])
		p.claims = slices.Delete(p.claims, 0, 1)
	}
	p.claims = append(p.claims, a)
	r.assign(a, p)
	p.publish()
	return true
}

// withdraw takes an address that was not configured from a guest, as another port is to
// have it. It is called under the Router's mu.
func (p *port) withdraw(a netip.Addr) {
	p.router.log.Warn("address of a guest goes to another port by configuration", "port", p.name, "address", a)
	switch {
	case p.lease == a:
		p.lease = netip.Addr{}
	case p.derived == a:
		p.derived = netip.Addr{}
	default:
		p.claims = slices.DeleteFunc(p.claims, func(b netip.Addr) bool { return a == b })
	}
	p.publish()
}

// offered returns the guest's IPv4 address, configured or leased; not valid if it has none.
func (p *port) offered() netip.Addr {
	for _, a := range p.identity.Load().addresses { // configured ones first
		if a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// renew returns the guest's IPv4 address, which is a new one where it had none: that which
// it wants, if it can be had. It is not valid where none is left.
func (p *port) renew(wanted netip.Addr) netip.Addr {
	r := p.router
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := p.offered(); a.IsValid() || p.out || !p.leases() {
		return a
	}
	a := r.choose(p, wanted)
	if !a.IsValid() {
		return a
	}
	if old := r.leased[a]; old != nil {
		old.lease = netip.Addr{}
		delete(r.leased, a)
	}
	p.lease = a
	r.assign(a, p)
	p.publish()
	return a
}

// giveUp takes back the guest's lease, if that is what a is, and keeps it from the guest
// where it declined it.
func (p *port) giveUp(a netip.Addr, declined bool) {
	r := p.router
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.lease != a || !a.IsValid() || p.out {
		return
	}
	p.lease, p.record.lease = netip.Addr{}, netip.Addr{}
	r.release(a)
	if declined {
		if len(p.declined) == maxDeclined {
			p.declined = slices.Delete(p.declined, 0, 1)
		}
		p.declined = append(p.declined, a)
	}
	p.publish()
}

// choose returns an IPv4 address for a lease: the last one of the port's name, or what the
// guest wants, or one that follows from the name, so that ports have the same ones after a
// restart, mostly. What unplugged ports had is taken last. It is called under mu.
func (r *Router) choose(p *port, wanted netip.Addr) netip.Addr {
	free := func(a netip.Addr) bool {
		return r.prefix4.Contains(a) && r.lookup(a) == nil && !slices.Contains(p.declined, a)
	}
	for _, a := range []netip.Addr{p.record.lease, wanted} {
		if old := r.leased[a]; a.Is4() && free(a) && (old == nil || old == p.record) {
			return a
		}
	}
	bits := 32 - r.prefix4.Bits()
	mask := uint32(uint64(1)<<bits - 1)
	network := r.prefix4.Masked().Addr().As4()
	first, at := binary.BigEndian.Uint32(network[:]), uint32(xxhash.Sum64String(p.name))
	for _, any := range []bool{false, true} {
		for i := range uint64(1) << bits {
			if a := addr4(first | (at+uint32(i))&mask); free(a) && (any || r.leased[a] == nil) {
				return a
			}
		}
	}
	return netip.Addr{}
}
