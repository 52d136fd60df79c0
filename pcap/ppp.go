package pcap

import "encoding/binary"

// The first bytes of frames in HDLC-like framing.
const (
	hdlcAllStations = 0xff // PPP, RFC 1662 section 3.1
	hdlcControl     = 0x03 // unnumbered information, here and in Frame Relay
	hdlcUnicast     = 0x0f // Cisco, RFC 1547 section 4.3.1
	hdlcBroadcast   = 0x8f
)

// stripHDLC takes off Cisco's framing, address (1), control (1), EtherType (2), or
// PPP's: the first byte tells them apart, since PPP has no protocols of that
// number (RFC 1661 section 2).
func stripHDLC(b []byte) ([]byte, SkipReason) {
	if len(b) < 4 {
		return nil, skipShort
	}
	if b[0] != hdlcUnicast && b[0] != hdlcBroadcast {
		return stripPPP(b)
	}
	typ := binary.BigEndian.Uint16(b[2:])
	if typ <= 1500 {
		return nil, SkipNotIP
	}
	return stripEtherType(typ, b[4:])
}

// stripPPPD is PPP as pppd captures it: the address gave its place to a byte that
// says which way the frame went, and the control field is there or not.
func stripPPPD(b []byte) ([]byte, SkipReason) {
	if len(b) < 2 {
		return nil, skipShort
	}
	if b[1] == hdlcControl {
		return stripPPPProtocol(b[2:])
	}
	return stripPPP(b[1:])
}

// stripPPP: address and control, all-stations (1) and 3 (1), unless they are left
// out (RFC 1661 section 6.6), then a protocol.
func stripPPP(b []byte) ([]byte, SkipReason) {
	if len(b) >= 2 && b[0] == hdlcAllStations && b[1] == hdlcControl {
		b = b[2:]
	}
	return stripPPPProtocol(b)
}

// stripPPPProtocol: a protocol of two bytes, or of one where the field is
// compressed (RFC 1661 section 6.5): the last byte of it is the odd one.
func stripPPPProtocol(b []byte) ([]byte, SkipReason) {
	if len(b) < 2 {
		return nil, skipShort
	}
	proto, b := uint16(b[0]), b[1:]
	if proto&1 == 0 {
		proto, b = proto<<8|uint16(b[0]), b[1:]
	}
	switch proto {
	case 0x0021, 0x0057: // IPv4, IPv6
		return b, SkipNone
	case 0x0281, 0x0283: // MPLS
		return stripMPLS(b)
	}
	return nil, SkipNotIP
}

// stripPPPoE: version and type (1), code (1), session (2), length (2), then PPP
// (RFC 2516). The length is not needed: IP has its own.
func stripPPPoE(b []byte) ([]byte, SkipReason) {
	if len(b) < 8 {
		return nil, skipShort
	}
	switch {
	case b[0] != 0x11:
		return nil, SkipBadLinkLayer
	case b[1] != 0: // discovery
		return nil, SkipNotIP
	}
	return stripPPPProtocol(b[6:])
}

// stripFrameRelay: an address of 2 to 4 bytes, whose last is the odd one, then the
// encapsulation of RFC 2427: control (1), perhaps a byte of padding, and an NLPID
// (1). Cisco's has an EtherType (2) behind the address.
func stripFrameRelay(b []byte) ([]byte, SkipReason) {
	n := 0
	for n < len(b) && b[n]&1 == 0 {
		n++
	}
	if n == 0 && len(b) > 0 || n > 3 {
		return nil, SkipBadLinkLayer
	}
	if len(b) < n+4 {
		return nil, skipShort
	}
	b = b[n+1:]
	if b[0] != hdlcControl {
		if typ := binary.BigEndian.Uint16(b); typ > 1500 {
			return stripEtherType(typ, b[2:])
		}
		return nil, SkipNotIP
	}
	if b = b[1:]; b[0] == 0 {
		b = b[1:]
	}
	switch b[0] {
	case 0xcc, 0x8e: // IPv4, IPv6 (RFC 2427 section 4, ISO/IEC TR 9577)
		return b[1:], SkipNone
	case 0x80:
		return stripFrameRelaySNAP(b[1:])
	}
	return nil, SkipNotIP
}

// stripFrameRelaySNAP: an organisation (3) and a type (2); those of 00-80-c2 say
// which kind of bridged frame follows (RFC 2427 section 4.2).
func stripFrameRelaySNAP(b []byte) ([]byte, SkipReason) {
	if len(b) < 5 {
		return nil, skipShort
	}
	typ := binary.BigEndian.Uint16(b[3:])
	switch oui := [3]byte(b); {
	case oui == [3]byte{} && typ > 1500:
		return stripEtherType(typ, b[5:])
	case oui == [3]byte{0, 0x80, 0xc2} && (typ == 1 || typ == 7): // 802.3 with its check sequence, without
		return stripEthernet(b[5:])
	}
	return nil, SkipNotIP
}
