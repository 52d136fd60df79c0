package firsthop

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"sheaf/parsers/ip"
)

// leaseTime is how long a guest may use its address without asking. The port keeps it for
// as long as it is plugged in; after a change of the configuration the guest has the right
// one when half of this has passed (RFC 2131 section 4.4.5).
const leaseTime = time.Hour

const lenUDP = 8 // bytes of the header, RFC 768

// udpPayload returns what a whole UDP datagram carries, not ok where it is shorter than it
// says.
func udpPayload(h *ip.Header) (payload []byte, ok bool) {
	b := h.Payload()
	if len(b) < lenUDP {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if n < lenUDP || n > len(b) {
		return nil, false
	}
	return b[lenUDP:n], true
}

// dhcp takes a message of the guest's DHCP client: RFC 2131 section 4.3. Where it is
// broadcast its source does not matter: one that has moved here asks from its old address,
// and is told so.
func (p *port) dhcp(h *ip.Header) {
	payload, ok := udpPayload(h)
	var m *dhcpv4.DHCPv4
	if ok {
		var err error
		m, err = dhcpv4.FromBytes(payload)
		ok = err == nil && m.OpCode == dhcpv4.OpcodeBootRequest && m.HWType == iana.HWTypeEthernet
	}
	if !ok {
		p.count().malformed.Add(1)
		return
	}
	id := p.identity.Load()
	if m.ClientHWAddr.String() != net.HardwareAddr(id.mac[:]).String() || !isZero(m.GatewayIPAddr) {
		p.spoofed(spoofDHCP)
		return
	}
	if server := addr(m.ServerIdentifier()); server.IsValid() && server != p.router.prefix4.Addr() {
		return // it has chosen another one
	}
	switch m.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		p.grant(m, dhcpv4.MessageTypeOffer, p.renew(addr(m.RequestedIPAddress())))
	case dhcpv4.MessageTypeRequest:
		p.request(m)
	case dhcpv4.MessageTypeInform:
		if a := addr(m.ClientIPAddr); id.owns(a) {
			p.grant(m, dhcpv4.MessageTypeAck, a)
		}
	case dhcpv4.MessageTypeRelease:
		p.giveUp(addr(m.ClientIPAddr), false)
	case dhcpv4.MessageTypeDecline:
		p.giveUp(addr(m.RequestedIPAddress()), true)
	}
}

// request takes a request: after an offer, after the guest has booted, or to go on with an
// address (RFC 2131 section 4.3.2). Each is granted where it names what the guest has, or
// can have.
func (p *port) request(m *dhcpv4.DHCPv4) {
	wanted := addr(m.RequestedIPAddress())
	if !wanted.IsValid() {
		wanted = addr(m.ClientIPAddr)
	}
	if !wanted.IsValid() {
		p.count().malformed.Add(1)
		return
	}
	if a := p.renew(wanted); a.IsValid() && a == wanted {
		p.grant(m, dhcpv4.MessageTypeAck, a)
		return
	}
	p.reply(m, dhcpv4.MessageTypeNak, netip.Addr{})
}

// grant answers with an address and all that goes with it. Where there is none left nothing
// is answered: another server may have one.
func (p *port) grant(m *dhcpv4.DHCPv4, kind dhcpv4.MessageType, a netip.Addr) {
	if !a.IsValid() {
		p.count().unserved.Add(1)
		p.warning.Do(func() { p.router.log.Warn("no address left for a guest", "port", p.name) })
		return
	}
	r := p.router
	own := r.prefix4.Addr().AsSlice()
	options := []dhcpv4.Modifier{
		dhcpv4.WithNetmask(net.CIDRMask(r.prefix4.Bits(), 32)), dhcpv4.WithRouter(own),
		dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, dhcpv4.Uint16(r.mtu).ToBytes()), // RFC 2132 section 5.1
	}
	if r.dns != nil {
		options = append(options, dhcpv4.WithDNS(own))
	}
	if m.MessageType() != dhcpv4.MessageTypeInform { // RFC 2131 section 4.3.5
		options = append(options, dhcpv4.WithYourIP(a.AsSlice()), dhcpv4.WithLeaseTime(uint32(leaseTime/time.Second)))
	}
	p.reply(m, kind, a, options...)
}

// reply answers a message, where the client takes it: RFC 2131 section 4.1.
func (p *port) reply(m *dhcpv4.DHCPv4, kind dhcpv4.MessageType, a netip.Addr, options ...dhcpv4.Modifier) {
	own := p.router.prefix4.Addr()
	answer, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithReply(m), dhcpv4.WithMessageType(kind),
		dhcpv4.WithServerIP(net.IPv4zero), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(own.AsSlice())),
	}, options...)...)
	if err != nil {
		return // its random number, which the client's replaces
	}
	if id := m.GetOneOption(dhcpv4.OptionClientIdentifier); id != nil { // RFC 6842 section 3
		answer.UpdateOption(dhcpv4.OptGeneric(dhcpv4.OptionClientIdentifier, id))
	}
	dst, to := a, p.identity.Load().mac
	switch client := addr(m.ClientIPAddr); {
	case kind == dhcpv4.MessageTypeNak:
		dst = netip.Addr{}
	case client.IsValid():
		dst = client
		answer.ClientIPAddr = m.ClientIPAddr // only in ACKs, table 3
	case m.IsBroadcast():
		dst = netip.Addr{}
	}
	if !dst.IsValid() {
		dst, to = netip.AddrFrom4([4]byte{255, 255, 255, 255}), broadcast
	}
	p.answer(to, etherIPv4, datagram(netip.AddrPortFrom(own, dhcpServer), netip.AddrPortFrom(dst, dhcpClient), answer.ToBytes()))
}

// addr returns an address in a message, not valid where it has none.
func addr(b net.IP) netip.Addr {
	a, ok := netip.AddrFromSlice(b)
	if a = a.Unmap(); !ok || !a.Is4() || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

func isZero(b net.IP) bool { return !addr(b).IsValid() }
