package parsers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// The ways in which a packet can be inconsistent. Decode's errors wrap one of
// them; they are made once, so that bad packets cost no allocation.
var (
	ErrVersion = errors.New("not an IPv4 or IPv6 packet")
	ErrShort   = errors.New("packet ends inside a header")
	ErrLength  = errors.New("length field disagrees with the packet")
	ErrHeader  = errors.New("malformed header")
)

var (
	errIPv4Short     = fmt.Errorf("IPv4 header: %w", ErrShort)
	errIPv4Length    = fmt.Errorf("IPv4 total length: %w", ErrLength)
	errIPv4IHL       = fmt.Errorf("IPv4 header length: %w", ErrHeader)
	errIPv4Options   = fmt.Errorf("IPv4 options: %w", ErrHeader)
	errIPv6Short     = fmt.Errorf("IPv6 header: %w", ErrShort)
	errIPv6Length    = fmt.Errorf("IPv6 payload length: %w", ErrLength)
	errIPv6Extension = fmt.Errorf("IPv6 extension header: %w", ErrShort)
	errIPv6Many      = fmt.Errorf("IPv6 extension headers, too many: %w", ErrHeader)
	errIPv6HopByHop  = fmt.Errorf("IPv6 hop-by-hop header not in the first place: %w", ErrHeader)
	errTCPShort      = fmt.Errorf("TCP header: %w", ErrShort)
	errTCPOffset     = fmt.Errorf("TCP data offset: %w", ErrHeader)
	errTCPOptions    = fmt.Errorf("TCP options: %w", ErrHeader)
	errUDPShort      = fmt.Errorf("UDP header: %w", ErrShort)
	errUDPLength     = fmt.Errorf("UDP length: %w", ErrLength)
	errDisagree      = fmt.Errorf("gopacket sees other headers: %w", ErrHeader)
)

const (
	flagSYN = 2 // in Segment.Flags

	protoTCP = uint8(layers.IPProtocolTCP)
	protoUDP = uint8(layers.IPProtocolUDP)

	minIPv4 = 20
	minIPv6 = 40
	minTCP  = 20
	lenUDP  = 8

	// maxExtensions bounds the chain of IPv6 extension headers. RFC 8200 section
	// 4.1 has each at most once and destination options twice.
	maxExtensions = 8
)

// A Decoder takes IP packets apart. The zero value is ready. It belongs to one
// goroutine and must not be copied once in use.
//
// It trusts neither the packet nor gopacket, which truncates, pads and accepts
// what is odd: lengths and chains are checked on the bytes first, the fields
// then come from gopacket's layers, and the two have to agree.
type Decoder struct {
	ip4     layers.IPv4
	ip6     ipv6
	skip    layers.IPv6ExtensionSkipper
	tcp     layers.TCP
	udp     layers.UDP
	v4, v6  *gopacket.DecodingLayerParser
	decoded []gopacket.LayerType
}

func (d *Decoder) init() {
	newParser := func(first gopacket.LayerType, decoders ...gopacket.DecodingLayer) *gopacket.DecodingLayerParser {
		p := gopacket.NewDecodingLayerParser(first)
		p.IgnoreUnsupported = true
		var c gopacket.DecodingLayerContainer = gopacket.DecodingLayerArray(nil)
		for _, l := range decoders {
			c = c.Put(l)
		}
		p.SetDecodingLayerContainer(c)
		return p
	}
	d.v4 = newParser(layers.LayerTypeIPv4, &d.ip4, &d.tcp, &d.udp)
	d.v6 = newParser(layers.LayerTypeIPv6, &d.ip6, &d.tcp, &d.udp, &d.skip)
	d.decoded = make([]gopacket.LayerType, 0, maxExtensions+2)
}

// Decode fills seg from an IP packet, which seg borrows. On an error, which says
// that the packet is not consistent, seg is not valid.
func (d *Decoder) Decode(packet []byte, seg *Segment) error {
	if d.v4 == nil {
		d.init()
	}
	if len(packet) == 0 {
		return ErrShort
	}
	*seg = Segment{Packet: packet}
	parser := d.v4
	var err error
	switch packet[0] >> 4 {
	case 4:
		err = checkIPv4(packet, seg)
	case 6:
		parser = d.v6
		err = checkIPv6(packet, seg)
	default:
		return ErrVersion
	}
	if err != nil {
		return err
	}
	if !seg.Fragment {
		if err := checkTransport(packet[seg.HeaderLen:], seg); err != nil {
			return err
		}
	}
	if seg.TransportLen == 0 {
		// Not for gopacket, which would go on into IP in IP and into fragments.
		addresses(packet, seg)
		return nil
	}
	if err := parser.DecodeLayers(packet, &d.decoded); err != nil {
		return fmt.Errorf("%w: %w", errDisagree, err)
	}
	if parser.Truncated || !d.fill(seg) {
		return errDisagree
	}
	return nil
}

// fill copies what gopacket found, and says whether it agrees with the checks.
func (d *Decoder) fill(seg *Segment) bool {
	if len(d.decoded) == 0 {
		return false
	}
	if seg.Key.Version == 4 {
		copy(seg.Key.Src[:], d.ip4.SrcIP)
		copy(seg.Key.Dst[:], d.ip4.DstIP)
		if len(d.ip4.Contents) != seg.HeaderLen || uint8(d.ip4.Protocol) != seg.Key.Proto {
			return false
		}
	} else {
		copy(seg.Key.Src[:], d.ip6.SrcIP)
		copy(seg.Key.Dst[:], d.ip6.DstIP)
	}
	var payload int
	last := d.decoded[len(d.decoded)-1]
	switch {
	case seg.Key.Proto == protoTCP && last == layers.LayerTypeTCP:
		seg.Key.SrcPort = uint16(d.tcp.SrcPort)
		seg.Key.DstPort = uint16(d.tcp.DstPort)
		seg.Seq = d.tcp.Seq
		seg.Ack = d.tcp.Ack
		seg.Flags = d.tcp.Contents[13] // the flags in one byte, which gopacket takes apart
		payload = len(d.tcp.Payload)
	case seg.Key.Proto == protoUDP && last == layers.LayerTypeUDP:
		seg.Key.SrcPort = uint16(d.udp.SrcPort)
		seg.Key.DstPort = uint16(d.udp.DstPort)
		payload = len(d.udp.Payload)
	default:
		return false
	}
	return payload == len(seg.Payload())
}

// addresses copies the addresses from the bytes of a checked IP header.
func addresses(b []byte, seg *Segment) {
	if seg.Key.Version == 4 {
		copy(seg.Key.Src[:], b[12:16])
		copy(seg.Key.Dst[:], b[16:20])
		return
	}
	copy(seg.Key.Src[:], b[8:24])
	copy(seg.Key.Dst[:], b[24:40])
}

// checkIPv4 finds the end of the IPv4 header (RFC 791, section 3.1).
func checkIPv4(b []byte, seg *Segment) error {
	if len(b) < minIPv4 {
		return errIPv4Short
	}
	header := int(b[0]&0x0f) * 4
	switch {
	case header < minIPv4:
		return errIPv4IHL
	case header > len(b):
		return errIPv4Short
	case int(binary.BigEndian.Uint16(b[2:])) != len(b):
		return errIPv4Length
	case !optionsFit(b[minIPv4:header], 3):
		return errIPv4Options
	}
	seg.HeaderLen = header
	seg.Fragment = binary.BigEndian.Uint16(b[6:])&0x3fff != 0 // more fragments, or an offset
	seg.Key.Version = 4
	seg.Key.Proto = b[9]
	return nil
}

// checkIPv6 finds the end of the extension headers (RFC 8200, section 4), up to
// and with a fragment header.
func checkIPv6(b []byte, seg *Segment) error {
	if len(b) < minIPv6 {
		return errIPv6Short
	}
	if minIPv6+int(binary.BigEndian.Uint16(b[4:])) != len(b) {
		return errIPv6Length
	}
	next := layers.IPProtocol(b[6])
	at := minIPv6
	for range maxExtensions + 1 {
		switch next {
		case layers.IPProtocolIPv6HopByHop:
			if at != minIPv6 { // section 4.3
				return errIPv6HopByHop
			}
		case layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Destination, layers.IPProtocolIPv6Fragment:
		default:
			seg.HeaderLen = at
			seg.Key.Version = 6
			seg.Key.Proto = uint8(next)
			return nil
		}
		if len(b)-at < 8 {
			return errIPv6Extension
		}
		size := 8
		if next == layers.IPProtocolIPv6Fragment {
			seg.Fragment = true
		} else {
			size += int(b[at+1]) * 8
		}
		if len(b)-at < size {
			return errIPv6Extension
		}
		next = layers.IPProtocol(b[at])
		at += size
		if seg.Fragment {
			seg.HeaderLen = at
			seg.Key.Version = 6
			seg.Key.Proto = uint8(next)
			return nil
		}
	}
	return errIPv6Many
}

// checkTransport finds the end of the TCP or UDP header in b, the rest of the
// packet.
func checkTransport(b []byte, seg *Segment) error {
	switch seg.Key.Proto {
	case protoTCP: // RFC 9293, section 3.1
		if len(b) < minTCP {
			return errTCPShort
		}
		header := int(b[12]>>4) * 4
		if header < minTCP || header > len(b) {
			return errTCPOffset
		}
		if !optionsFit(b[minTCP:header], 2) {
			return errTCPOptions
		}
		seg.TransportLen = header
	case protoUDP: // RFC 768
		if len(b) < lenUDP {
			return errUDPShort
		}
		if int(binary.BigEndian.Uint16(b[4:])) != len(b) {
			return errUDPLength
		}
		seg.TransportLen = lenUDP
	}
	return nil
}

// optionsFit says whether a list of IPv4 or TCP options ends where it should.
// shortest is the least length of an option that has a length; for IPv4 it is
// what gopacket takes, which is one more than RFC 791 asks for.
func optionsFit(b []byte, shortest int) bool {
	for len(b) > 0 {
		switch b[0] {
		case 0:
			return true
		case 1:
			b = b[1:]
		default:
			if len(b) < 2 || int(b[1]) < shortest || int(b[1]) > len(b) {
				return false
			}
			b = b[b[1]:]
		}
	}
	return true
}

// ipv6 is gopacket's layer without its way of decoding the hop-by-hop header,
// which allocates; the extension skipper does that instead.
type ipv6 struct{ layers.IPv6 }

func (l *ipv6) DecodeFromBytes(b []byte, df gopacket.DecodeFeedback) error {
	if len(b) < minIPv6 || layers.IPProtocol(b[6]) != layers.IPProtocolIPv6HopByHop {
		return l.IPv6.DecodeFromBytes(b, df)
	}
	l.IPv6 = layers.IPv6{
		BaseLayer:    layers.BaseLayer{Contents: b[:minIPv6], Payload: b[minIPv6:]},
		Version:      b[0] >> 4,
		TrafficClass: b[0]<<4 | b[1]>>4,
		FlowLabel:    binary.BigEndian.Uint32(b) & 0xfffff,
		Length:       binary.BigEndian.Uint16(b[4:]),
		NextHeader:   layers.IPProtocolIPv6HopByHop,
		HopLimit:     b[7],
		SrcIP:        b[8:24],
		DstIP:        b[24:40],
	}
	return nil
}
