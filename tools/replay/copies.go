package replay

import (
	"encoding/binary"
	"time"

	"github.com/cespare/xxhash/v2"

	"sheaf/parsers"
	"sheaf/pcap"
)

// copied is the reason of a packet that is not replayed since it was before.
const copied = "copy of a packet captured twice"

const (
	// copyWithin is how long after a packet its copy comes at another interface: it
	// has been through a bridge, a router or address translation, and their queues.
	copyWithin = 50 * time.Millisecond
	// twiceWithin is how long after a packet its copy comes where the capture does
	// not tell interfaces apart. No host sends anything again so soon.
	twiceWithin = time.Millisecond

	maxSightings  = 1 << 16 // packets that are remembered
	maxTranslated = 1 << 17 // flows of the other side of address translation
)

// copies finds the packets that a capture has more than once: of all interfaces of
// a host that routes, bridges or translates (tcpdump -i any beside containers), or
// of a port mirror. A packet is the same when all but what routers and address
// translation change is. One at another interface is a copy; in a cooked capture v1,
// which does not tell interfaces apart, so is a TCP segment that comes again at once
// with the same IPv4 identification, which hosts do not use twice.
//
// Of a connection whose addresses are translated, one side is kept in both
// directions: what came first decides. The zero value is ready.
type copies struct {
	recent     map[uint64]sighting
	ring       []uint64 // the fingerprints in recent, oldest at next
	next       int
	translated map[parsers.FlowKey]bool
	hash       *xxhash.Digest
	twice      uint64 // packets that may be copies, and were not counted as such
}

// A sighting is when and where a packet was seen.
type sighting struct {
	at  time.Duration
	tap tap
	key parsers.FlowKey
	id  int // in the ring, of its fingerprint
}

// A tap is where a packet was captured, as far as the capture tells.
type tap struct {
	iface  int
	detail [24]byte
}

// seen reports whether the packet, captured at the time given, is a copy of one
// before it.
func (c *copies) seen(at time.Duration, p *pcap.Packet) bool {
	key := flowOf(p.Data)
	if c.translated[key] {
		return true
	}
	t := tap{p.Interface, p.Tap}
	f := c.fingerprint(p.Data)
	was, before := c.recent[f.sum]
	switch {
	case !before || at-was.at > copyWithin || !f.tcp && was.key != key:
	case was.tap != t && was.key == key:
		return true
	case was.tap != t:
		c.translate(key)
		return true
	case !f.tcp || was.key != key || at-was.at > twiceWithin:
	case p.Blurred && f.id != 0:
		return true
	case f.body: // an acknowledgement may well come twice
		c.twice++
	}
	c.note(f.sum, sighting{at: at, tap: t, key: key})
	return false
}

// translate notes that a flow is another side of one that is replayed.
func (c *copies) translate(key parsers.FlowKey) {
	if c.translated == nil || len(c.translated) >= maxTranslated {
		c.translated = make(map[parsers.FlowKey]bool)
	}
	c.translated[key], c.translated[key.Reverse()] = true, true
}

// note remembers a packet in place of the oldest one.
func (c *copies) note(sum uint64, s sighting) {
	if c.recent == nil {
		c.recent = make(map[uint64]sighting)
	}
	if len(c.ring) < maxSightings {
		c.ring = append(c.ring, 0)
	}
	if old := c.ring[c.next]; c.recent[old].id == c.next {
		delete(c.recent, old)
	}
	s.id = c.next
	c.ring[c.next] = sum
	c.recent[sum] = s
	c.next = (c.next + 1) % maxSightings
}

// A fingerprint is what a packet is told by.
type fingerprint struct {
	sum  uint64 // over what stays the same on its way
	id   uint16 // the IPv4 identification, 0 where there is none
	tcp  bool   // it is a TCP segment, of which addresses and ports do not count
	body bool   // with a payload
}

// fingerprint hashes what stays the same on a packet's way: of TCP all but the
// addresses, ports and checksums, of others all but the time to live and the
// checksum of the IP header.
func (c *copies) fingerprint(p []byte) (f fingerprint) {
	if c.hash == nil {
		c.hash = xxhash.New()
	}
	c.hash.Reset()
	segment := tcpOf(p)
	f.tcp = segment != nil
	if p[0]>>4 == 4 {
		f.id = binary.BigEndian.Uint16(p[4:])
		c.write(p[:8])
		c.write(p[9:10])
	} else {
		c.write(p[:7])
	}
	switch {
	case f.tcp:
		f.body = len(segment) > int(segment[12]>>4)*4
		c.write(segment[4:16])
		c.write(segment[18:])
	case p[0]>>4 == 4:
		c.write(p[12:])
	default:
		c.write(p[8:])
	}
	f.sum = c.hash.Sum64()
	return f
}

func (c *copies) write(b []byte) { _, _ = c.hash.Write(b) } // which never fails
