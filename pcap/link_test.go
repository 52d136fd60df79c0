package pcap

import (
	"bytes"
	"slices"
	"testing"
)

func TestLinkTypes(t *testing.T) {
	const (
		snap     = "aaaa03 000000 "
		wifi     = "0800 0000 020000000001 020000000002 020000000003 1000 " // data, not to or from a distribution system
		qos      = "8800 0000 020000000001 020000000002 020000000003 1000 0000 "
		radiotap = "00 00 0c00 04800000 02 00 18 00 " // rate, padding, 2 bytes more
		sll      = "0000 0001 0006 0200000000010000 "
		gre      = "0000 030a 0000 0000000000000000 "
		pktap    = "24000000 01000000 "
		ifname   = "656e300000000000 0000000000000000 0000000000000000 "
		pppoe    = "11 00 0007 001a "
		label    = "00010000 " // not the bottom of the stack
		bottom   = "000101ff "
	)
	for _, tt := range []struct {
		name  string
		link  LinkType
		frame string
		want  []byte
		skip  SkipReason
	}{
		{"ethernet", LinkEthernet, macHex + "0800" + ip4Hex, ip4, 0},
		{"ethernet, padded", LinkEthernet, macHex + "0800" + ip4Hex + "0000 0000 0000 0000", ip4, 0},
		{"ethernet, IPv6, padded", LinkEthernet, macHex + "86dd" + ip6Hex + "ffff", ip6, 0},
		{"ethernet, ARP", LinkEthernet, macHex + "0806 0001 0800 06 04 0001", nil, SkipNotIP},
		{"ethernet, cut short", LinkEthernet, macHex + "08", nil, SkipBadLinkLayer},
		{"ethernet, empty", LinkEthernet, "", nil, SkipBadLinkLayer},
		{"ethernet, nothing after it", LinkEthernet, macHex + "0800", nil, SkipBadLinkLayer},
		{"ethernet, 802.3 with SNAP", LinkEthernet, macHex + "0020" + snap + "0800" + ip4Hex, ip4, 0},
		{"ethernet, 802.3 with SNAP of 802.1H", LinkEthernet, macHex + "0020 aaaa03 0000f8 0800" + ip4Hex, ip4, 0},
		{"ethernet, 802.3 with SNAP of Cisco", LinkEthernet, macHex + "0020 aaaa03 00000c 2000" + ip4Hex, nil, SkipNotIP},
		{"ethernet, SNAP in SNAP", LinkEthernet, macHex + "0020" + snap + "0020" + snap + "0800" + ip4Hex, nil, SkipBadLinkLayer},
		{"ethernet, 802.3 with IP's access point", LinkEthernet, macHex + "001b 060603" + ip4Hex, ip4, 0},
		{"ethernet, spanning tree", LinkEthernet, macHex + "0026 424203 0000000000", nil, SkipNotIP},
		{"802.1Q", LinkEthernet, macHex + "8100 0fa1 0800" + ip4Hex, ip4, 0},
		{"802.1Q, ARP", LinkEthernet, macHex + "8100 0fa1 0806 0001", nil, SkipNotIP},
		{"802.1Q, cut short", LinkEthernet, macHex + "8100 0fa1 08", nil, SkipBadLinkLayer},
		{"802.1ad", LinkEthernet, macHex + "88a8 0001 8100 0002 86dd" + ip6Hex, ip6, 0},
		{"old QinQ", LinkEthernet, macHex + "9100 0001 8100 0002 0800" + ip4Hex, ip4, 0},
		{"VLAN over 802.3", LinkEthernet, macHex + "8100 0001 0020" + snap + "0800" + ip4Hex, ip4, 0},
		{"MPLS", LinkEthernet, macHex + "8847" + bottom + ip4Hex, ip4, 0},
		{"MPLS, three labels", LinkEthernet, macHex + "8848" + label + label + bottom + ip6Hex, ip6, 0},
		{"MPLS, no bottom", LinkEthernet, macHex + "8847" + label + label, nil, SkipBadLinkLayer},
		{"MPLS, nothing below", LinkEthernet, macHex + "8847" + bottom, nil, SkipBadLinkLayer},
		{"MPLS, pseudowire", LinkEthernet, macHex + "8847" + bottom + "00000000" + macHex + "0800" + ip4Hex, nil, SkipNotIP},
		{"VLAN, MPLS", LinkEthernet, macHex + "8100 0001 8847" + bottom + ip4Hex, ip4, 0},
		{"PPPoE", LinkEthernet, macHex + "8864" + pppoe + "0021" + ip4Hex, ip4, 0},
		{"PPPoE, IPv6", LinkEthernet, macHex + "8864" + pppoe + "0057" + ip6Hex, ip6, 0},
		{"PPPoE, compressed protocol", LinkEthernet, macHex + "8864" + pppoe + "21" + ip4Hex, ip4, 0},
		{"PPPoE, MPLS", LinkEthernet, macHex + "8864" + pppoe + "0281" + bottom + ip4Hex, ip4, 0},
		{"PPPoE, link control", LinkEthernet, macHex + "8864" + pppoe + "c021 0901 0008", nil, SkipNotIP},
		{"PPPoE, discovery", LinkEthernet, macHex + "8863 1109 0000 0004 0101 0000", nil, SkipNotIP},
		{"PPPoE, bad version", LinkEthernet, macHex + "8864 21 00 0007 001a 0021" + ip4Hex, nil, SkipBadLinkLayer},
		{"PPPoE, cut short", LinkEthernet, macHex + "8864 11 00 0007 001a 00", nil, SkipBadLinkLayer},
		{"PPPoE, discovery in a session's frame", LinkEthernet, macHex + "8864 11 09 0000 0004 0101 0000", nil, SkipNotIP},
		{"QinQ, PPPoE", LinkEthernet, macHex + "88a8 0001 8100 0002 8864" + pppoe + "0021" + ip4Hex, ip4, 0},

		{"raw", LinkRaw, ip4Hex, ip4, 0},
		{"raw, IPv6", LinkRaw, ip6Hex, ip6, 0},
		{"raw 12", LinkRawBSD, ip4Hex, ip4, 0},
		{"raw 14", LinkRawOpenBSD, ip6Hex, ip6, 0},
		{"IPv4", LinkIPv4, ip4Hex, ip4, 0},
		{"IPv6", LinkIPv6, ip6Hex, ip6, 0},

		{"null, little-endian", LinkNull, "02000000" + ip4Hex, ip4, 0},
		{"null, big-endian", LinkNull, "00000002" + ip4Hex, ip4, 0},
		{"null, macOS IPv6", LinkNull, "1e000000" + ip6Hex, ip6, 0},
		{"null, FreeBSD IPv6, big-endian", LinkNull, "0000001c" + ip6Hex, ip6, 0},
		{"null, AppleTalk", LinkNull, "10000000 01020304", nil, SkipNotIP},
		{"null, cut short", LinkNull, "020000", nil, SkipBadLinkLayer},
		{"loop", LinkLoop, "00000018" + ip6Hex, ip6, 0},

		{"cooked", LinkSLL, sll + "0800" + ip4Hex, ip4, 0},
		{"cooked, padded", LinkSLL, sll + "86dd" + ip6Hex + "00", ip6, 0},
		{"cooked, VLAN", LinkSLL, sll + "8100 0001 0800" + ip4Hex, ip4, 0},
		{"cooked, ARP", LinkSLL, sll + "0806 0001", nil, SkipNotIP},
		{"cooked, LLC", LinkSLL, sll + "0004" + snap + "0800" + ip4Hex, ip4, 0},
		{"cooked, CAN", LinkSLL, sll + "000c 01020304", nil, SkipNotIP},
		{"cooked, GRE, IPv6", LinkSLL, gre + "86dd" + ip6Hex, ip6, 0},
		{"cooked, GRE, IPv4", LinkSLL, gre + "0800" + ip4Hex, ip4, 0},
		{"cooked, GRE, Ethernet", LinkSLL, gre + "6558" + macHex + "0800" + ip4Hex, ip4, 0},
		{"cooked, GRE, PPP", LinkSLL, gre + "880b ff03 0021" + ip4Hex, ip4, 0},
		{"cooked, GRE, keepalive", LinkSLL, gre + "0000", nil, SkipNotIP},
		{"cooked, GRE, 4", LinkSLL, gre + "0004" + snap + "0800" + ip4Hex, nil, SkipNotIP}, // no ETH_P_802_2 there
		{"cooked, GRE over IPv6", LinkSLL, "0000 0337 0010 0000000000000000 86dd" + ip6Hex, ip6, 0},
		{"cooked, SIT", LinkSLL, "0000 0308 0004 0000000000000000 86dd" + ip6Hex, ip6, 0},
		{"cooked, IP in IP", LinkSLL, "0000 0300 0004 0000000000000000 0800" + ip4Hex, ip4, 0},
		{"cooked, IP in IPv6", LinkSLL, "0000 0301 0010 0000000000000000 0800" + ip4Hex, ip4, 0},
		{"cooked, no link layer", LinkSLL, "0000 fffe 0000 0000000000000000 0800" + ip4Hex, ip4, 0},
		{"cooked, PPP", LinkSLL, "0000 0200 0000 0000000000000000 0800" + ip4Hex, ip4, 0},
		{"cooked, Frame Relay", LinkSLL, "0000 0302 0000 0000000000000000 0000 1841 03cc" + ip4Hex, ip4, 0},
		{"cooked, radiotap", LinkSLL, "0000 0323 0000 0000000000000000 0019" + radiotap + wifi + snap + "0800" + ip4Hex, ip4, 0},
		{"cooked v2, GRE", LinkSLL2, "86dd 0000 00000001 030a 00 00 0000000000000000" + ip6Hex, ip6, 0},
		{"cooked, netlink", LinkSLL, "0000 0338 0000 0000000000000000 0800" + ip4Hex, nil, SkipNotIP},
		{"cooked, cut short", LinkSLL, "0000 0001", nil, SkipBadLinkLayer},
		{"cooked v2", LinkSLL2, "0800 0000 00000001 0001 00 06 0200000000010000" + ip4Hex, ip4, 0},
		{"cooked v2, IPv6", LinkSLL2, "86dd 0000 00000001 0304 04 06 0200000000010000" + ip6Hex, ip6, 0},
		{"cooked v2, ARP", LinkSLL2, "0806 0000 00000001 0001 00 06 0200000000010000 0001", nil, SkipNotIP},
		{"cooked v2, cut short", LinkSLL2, "0800 0000 00000001 0001 00 06 02000000000100", nil, SkipBadLinkLayer},

		{"802.11", LinkWiFi, wifi + snap + "0800" + ip4Hex, ip4, 0},
		{"802.11, frame check sequence", LinkWiFi, wifi + snap + "86dd" + ip6Hex + "01020304", ip6, 0},
		{"802.11, LLC of EAPOL", LinkWiFi, wifi + snap + "888e 0103", nil, SkipNotIP},
		{"802.11, VLAN", LinkWiFi, wifi + snap + "8100 0001 0800" + ip4Hex, ip4, 0},
		{"802.11, QoS", LinkWiFi, qos + snap + "0800" + ip4Hex, ip4, 0},
		{"802.11, QoS, header padded", LinkWiFi, qos + "0000" + snap + "0800" + ip4Hex, ip4, 0},
		{"802.11, QoS, HT control", LinkWiFi, "8880 0000 020000000001 020000000002 020000000003 1000 0000 01020304" + snap + "0800" + ip4Hex, ip4, 0},
		{"802.11, four addresses", LinkWiFi, "0803 0000 020000000001 020000000002 020000000003 1000 020000000004" + snap + "0800" + ip4Hex, ip4, 0},
		{"802.11, four addresses, QoS", LinkWiFi, "8803 0000 020000000001 020000000002 020000000003 1000 020000000004 0000" + snap + "0800" + ip4Hex, ip4, 0},
		{"802.11, beacon", LinkWiFi, "8000 0000 ffffffffffff 020000000002 020000000003 1000", nil, SkipNotIP},
		{"802.11, acknowledgement", LinkWiFi, "d400 0000 020000000001", nil, SkipNotIP},
		{"802.11, null function", LinkWiFi, "4801 0000 020000000001 020000000002 020000000003 1000", nil, SkipNotIP},
		{"802.11, protected", LinkWiFi, "0840 0000 020000000001 020000000002 020000000003 1000" + snap + "0800" + ip4Hex, nil, SkipEncrypted},
		{"802.11, first fragment", LinkWiFi, "0804 0000 020000000001 020000000002 020000000003 1000" + snap + "0800" + ip4Hex, nil, SkipUnassembled},
		{"802.11, last fragment", LinkWiFi, "0800 0000 020000000001 020000000002 020000000003 1100 deadbeef", nil, SkipUnassembled},
		{"802.11, aggregate", LinkWiFi, "8800 0000 020000000001 020000000002 020000000003 1000 8000 020000000001", nil, SkipUnassembled},
		{"802.11, unknown version", LinkWiFi, "0900 0000 020000000001 020000000002 020000000003 1000", nil, SkipBadLinkLayer},
		{"802.11, cut short", LinkWiFi, "0800 0000 020000000001", nil, SkipBadLinkLayer},
		{"radiotap", LinkRadiotap, radiotap + qos + snap + "0800" + ip4Hex + "01020304", ip4, 0},
		{"radiotap, unknown version", LinkRadiotap, "01 00 0800 00000000" + wifi, nil, SkipBadLinkLayer},
		{"radiotap, cut short", LinkRadiotap, "00 00 1000 00000000 00", nil, SkipBadLinkLayer},
		{"PPI, 802.11", LinkPPI, "00 00 1000 69000000 0200 0400 01020304" + wifi + snap + "0800" + ip4Hex, ip4, 0},
		{"PPI, Ethernet", LinkPPI, "00 00 0800 01000000" + macHex + "0800" + ip4Hex, ip4, 0},
		{"PPI, USB", LinkPPI, "00 00 0800 bd000000 0000", nil, SkipUnsupportedLink},
		{"PPI within PPI", LinkPPI, "00 00 0800 c0000000 00 00 0800 01000000", nil, SkipBadLinkLayer},
		{"PPI, PKTAP", LinkPPI, "00 00 0800 02010000" + pktap + "01000000", nil, SkipBadLinkLayer},
		{"PPI, cut short", LinkPPI, "00 00 0900 01000000", nil, SkipBadLinkLayer},

		{"PPP", LinkPPP, "ff03 0021" + ip4Hex, ip4, 0},
		{"PPP, bare", LinkPPP, "0057" + ip6Hex, ip6, 0},
		{"PPP, compressed", LinkPPP, "21" + ip4Hex, ip4, 0},
		{"PPP, framed and compressed", LinkPPP, "ff03 57" + ip6Hex, ip6, 0},
		{"PPP, MPLS", LinkPPP, "ff03 0281" + bottom + ip4Hex, ip4, 0},
		{"PPP, link control", LinkPPP, "ff03 c021 0901 0008", nil, SkipNotIP},
		{"PPP, empty", LinkPPP, "", nil, SkipBadLinkLayer},
		{"PPP, nothing after it", LinkPPP, "ff03 0021", nil, SkipBadLinkLayer},
		{"PPP in HDLC", LinkPPPHDLC, "ff03 0021" + ip4Hex, ip4, 0},
		{"PPP in HDLC, Cisco's", LinkPPPHDLC, "0f00 0800" + ip4Hex, ip4, 0},
		{"PPP of pppd, in", LinkPPPD, "0003 0021" + ip4Hex, ip4, 0},
		{"PPP of pppd, out, compressed", LinkPPPD, "0103 57" + ip6Hex, ip6, 0},
		{"PPP of pppd, cut short", LinkPPPD, "01", nil, SkipBadLinkLayer},
		{"PPP with direction", LinkPPPDir, "01 ff03 0021" + ip4Hex, ip4, 0},
		{"PPP with direction, bare", LinkPPPDir, "00 0021" + ip4Hex, ip4, 0},
		{"PPP over Ethernet", LinkPPPoE, pppoe + "0021" + ip4Hex, ip4, 0},
		{"PPP over Ethernet, discovery", LinkPPPoE, "11 09 0000 0004 0101 0000", nil, SkipNotIP},
		{"HDLC", LinkCiscoHDLC, "0f00 0800" + ip4Hex, ip4, 0},
		{"HDLC, broadcast, IPv6", LinkCiscoHDLC, "8f00 86dd" + ip6Hex, ip6, 0},
		{"HDLC, MPLS", LinkCiscoHDLC, "0f00 8847" + bottom + ip4Hex, ip4, 0},
		{"HDLC, SLARP", LinkCiscoHDLC, "8f00 8035 00000002", nil, SkipNotIP},
		{"HDLC, bridged spanning tree", LinkCiscoHDLC, "0f00 0026 424203", nil, SkipNotIP},
		{"HDLC, PPP", LinkCiscoHDLC, "ff03 0021" + ip4Hex, ip4, 0},
		{"HDLC, cut short", LinkCiscoHDLC, "0f00 08", nil, SkipBadLinkLayer},

		{"Frame Relay", LinkFrameRelay, "1841 03cc" + ip4Hex, ip4, 0},
		{"Frame Relay, IPv6, padded", LinkFrameRelay, "1841 03008e" + ip6Hex, ip6, 0},
		{"Frame Relay, address of three bytes", LinkFrameRelay, "184081 03cc" + ip4Hex, ip4, 0},
		{"Frame Relay, address of four bytes", LinkFrameRelay, "18404081 03cc" + ip4Hex, ip4, 0},
		{"Frame Relay, address without an end", LinkFrameRelay, "1840404080 03cc" + ip4Hex, nil, SkipBadLinkLayer},
		{"Frame Relay, address of one byte", LinkFrameRelay, "19 41 03cc" + ip4Hex, nil, SkipBadLinkLayer},
		{"Frame Relay, SNAP", LinkFrameRelay, "1841 030080 000000 0800" + ip4Hex, ip4, 0},
		{"Frame Relay, bridged Ethernet", LinkFrameRelay, "1841 030080 0080c2 0007" + macHex + "0800" + ip4Hex, ip4, 0},
		{"Frame Relay, bridged FDDI", LinkFrameRelay, "1841 030080 0080c2 0004" + ip4Hex, nil, SkipNotIP},
		{"Frame Relay, SNAP cut short", LinkFrameRelay, "1841 030080 000000 08", nil, SkipBadLinkLayer},
		{"Frame Relay, Cisco's", LinkFrameRelay, "1841 0800" + ip4Hex, ip4, 0},
		{"Frame Relay, management", LinkFrameRelay, "0001 0308 0075", nil, SkipNotIP},
		{"Frame Relay, no control", LinkFrameRelay, "1841 0102 0304", nil, SkipNotIP},
		{"Frame Relay, cut short", LinkFrameRelay, "1841 03", nil, SkipBadLinkLayer},
		{"Frame Relay, empty", LinkFrameRelay, "", nil, SkipBadLinkLayer},

		{"NFLOG", LinkNFLOG, "02 00 0001 0800 0100 0800 0300 1c00 0900" + ip4Hex, ip4, 0},
		{"NFLOG, big-endian", LinkNFLOG, "0a 00 0001 0008 0001 86dd 0300 0030 0009" + ip6Hex, ip6, 0},
		{"NFLOG, payload alone, padded", LinkNFLOG, "02 00 0001 1c00 0900" + ip4Hex + "00", ip4, 0},
		{"NFLOG, a prefix of odd length", LinkNFLOG, "02 00 0001 0700 0a00 616200 00 1c00 0900" + ip4Hex, ip4, 0},
		{"NFLOG, bridge", LinkNFLOG, "07 00 0001 0800 0100 0800 0300 1c00 0900" + ip4Hex, ip4, 0},
		{"NFLOG, bridge, ARP", LinkNFLOG, "07 00 0001 0800 0100 0806 0300 0800 0900 00010800", nil, SkipNotIP},
		{"NFLOG, bridge, unknown", LinkNFLOG, "07 00 0001 1c00 0900" + ip4Hex, nil, SkipNotIP},
		{"NFLOG, no payload", LinkNFLOG, "02 00 0001 0800 0100 0800 0300", nil, SkipBadLinkLayer},
		{"NFLOG, unknown version", LinkNFLOG, "02 01 0001 1c00 0900" + ip4Hex, nil, SkipBadLinkLayer},
		{"NFLOG, a length below its head's", LinkNFLOG, "02 00 0001 0300 0100 1c00 0900" + ip4Hex, nil, SkipBadLinkLayer},
		{"NFLOG, a length of zero", LinkNFLOG, "02 00 0001 0000 0100", nil, SkipBadLinkLayer},
		{"NFLOG, a length beyond the frame", LinkNFLOG, "02 00 0001 ffff 0900" + ip4Hex, nil, SkipBadLinkLayer},
		{"NFLOG, cut short", LinkNFLOG, "02 00 0001 0800", nil, SkipBadLinkLayer},

		{"PKTAP, Ethernet", LinkPKTAP, pktap + "01000000" + ifname + macHex + "0800" + ip4Hex, ip4, 0},
		{"PKTAP, loopback, longer header", LinkPKTAP, "2c000000 01000000 00000000" + ifname + "0000000000000000 1e000000" + ip6Hex, ip6, 0},
		{"PKTAP, raw, big-endian", LinkPKTAP, "00000024 00000001 0000000c" + ifname + ip4Hex, ip4, 0},
		{"PKTAP, as USER2", LinkUser2, pktap + "01000000" + ifname + macHex + "0800" + ip4Hex, ip4, 0},
		{"PKTAP, no packet", LinkPKTAP, "24000000 00000000 01000000" + ifname, nil, SkipNotIP},
		{"PKTAP, USB", LinkPKTAP, pktap + "bd000000" + ifname, nil, SkipUnsupportedLink},
		{"PKTAP, no link type", LinkPKTAP, pktap + "00000100" + ifname + ip4Hex, nil, SkipUnsupportedLink},
		{"PKTAP within PKTAP", LinkPKTAP, pktap + "02010000" + ifname + pktap, nil, SkipBadLinkLayer},
		{"PKTAP, PPI", LinkPKTAP, pktap + "c0000000" + ifname + "00 00 0800 01000000", nil, SkipBadLinkLayer},
		{"PKTAP, a length below its own", LinkPKTAP, "23000000 01000000 01000000" + ifname + ip4Hex, nil, SkipBadLinkLayer},
		{"PKTAP, a length beyond the frame", LinkPKTAP, "ffff0000 01000000 01000000" + ifname + ip4Hex, nil, SkipBadLinkLayer},
		{"PKTAP, cut short", LinkPKTAP, "24000000", nil, SkipBadLinkLayer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			frame := hexBytes(tt.frame)
			got, skip := extractIP(tt.link, frame, int64(len(frame)))
			if !bytes.Equal(got, tt.want) || skip != tt.skip {
				t.Errorf("got % x, %v, want % x, %v", got, skip, tt.want, tt.skip)
			}
			// With every possible cut the packet is whole or skipped, and what was
			// broken only by the cut is told apart.
			for n := range frame {
				got, skip := extractIP(tt.link, frame[:n:n], int64(len(frame)))
				if skip == SkipNone && !bytes.Equal(got, tt.want) {
					t.Errorf("cut to %d bytes: got % x", n, got)
				}
				if skip == SkipNotIP && tt.name == "802.11, QoS, header padded" {
					continue // the padding cannot be told while less than three bytes follow it
				}
				if skip != SkipNone && skip != tt.skip && skip != SkipTruncated {
					t.Errorf("cut to %d bytes: got %v", n, skip)
				}
			}
		})
	}
}

func TestLinkTypeString(t *testing.T) {
	for l, want := range map[LinkType]string{LinkSLL2: "276 (LINUX_SLL2)", 9999: "9999"} {
		if got := l.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, l := range supportedLinks {
		if _, ok := linkNames[l]; !ok {
			t.Errorf("link type %d has no name", l)
		}
		if _, skip := stripLink(l, nil); skip == SkipUnsupportedLink {
			t.Errorf("link type %v is not supported", l)
		}
	}
}

func TestTrimIP(t *testing.T) {
	edit := func(b []byte, off int, v ...byte) []byte {
		b = slices.Clone(b)
		copy(b[off:], v)
		return b
	}
	tail := func(b []byte) []byte { return append(slices.Clone(b), 1, 2, 3) }
	long := func(b []byte, n int) []byte { // with a length field of 0
		at := map[byte]int{4: 2, 6: 4}[b[0]>>4]
		return append(edit(b, at, 0, 0), make([]byte, n-len(b))...)
	}
	const whole, cut = false, true
	for _, tt := range []struct {
		name string
		in   []byte
		cut  bool
		want int // bytes of in
		skip SkipReason
	}{
		{"exact", ip4, whole, len(ip4), 0},
		{"exact, only padding was cut", ip4, cut, len(ip4), 0},
		{"longer by its header than what is there", edit(ip4, 2, 0, 25), whole, 0, SkipTruncated},
		{"cut", ip4[:23], cut, 0, SkipTruncated},
		{"cut in the header", ip4[:19], cut, 0, SkipTruncated},
		{"header cut short", ip4[:19], whole, 0, SkipBadIP},
		{"total length 0", tail(edit(ip4, 2, 0, 0)), whole, len(ip4) + 3, 0},
		{"total length 0, cut", edit(ip4, 2, 0, 0), cut, 0, SkipTruncated},
		{"total length below 20", tail(edit(ip4, 2, 0, 19)), whole, len(ip4) + 3, 0},
		{"total length below the header's", tail(edit(ip4, 0, 0x46, 0, 0, 20)), whole, len(ip4) + 3, 0},
		{"header length below 20", tail(edit(ip4, 0, 0x41)), whole, len(ip4), 0},
		{"IPv6", tail(ip6), whole, len(ip6), 0},
		{"IPv6, cut", ip6[:43], cut, 0, SkipTruncated},
		{"IPv6, header cut short", ip6[:39], whole, 0, SkipBadIP},
		{"IPv6, jumbogram", tail(edit(ip6, 4, 0, 0, 0)), whole, len(ip6) + 3, 0},
		{"IPv6, jumbogram, cut", edit(ip6, 4, 0, 0, 0), cut, 0, SkipTruncated},
		{"IPv6, nothing in it", edit(ip6, 4, 0, 0, 59), whole, 40, 0},
		{"total length 0, as long as a packet can be", long(ip4, MaxIPv4), whole, MaxIPv4, 0},
		{"total length 0, longer", long(ip4, MaxIPv4+1), whole, 0, SkipTooLong},
		{"IPv6, as long as a packet can be", edit(long(ip6, MaxIPv6), 4, 0xff, 0xff), whole, MaxIPv6, 0},
		{"IPv6, jumbogram, as long as a packet can be", edit(long(ip6, MaxIPv6), 6, 0), whole, MaxIPv6, 0},
		{"IPv6, jumbogram, longer", edit(long(ip6, MaxIPv6+1), 6, 0), whole, 0, SkipTooLong},
		{"IPv6, as long as a packet can be, padded", edit(long(ip6, MaxIPv6+4), 4, 0xff, 0xff), whole, MaxIPv6, 0},
		{"version 5", edit(ip4, 0, 0x55), whole, 0, SkipBadIP},
		{"version 0", make([]byte, 40), cut, 0, SkipBadIP},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, skip := trimIP(tt.in, tt.cut)
			if skip != tt.skip || !bytes.Equal(got, tt.in[:tt.want]) {
				t.Errorf("got % x, %v, want %d bytes, %v", got, skip, tt.want, tt.skip)
			}
			if cap(got) > len(got) {
				t.Errorf("%d bytes beyond the packet are within reach", cap(got)-len(got))
			}
		})
	}
}
