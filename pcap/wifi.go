package pcap

import "encoding/binary"

// Bits of the 802.11 frame control field, read little-endian (IEEE 802.11-2020
// section 9.2.4.1).
const (
	wifiTypeMask  = 0x000c
	wifiTypeData  = 0x0008
	wifiNoData    = 0x0040 // subtype bit: null functions
	wifiQoS       = 0x0080 // subtype bit
	wifiToDS      = 0x0100
	wifiFromDS    = 0x0200
	wifiMoreFrags = 0x0400
	wifiProtected = 0x4000
	wifiOrder     = 0x8000 // in a QoS frame: an HT control field is there
)

// stripRadiotap: version (1), padding (1), length with all fields (2),
// little-endian; then 802.11.
func stripRadiotap(b []byte) ([]byte, SkipReason) {
	if len(b) < 8 {
		return nil, skipShort
	}
	length := int(binary.LittleEndian.Uint16(b[2:]))
	switch {
	case b[0] != 0 || length < 8:
		return nil, SkipBadLinkLayer
	case len(b) < length:
		return nil, skipShort
	}
	return stripWiFi(b[length:])
}

// stripWiFi takes off the 802.11 header of a data frame and the LLC header:
//
//	frame control (2) | duration (2) | addresses (18) | sequence (2) |
//	fourth address (6, between access points) | QoS (2) | HT control (4) | LLC
func stripWiFi(b []byte) ([]byte, SkipReason) {
	if len(b) < 2 {
		return nil, skipShort
	}
	fc := binary.LittleEndian.Uint16(b)
	switch {
	case fc&3 != 0: // protocol version
		return nil, SkipBadLinkLayer
	case fc&wifiTypeMask != wifiTypeData || fc&wifiNoData != 0:
		return nil, SkipNotIP
	case fc&wifiProtected != 0:
		return nil, SkipEncrypted
	}
	header := 24
	if fc&(wifiToDS|wifiFromDS) == wifiToDS|wifiFromDS {
		header += 6
	}
	qos := header
	if fc&wifiQoS != 0 {
		header += 2
		if fc&wifiOrder != 0 {
			header += 4
		}
	}
	if len(b) < header {
		return nil, skipShort
	}
	const fragmentMask, aggregate = 0x0f, 0x80
	if fc&wifiMoreFrags != 0 || b[22]&fragmentMask != 0 || fc&wifiQoS != 0 && b[qos]&aggregate != 0 {
		return nil, SkipUnassembled
	}
	llc := b[header:]
	// Some drivers pad the header to a multiple of four and leave it so. Radiotap
	// has a flag for it, which not all of them set, and bare 802.11 has none.
	if pad := header % 4; pad != 0 && !isSNAP(llc) && len(llc) > pad && isSNAP(llc[pad:]) {
		llc = llc[pad:]
	}
	return stripLLC(llc)
}
