package netstack

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"sheaf/parsers/ip"
)

// strayTCP is called for a segment that belongs to no connection: a client's SYN
// is offered to the Terminator of its address, anything else is reset, so that
// clients learn of a gateway that has been started anew.
//
// gVisor would send the reset itself, but wait for Read if there is no room for
// it, with the goroutine that is in Input. Its other resets have a goroutine that
// may wait, and it is well that they do: one that is lost leaves the other side
// with half a connection.
func (s *Stack) strayTCP(id stack.TransportEndpointID, p *stack.PacketBuffer) bool {
	if s.offerTCP(id, p) {
		return true
	}
	if reset := appendReset(nil, id, p); reset != nil {
		s.emit(reset)
	}
	return true
}

// appendReset appends the packet that answers a segment for which there is no
// connection, RFC 9293 section 3.10.7.1. It returns nil if none may be sent: the
// segment is a reset, or not intact.
func appendReset(dst []byte, id stack.TransportEndpointID, p *stack.PacketBuffer) []byte {
	segment := header.TCP(p.TransportHeader().Slice())
	payload := p.Data()
	// a data offset past the end would have the checksum read there
	if len(segment) < minTCP || int(segment.DataOffset()) > len(segment) || segment.Flags()&header.TCPFlagRst != 0 ||
		!segment.IsChecksumValid(id.RemoteAddress, id.LocalAddress, payload.Checksum(), uint16(payload.Size())) {
		return nil
	}
	fields := header.TCPFields{SrcPort: id.LocalPort, DstPort: id.RemotePort, DataOffset: minTCP, Flags: header.TCPFlagRst}
	if flags := segment.Flags(); flags&header.TCPFlagAck != 0 {
		fields.SeqNum = segment.AckNumber()
	} else {
		fields.Flags |= header.TCPFlagAck
		fields.AckNum = segment.SequenceNumber() + uint32(payload.Size())
		if flags&header.TCPFlagSyn != 0 {
			fields.AckNum++
		}
		if flags&header.TCPFlagFin != 0 {
			fields.AckNum++
		}
	}
	return encodeReset(dst, id.LocalAddress, id.RemoteAddress, &fields)
}

// AppendReset appends the packet that ends a connection at to in the name of from,
// and returns the extended buffer. next is the sequence number that to expects
// next: with another one the reset is not believed (RFC 5961 section 3.2). Both
// addresses are of one family.
func AppendReset(dst []byte, from, to netip.AddrPort, next uint32) []byte {
	return encodeReset(dst, tcpip.AddrFromSlice(from.Addr().AsSlice()), tcpip.AddrFromSlice(to.Addr().AsSlice()), &header.TCPFields{
		SrcPort: from.Port(), DstPort: to.Port(), SeqNum: next, DataOffset: minTCP, Flags: header.TCPFlagRst,
	})
}

// encodeReset appends a packet of headers only.
func encodeReset(dst []byte, from, to tcpip.Address, fields *header.TCPFields) []byte {
	n := len(dst)
	at := ip.MinIPv4
	if from.Len() == header.IPv6AddressSize {
		at = ip.MinIPv6
	}
	dst = append(dst, make([]byte, at+minTCP)...)
	packet := dst[n:]
	if at == ip.MinIPv6 {
		header.IPv6(packet).Encode(&header.IPv6Fields{PayloadLength: minTCP, TransportProtocol: header.TCPProtocolNumber, HopLimit: icmpTTL, SrcAddr: from, DstAddr: to})
	} else {
		v4 := header.IPv4(packet)
		v4.Encode(&header.IPv4Fields{TotalLength: uint16(len(packet)), Flags: header.IPv4FlagDontFragment, TTL: icmpTTL, Protocol: ip.TCP, SrcAddr: from, DstAddr: to})
		v4.SetChecksum(^v4.CalculateChecksum())
	}
	answer := header.TCP(packet[at:])
	answer.Encode(fields)
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, from, to, minTCP)
	answer.SetChecksum(^checksum.Checksum(answer, sum))
	return dst
}
