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
	LinkRawBSD     LinkType = 12  // raw IP, a DLT that some programs write to files
	LinkRawOpenBSD LinkType = 14  // raw IP, the same on OpenBSD
	LinkRaw        LinkType = 101 // raw IP, version told by its first bits
	LinkWiFi       LinkType = 105 // IEEE 802.11
	LinkLoop       LinkType = 108 // OpenBSD loopback, address family in network byte order
	LinkSLL        LinkType = 113 // Linux cooked capture
	LinkRadiotap   LinkType = 127 // radiotap, then 802.11
	LinkPPI        LinkType = 192 // per-packet information, then another link type
	LinkIPv4       LinkType = 228 // raw IPv4
	LinkIPv6       LinkType = 229 // raw IPv6
	LinkSLL2       LinkType = 276 // Linux cooked capture v2
)

var supportedLinks = []LinkType{LinkNull, LinkEthernet, LinkRawBSD, LinkRawOpenBSD, LinkRaw,
	LinkWiFi, LinkLoop, LinkSLL, LinkRadiotap, LinkPPI, LinkIPv4, LinkIPv6, LinkSLL2}

// linkNames covers what we read and what people are likely to bring instead.
var linkNames = map[LinkType]string{
	LinkNull:       "NULL",
	LinkEthernet:   "ETHERNET",
	6:              "IEEE802_5",
	7:              "ARCNET_BSD",
	8:              "SLIP",
	9:              "PPP",
	10:             "FDDI",
	LinkRawBSD:     "RAW",
	LinkRawOpenBSD: "RAW",
	50:             "PPP_HDLC",
	51:             "PPP_ETHER",
	100:            "ATM_RFC1483",
	LinkRaw:        "RAW",
	104:            "C_HDLC",
	LinkWiFi:       "IEEE802_11",
	107:            "FRELAY",
	LinkLoop:       "LOOP",
	LinkSLL:        "LINUX_SLL",
	117:            "PFLOG",
	119:            "IEEE802_11_PRISM",
	122:            "IP_OVER_FC",
	LinkRadiotap:   "IEEE802_11_RADIOTAP",
	147:            "USER0",
	149:            "USER2",
	163:            "IEEE802_11_AVS",
	187:            "BLUETOOTH_HCI_H4",
	189:            "USB_LINUX",
	LinkPPI:        "PPI",
	195:            "IEEE802_15_4_WITHFCS",
	197:            "ERF",
	201:            "BLUETOOTH_HCI_H4_WITH_PHDR",
	220:            "USB_LINUX_MMAPPED",
	227:            "CAN_SOCKETCAN",
	LinkIPv4:       "IPV4",
	LinkIPv6:       "IPV6",
	230:            "IEEE802_15_4_NOFCS",
	239:            "NFLOG",
	240:            "NETANALYZER",
	247:            "INFINIBAND",
	249:            "USBPCAP",
	251:            "BLUETOOTH_LE_LL",
	252:            "WIRESHARK_UPPER_PDU",
	253:            "NETLINK",
	256:            "BLUETOOTH_LE_LL_WITH_PHDR",
	258:            "PKTAP",
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
