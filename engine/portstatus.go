package engine

import (
	"net/netip"
	"slices"
	"time"

	"sheaf/netstack/firsthop"
	"sheaf/netstack/link"
	"sheaf/netstack/vsock"
)

// maxTotals bounds the names of ports whose counters are kept while they are not plugged
// in, at some hundred bytes each. Past it the one that was unplugged first is forgotten,
// and counts from nothing when it comes back.
const maxTotals = 1 << 12

// totals are the counters of ends that are gone, by their ports' names.
type totals struct {
	of    map[string]endStatus
	order []string // of the names, the one that was kept longest first
}

func newTotals() totals { return totals{of: make(map[string]endStatus)} }

// keep adds the counters of an end that is gone.
func (t *totals) keep(name string, s endStatus) {
	sum := t.with(name, s)
	sum.Up, sum.Since, sum.Fault, sum.vsock.Streams = false, time.Time{}, "", 0
	t.of[name] = sum
	t.order = append(slices.DeleteFunc(t.order, func(n string) bool { return n == name }), name)
	if len(t.order) > maxTotals {
		delete(t.of, t.order[0])
		t.order = t.order[1:]
	}
}

// with returns a status with the counters of ends before added to its own.
func (t *totals) with(name string, s endStatus) endStatus {
	before := t.of[name]
	s.Connects += before.Connects
	s.Received += before.Received
	s.Sent += before.Sent
	s.Dropped += before.Dropped
	s.Invalid += before.Invalid
	s.vsock.Calls += before.vsock.Calls
	s.vsock.Dials += before.vsock.Dials
	s.vsock.Refused += before.vsock.Refused
	s.vsock.Violations += before.vsock.Violations
	s.vsock.Overdue += before.vsock.Overdue
	s.vsock.BytesFrom += before.vsock.BytesFrom
	s.vsock.BytesTo += before.vsock.BytesTo
	return s
}

// A PortStatus tells of a guest's port. Counters are since the gateway started, over all
// times that a port of this name was plugged in.
type PortStatus struct {
	Name      string              `json:"name"`
	At        string              `json:"at"`
	Kind      string              `json:"kind"`
	Dial      bool                `json:"dial,omitempty"`
	From      string              `json:"from"`                // configuration, directory or command
	MAC       string              `json:"mac,omitempty"`       // "" while it is not known
	Addresses []netip.Addr        `json:"addresses,omitempty"` // what the guest may send from
	CID       uint32              `json:"cid,omitempty"`
	Link      link.Status         `json:"link"`
	Counters  firsthop.Counters   `json:"counters"`
	Vsock     *vsock.StreamStatus `json:"vsock,omitempty"` // of a guest without a NIC
}

// A GuestsStatus tells of the guests of [vm].
type GuestsStatus struct {
	Networks []netip.Prefix `json:"networks"`
	Ports    []PortStatus   `json:"ports"`            // by their names
	Faults   []string       `json:"faults,omitempty"` // of the directory and its files
	Spoofed  uint64         `json:"spoofed"`          // packets not of a guest that say they are
}

// status returns what there is to tell, nil where there is no [vm].
func (n *guests) status() *GuestsStatus {
	if n == nil {
		return nil
	}
	s := &GuestsStatus{Networks: n.vm.networks(), Ports: n.ports.status(), Spoofed: n.spoofed.Load()}
	n.ports.mu.Lock()
	defer n.ports.mu.Unlock()
	s.Faults = n.ports.files.faults()
	return s
}

// status tells of all ports.
func (p *ports) status() []PortStatus {
	behind := make(map[string]firsthop.PortStatus)
	for _, s := range p.opener.router.Ports() {
		behind[s.Name] = s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]PortStatus, 0, len(p.plugged))
	for _, one := range p.sorted() {
		now := p.totals.with(one.Name, one.end.status())
		s := PortStatus{
			Name: one.Name, At: one.At, Kind: one.Kind(), Dial: one.Dial, From: one.from, CID: one.CID, Link: now.Status,
		}
		if s.Kind == KindVsock {
			s.Vsock = &now.vsock
		}
		if b, ok := behind[one.Name]; ok {
			s.MAC, s.Addresses, s.Counters = b.MAC, b.Addresses, b.Counters
		} else {
			s.Addresses = one.Addresses()
		}
		all = append(all, s)
	}
	return all
}

// Names returns the names of guests by their addresses.
func (s *GuestsStatus) Names() map[netip.Addr]string {
	names := make(map[netip.Addr]string)
	if s == nil {
		return names
	}
	for _, p := range s.Ports {
		for _, a := range p.Addresses {
			names[a] = p.Name
		}
	}
	return names
}

// Losses counts what went no further at a port, by the names of its metrics: frames from
// the guest, and packets to it; without a NIC, its packets and streams.
func (p *PortStatus) Losses() map[string]uint64 {
	if v := p.Vsock; v != nil {
		return map[string]uint64{"invalid": p.Link.Invalid, "refused": v.Refused, "violation": v.Violations, "overdue": v.Overdue}
	}
	c := &p.Counters
	return map[string]uint64{
		"no guest": p.Link.Dropped, "no frame": p.Link.Invalid, "queue full": c.Dropped,
		"spoofed MAC": c.Spoofed.MAC, "spoofed IPv4": c.Spoofed.IPv4, "spoofed IPv6": c.Spoofed.IPv6,
		"spoofed ARP": c.Spoofed.ARP, "spoofed NDP": c.Spoofed.NDP, "spoofed DHCP": c.Spoofed.DHCP,
		"malformed": c.Malformed, "VLAN": c.VLAN, "foreign": c.Foreign, LossGroup: c.Group, LossLocal: c.Local,
		"isolated": c.Isolated, "too big": c.TooBig, "unserved": c.Unserved, "unresolved": c.Unresolved,
	}
}

// Losses that each guest has that is well: to groups of which nobody is a member here, and
// from and to addresses that stay on the guest's link.
const (
	LossGroup = "group"
	LossLocal = "local"
)

// Spoofed is how many frames and packets said that they are from addresses that are not
// the guest's own.
func (p *PortStatus) Spoofed() uint64 {
	s := &p.Counters.Spoofed
	return s.MAC + s.IPv4 + s.IPv6 + s.ARP + s.NDP + s.DHCP
}
