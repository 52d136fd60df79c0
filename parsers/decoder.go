package parsers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/ip"
)

// The ways in which a packet can be inconsistent. Decode's errors wrap one of
// them; they are made once, so that bad packets cost no allocation.
var (
	ErrVersion = ip.ErrVersion
	ErrShort   = ip.ErrShort
	ErrLength  = errors.New("length field disagrees with the packet")
	ErrHeader  = ip.ErrHeader
)

var (
	errIPLength    = fmt.Errorf("IP length: %w", ErrLength)
	errIPv4Options = fmt.Errorf("IPv4 options: %w", ErrHeader)
	errTCPShort    = fmt.Errorf("TCP header: %w", ErrShort)
	errTCPOffset   = fmt.Errorf("TCP data offset: %w", ErrHeader)
	errTCPOptions  = fmt.Errorf("TCP options: %w", ErrHeader)
	errUDPShort    = fmt.Errorf("UDP header: %w", ErrShort)
	errUDPLength   = fmt.Errorf("UDP length: %w", ErrLength)
	errDisagree    = fmt.Errorf("gopacket sees other headers: %w", ErrHeader)
)

const (
	minTCP = 20
	lenUDP = 8
)

// A Decoder takes IP packets apart. The zero value is ready. It belongs to one
// goroutine and must not be copied once in use.
//
// Package ip reads the IP headers, gopacket TCP and UDP. The Decoder trusts neither
// the packet nor gopacket, which truncates, pads and accepts what is odd: lengths
// and options are checked on the bytes first, the fields then come from gopacket's
// layers, and the two have to agree.
type Decoder struct {
	tcp              layers.TCP
	udp              layers.UDP
	onlyTCP, onlyUDP *gopacket.DecodingLayerParser
	decoded          []gopacket.LayerType
}

func (d *Decoder) init() {
	newParser := func(first gopacket.LayerType, layer gopacket.DecodingLayer) *gopacket.DecodingLayerParser {
		p := gopacket.NewDecodingLayerParser(first)
		p.IgnoreUnsupported = true
		p.SetDecodingLayerContainer(gopacket.DecodingLayerArray(nil).Put(layer))
		return p
	}
	d.onlyTCP = newParser(layers.LayerTypeTCP, &d.tcp)
	d.onlyUDP = newParser(layers.LayerTypeUDP, &d.udp)
	d.decoded = make([]gopacket.LayerType, 0, 1)
}

// Decode fills seg from an IP packet, which seg borrows. On an error, which says
// that the packet is not consistent, seg is not valid.
func (d *Decoder) Decode(packet []byte, seg *Segment) error {
	if d.onlyTCP == nil {
		d.init()
	}
	var h ip.Header
	if err := h.ParseShallow(packet); err != nil {
		return err
	}
	switch {
	case h.Total() != len(packet):
		return errIPLength
	case h.Version == 4 && !optionsFit(packet[ip.MinIPv4:h.Len], 3):
		return errIPv4Options
	}
	*seg = Segment{Packet: packet}
	seg.HeaderLen = h.Len
	seg.Fragment = h.Fragment != ip.Whole
	seg.Key.set(&h)
	if seg.Fragment {
		return nil
	}
	if err := checkTransport(packet[seg.HeaderLen:], seg); err != nil {
		return err
	}
	switch {
	case seg.TransportLen == 0:
		return nil
	case seg.Key.Proto == ip.TCP:
		return d.decode(d.onlyTCP, seg)
	}
	return d.decode(d.onlyUDP, seg)
}

// decode has gopacket read a transport header that was checked.
func (d *Decoder) decode(p *gopacket.DecodingLayerParser, seg *Segment) error {
	if err := p.DecodeLayers(seg.Packet[seg.HeaderLen:], &d.decoded); err != nil {
		return fmt.Errorf("%w: %w", errDisagree, err)
	}
	if p.Truncated || len(d.decoded) != 1 || !d.fill(seg) {
		return errDisagree
	}
	return nil
}

// fill copies what gopacket found, and says whether it agrees with the checks.
func (d *Decoder) fill(seg *Segment) bool {
	src, dst, payload := uint16(d.udp.SrcPort), uint16(d.udp.DstPort), len(d.udp.Payload)
	if seg.Key.Proto == ip.TCP {
		src, dst, payload = uint16(d.tcp.SrcPort), uint16(d.tcp.DstPort), len(d.tcp.Payload)
		seg.Seq = d.tcp.Seq
		seg.Ack = d.tcp.Ack
		seg.Flags = d.tcp.Contents[13] // the flags in one byte, which gopacket takes apart
	}
	return src == seg.Key.SrcPort && dst == seg.Key.DstPort && payload == len(seg.Payload())
}

// checkTransport finds the end of the TCP or UDP header in b, the rest of the
// packet.
func checkTransport(b []byte, seg *Segment) error {
	switch seg.Key.Proto {
	case ip.TCP: // RFC 9293, section 3.1
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
	case ip.UDP: // RFC 768
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
// shortest is the least length of an option that has a length; for IPv4 it is one
// more than RFC 791 asks for, which has no option that is empty.
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
