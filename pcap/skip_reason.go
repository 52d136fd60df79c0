package pcap

import "fmt"

// A SkipReason says why a record holds no IP packet to replay.
type SkipReason uint8

const (
	SkipNone            SkipReason = iota // there is a packet
	SkipNotIP                             // ARP, LLDP, spanning tree, 802.11 management, ...
	SkipTruncated                         // fewer bytes were captured than the IP packet has
	SkipBadLinkLayer                      // the link layer makes no sense, or ends too early
	SkipBadIP                             // IP by its link layer, but with no usable IP header
	SkipTooLong                           // a jumbogram, or what a network card was to split: beyond MaxIPv4, MaxIPv6
	SkipEncrypted                         // an encrypted 802.11 frame
	SkipUnassembled                       // an 802.11 fragment or aggregate, which is not taken apart
	SkipUnsupportedLink                   // from an interface of an unsupported link type
	SkipNoInterface                       // names an interface that the capture does not describe

	numSkipReasons
)

var skipTexts = [numSkipReasons]string{
	SkipNone:            "not skipped",
	SkipNotIP:           "not IP",
	SkipTruncated:       "cut short",
	SkipBadLinkLayer:    "broken link layer",
	SkipBadIP:           "broken IP header",
	SkipTooLong:         "longer than an IP packet can be",
	SkipEncrypted:       "encrypted 802.11 frame",
	SkipUnassembled:     "802.11 fragment or aggregate",
	SkipUnsupportedLink: "unsupported link type",
	SkipNoInterface:     "unknown interface",
}

// String returns the reason in a few words, fit for a table or a message.
func (s SkipReason) String() string {
	if s < numSkipReasons {
		return skipTexts[s]
	}
	return fmt.Sprintf("SkipReason(%d)", uint8(s))
}
