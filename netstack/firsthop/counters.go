package firsthop

import "sync/atomic"

// Counters tell what became of the frames of a port's guests and of packets to them. They
// are kept by the port's name while it is unplugged and plugged in again.
type Counters struct {
	Received uint64 `json:"received"` // frames from the guest
	Passed   uint64 `json:"passed"`   // packets of it that went on: out of Read, or to another guest
	Answered uint64 `json:"answered"` // frames in which the router answered it or told it something
	Sent     uint64 `json:"sent"`     // packets to it that its queue took
	Dropped  uint64 `json:"dropped"`  // packets and answers to it that its queue had no room for

	Spoofed    Spoofed `json:"spoofed"`    // from addresses that are not its own
	Malformed  uint64  `json:"malformed"`  // no IP packet, ARP or NDP message, or shorter than it says
	VLAN       uint64  `json:"vlan"`       // frames with a VLAN tag
	Foreign    uint64  `json:"foreign"`    // frames to another MAC address than the router's, or of other protocols
	Group      uint64  `json:"group"`      // broadcast and multicast that is for nobody here: mDNS, MLD, IGMP and the like
	Local      uint64  `json:"local"`      // from or to link-local and other addresses that stay where they are
	Isolated   uint64  `json:"isolated"`   // to another guest, which Config does not allow
	TooBig     uint64  `json:"too_big"`    // packets longer than the MTU, from and to it
	Unserved   uint64  `json:"unserved"`   // to the router, which has no such service or no room for one more query
	Unresolved uint64  `json:"unresolved"` // packets to it while its MAC address was not known
	Queries    uint64  `json:"queries"`    // for DNS
}

// Spoofed counts what had a source that is not the guest's own, by where it was said.
type Spoofed struct {
	MAC  uint64 `json:"mac"`  // of the frame
	IPv4 uint64 `json:"ipv4"` // of the packet
	IPv6 uint64 `json:"ipv6"`
	ARP  uint64 `json:"arp"`  // sender's addresses
	NDP  uint64 `json:"ndp"`  // what a message claims; and what only routers send
	DHCP uint64 `json:"dhcp"` // client's hardware address
}

// counters are Counters while they are counted, by several goroutines.
type counters struct {
	received, passed, answered, sent, dropped                          atomic.Uint64
	spoofed                                                            [numSpoofs]atomic.Uint64
	malformed, vlan, foreign, group, local, isolated, tooBig, unserved atomic.Uint64
	unresolved, queries                                                atomic.Uint64
}

// A spoof is where an address that is not the guest's own was said.
type spoof int

const (
	spoofMAC spoof = iota
	spoofIPv4
	spoofIPv6
	spoofARP
	spoofNDP
	spoofDHCP
	numSpoofs
)

var spoofNames = [numSpoofs]string{"MAC", "IPv4", "IPv6", "ARP", "NDP", "DHCP"}

func (s spoof) String() string { return spoofNames[s] }

func (c *counters) read() Counters {
	return Counters{
		Received: c.received.Load(), Passed: c.passed.Load(), Answered: c.answered.Load(), Sent: c.sent.Load(), Dropped: c.dropped.Load(),
		Spoofed: Spoofed{
			MAC: c.spoofed[spoofMAC].Load(), IPv4: c.spoofed[spoofIPv4].Load(), IPv6: c.spoofed[spoofIPv6].Load(),
			ARP: c.spoofed[spoofARP].Load(), NDP: c.spoofed[spoofNDP].Load(), DHCP: c.spoofed[spoofDHCP].Load(),
		},
		Malformed: c.malformed.Load(), VLAN: c.vlan.Load(), Foreign: c.foreign.Load(), Group: c.group.Load(), Local: c.local.Load(),
		Isolated: c.isolated.Load(), TooBig: c.tooBig.Load(), Unserved: c.unserved.Load(), Unresolved: c.unresolved.Load(), Queries: c.queries.Load(),
	}
}
