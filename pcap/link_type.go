package pcap

import (
	"fmt"
	"slices"
	"strings"
)

// A LinkType is a link-layer header type of the registry at
// https://www.tcpdump.org/linktypes.html.
type LinkType uint16

// The link types that packets can be taken from.
const (
	LinkNull       LinkType = 0   // BSD loopback, address family in host byte order
	LinkEthernet   LinkType = 1   // Ethernet II and 802.3
	LinkPPP        LinkType = 9   // PPP, in HDLC-like framing or bare
	LinkRawBSD     LinkType = 12  // raw IP, a DLT that some programs write to files
	LinkRawOpenBSD LinkType = 14  // raw IP, the same on OpenBSD
	LinkPPPHDLC    LinkType = 50  // PPP or Cisco's, in HDLC-like framing
	LinkPPPoE      LinkType = 51  // PPP over Ethernet, without the Ethernet header
	LinkRaw        LinkType = 101 // raw IP, version told by its first bits
	LinkCiscoHDLC  LinkType = 104 // Cisco's HDLC
	LinkWiFi       LinkType = 105 // IEEE 802.11
	LinkFrameRelay LinkType = 107 // Frame Relay, RFC 2427 or Cisco's
	LinkLoop       LinkType = 108 // OpenBSD loopback, address family in network byte order
	LinkSLL        LinkType = 113 // Linux cooked capture
	LinkRadiotap   LinkType = 127 // radiotap, then 802.11
	LinkUser2      LinkType = 149 // PKTAP, as macOS wrote it before it had a number
	LinkPPPD       LinkType = 166 // PPP as pppd captures it, a direction for its address
	LinkPPI        LinkType = 192 // per-packet information, then another link type
	LinkPPPDir     LinkType = 204 // a direction, then PPP
	LinkIPv4       LinkType = 228 // raw IPv4
	LinkIPv6       LinkType = 229 // raw IPv6
	LinkNFLOG      LinkType = 239 // Linux netfilter's log
	LinkPKTAP      LinkType = 258 // macOS' tap of all interfaces, then another link type
	LinkSLL2       LinkType = 276 // Linux cooked capture v2
)

var supportedLinks = []LinkType{LinkNull, LinkEthernet, LinkPPP, LinkRawBSD, LinkRawOpenBSD, LinkPPPHDLC, LinkPPPoE,
	LinkRaw, LinkCiscoHDLC, LinkWiFi, LinkFrameRelay, LinkLoop, LinkSLL, LinkRadiotap, LinkUser2, LinkPPPD, LinkPPI,
	LinkPPPDir, LinkIPv4, LinkIPv6, LinkNFLOG, LinkPKTAP, LinkSLL2}

// linkNames covers what we read and what people are likely to bring instead.
var linkNames = map[LinkType]string{
	LinkNull:       "NULL",
	LinkEthernet:   "ETHERNET",
	6:              "IEEE802_5",
	7:              "ARCNET_BSD",
	8:              "SLIP",
	LinkPPP:        "PPP",
	10:             "FDDI",
	LinkRawBSD:     "RAW",
	LinkRawOpenBSD: "RAW",
	LinkPPPHDLC:    "PPP_HDLC",
	LinkPPPoE:      "PPP_ETHER",
	100:            "ATM_RFC1483",
	LinkRaw:        "RAW",
	LinkCiscoHDLC:  "C_HDLC",
	LinkWiFi:       "IEEE802_11",
	LinkFrameRelay: "FRELAY",
	LinkLoop:       "LOOP",
	LinkSLL:        "LINUX_SLL",
	117:            "PFLOG",
	119:            "IEEE802_11_PRISM",
	122:            "IP_OVER_FC",
	LinkRadiotap:   "IEEE802_11_RADIOTAP",
	147:            "USER0",
	LinkUser2:      "USER2",
	163:            "IEEE802_11_AVS",
	LinkPPPD:       "PPP_PPPD",
	187:            "BLUETOOTH_HCI_H4",
	189:            "USB_LINUX",
	LinkPPI:        "PPI",
	195:            "IEEE802_15_4_WITHFCS",
	197:            "ERF",
	LinkPPPDir:     "PPP_WITH_DIR",
	201:            "BLUETOOTH_HCI_H4_WITH_PHDR",
	220:            "USB_LINUX_MMAPPED",
	227:            "CAN_SOCKETCAN",
	LinkIPv4:       "IPV4",
	LinkIPv6:       "IPV6",
	230:            "IEEE802_15_4_NOFCS",
	LinkNFLOG:      "NFLOG",
	240:            "NETANALYZER",
	247:            "INFINIBAND",
	249:            "USBPCAP",
	251:            "BLUETOOTH_LE_LL",
	252:            "WIRESHARK_UPPER_PDU",
	253:            "NETLINK",
	256:            "BLUETOOTH_LE_LL_WITH_PHDR",
	LinkPKTAP:      "PKTAP",
	LinkSLL2:       "LINUX_SLL2",
	283:            "IEEE802_15_4_TAP",
}

// Supported reports whether packets can be taken from this link type.
func (l LinkType) Supported() bool { return slices.Contains(supportedLinks, l) }

// String returns the number and, where known, the registry's name.
func (l LinkType) String() string {
	if name, ok := linkNames[l]; ok {
		return fmt.Sprintf("%d (%s)", uint16(l), name)
	}
	return fmt.Sprintf("%d", uint16(l))
}

func supportedLinkTypes() string {
	names := make([]string, len(supportedLinks))
	for i, l := range supportedLinks {
		names[i] = l.String()
	}
	return strings.Join(names, ", ")
}
