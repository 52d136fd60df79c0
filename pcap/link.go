package pcap

import (
	"encoding/binary"
	"math/bits"
)

// skipShort stands for a header that ends before it is complete. Whether the
// capture or the sender cut it short is for extractIP to tell.
const skipShort = numSkipReasons

// EtherTypes.
const (
	etherIPv4         = 0x0800
	etherVLAN         = 0x8100 // IEEE 802.1Q
	etherIPv6         = 0x86dd
	etherMPLS         = 0x8847 // RFC 3032
	etherMPLSUpstream = 0x8848 // RFC 5332
	etherPPPoE        = 0x8864 // RFC 2516, session stage
	etherQinQ         = 0x88a8 // IEEE 802.1ad
	etherQinQOld      = 0x9100 // the same before there was a standard
	etherQinQOld2     = 0x9200
)

// stripLink returns what begins with the IP packet in a frame of the given link
// type, borrowed from it, or why there is none.
func stripLink(link LinkType, b []byte) ([]byte, SkipReason) {
	switch link {
	case LinkEthernet:
		return stripEthernet(b)
	case LinkRaw, LinkRawBSD, LinkRawOpenBSD, LinkIPv4, LinkIPv6:
		return b, SkipNone
	case LinkNull, LinkLoop:
		return stripLoopback(b)
	case LinkSLL:
		return stripSLL(b)
	case LinkSLL2:
		return stripSLL2(b)
	case LinkWiFi:
		return stripWiFi(b)
	case LinkRadiotap:
		return stripRadiotap(b)
	case LinkPPI:
		return stripPPI(b)
	case LinkPKTAP, LinkUser2:
		return stripPKTAP(b)
	case LinkNFLOG:
		return stripNFLOG(b)
	case LinkPPP, LinkPPPHDLC, LinkCiscoHDLC:
		return stripHDLC(b)
	case LinkPPPD, LinkPPPDir:
		return stripPPPD(b)
	case LinkPPPoE:
		return stripPPPoE(b)
	case LinkFrameRelay:
		return stripFrameRelay(b)
	}
	return nil, SkipUnsupportedLink
}

// stripEthernet: destination (6), source (6), EtherType (2).
func stripEthernet(b []byte) ([]byte, SkipReason) {
	if len(b) < 14 {
		return nil, skipShort
	}
	return stripEtherType(binary.BigEndian.Uint16(b[12:]), b[14:])
}

// stripEtherType takes off what may stand between an EtherType and IP, in any
// order and depth: each round consumes at least four bytes.
func stripEtherType(typ uint16, b []byte) ([]byte, SkipReason) {
	for {
		switch typ {
		case etherIPv4, etherIPv6:
			return b, SkipNone
		case etherVLAN, etherQinQ, etherQinQOld, etherQinQOld2: // tag (2), EtherType (2)
			if len(b) < 4 {
				return nil, skipShort
			}
			typ, b = binary.BigEndian.Uint16(b[2:]), b[4:]
		case etherMPLS, etherMPLSUpstream:
			return stripMPLS(b)
		case etherPPPoE:
			return stripPPPoE(b)
		default:
			if typ <= 1500 { // IEEE 802.3: a length, and LLC follows
				return stripLLC(b)
			}
			return nil, SkipNotIP
		}
	}
}

// stripMPLS takes off labels up to the bottom of the stack. Nothing says what
// lies below: by convention the first four bits do (RFC 4928 section 3), and a
// pseudowire begins with 0 (RFC 4385).
func stripMPLS(b []byte) ([]byte, SkipReason) {
	for {
		if len(b) < 4 {
			return nil, skipShort
		}
		bottom := b[2]&1 != 0
		b = b[4:]
		if bottom {
			break
		}
	}
	if len(b) == 0 {
		return nil, skipShort
	}
	if v := b[0] >> 4; v != 4 && v != 6 {
		return nil, SkipNotIP
	}
	return b, SkipNone
}

// stripLLC: service access points (2) and control (1); SNAP adds an
// organisation (3) and an EtherType (2) (RFC 1042).
func stripLLC(b []byte) ([]byte, SkipReason) {
	if len(b) < 3 {
		return nil, skipShort
	}
	if [3]byte(b) == [3]byte{0x06, 0x06, 0x03} { // IP by its access point
		return b[3:], SkipNone
	}
	if !isSNAP(b) {
		return nil, SkipNotIP
	}
	if len(b) < 8 {
		return nil, skipShort
	}
	// 00-00-f8 is the bridge-tunnel encapsulation of IEEE 802.1H.
	if oui := [3]byte(b[3:]); oui != [3]byte{} && oui != [3]byte{0, 0, 0xf8} {
		return nil, SkipNotIP
	}
	typ := binary.BigEndian.Uint16(b[6:])
	if typ <= 1500 {
		return nil, SkipBadLinkLayer // SNAP within SNAP
	}
	return stripEtherType(typ, b[8:])
}

func isSNAP(b []byte) bool { return len(b) >= 3 && [3]byte(b) == [3]byte{0xaa, 0xaa, 0x03} }

// stripLoopback: an address family (4), for NULL in the byte order of the
// machine that captured, for LOOP in network byte order. Families are small
// numbers, so the order shows, and files with the wrong one are read too.
func stripLoopback(b []byte) ([]byte, SkipReason) {
	if len(b) < 4 {
		return nil, skipShort
	}
	family := binary.BigEndian.Uint32(b)
	if family > 0xffff {
		family = bits.ReverseBytes32(family)
	}
	switch family {
	case 2, // AF_INET, the same everywhere
		10,         // AF_INET6 on Linux
		23,         // Windows
		24, 28, 30: // NetBSD and OpenBSD, FreeBSD, macOS
		return b[4:], SkipNone
	}
	return nil, SkipNotIP
}

// stripSLL: packet type (2), ARPHRD type (2), address length (2), address (8),
// protocol (2).
func stripSLL(b []byte) ([]byte, SkipReason) {
	if len(b) < 16 {
		return nil, skipShort
	}
	return stripCooked(binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint16(b[14:]), b[16:])
}

// stripSLL2: protocol (2), reserved (2), interface index (4), ARPHRD type (2),
// packet type (1), address length (1), address (8).
func stripSLL2(b []byte) ([]byte, SkipReason) {
	if len(b) < 20 {
		return nil, skipShort
	}
	return stripCooked(binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b), b[20:])
}

// stripCooked tells what the protocol field means, which depends on the type of
// the interface and is an EtherType for all but a few.
func stripCooked(arphrd, proto uint16, b []byte) ([]byte, SkipReason) {
	const (
		arphrdFrameRelay = 770
		arphrdIPGRE      = 778
		arphrdRadiotap   = 803
		arphrdNetlink    = 824
		protoLLC         = 4      // ETH_P_802_2
		greEthernet      = 0x6558 // transparent Ethernet bridging (RFC 7637)
		grePPP           = 0x880b // RFC 2637
	)
	switch {
	case arphrd == arphrdFrameRelay:
		return stripFrameRelay(b)
	case arphrd == arphrdRadiotap:
		return stripRadiotap(b)
	case arphrd == arphrdNetlink:
		return nil, SkipNotIP
	// GRE's protocol types are EtherTypes (RFC 2784 section 2.4) and two more.
	case arphrd == arphrdIPGRE && proto == greEthernet:
		return stripEthernet(b)
	case arphrd == arphrdIPGRE && proto == grePPP:
		return stripPPP(b)
	case arphrd != arphrdIPGRE && proto == protoLLC:
		return stripLLC(b)
	case proto <= 1500: // other ETH_P_ numbers below the EtherTypes: Novell 802.3, CAN, ...
		return nil, SkipNotIP
	}
	return stripEtherType(proto, b)
}
