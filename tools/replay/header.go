package replay

import (
	"bytes"
	"encoding/binary"

	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// A headerModel works out what header compression in the manner of ROHC (RFC
// 6846 for TCP, RFC 5225 for UDP) makes of packets. It is a model and not an
// implementation, and errs on the side of the compression: it is never
// interrupted, never refreshed and finds every field that can be foreseen.
//
//   - The first packet of a flow, one whose header changed its layout, fragments,
//     and what is neither TCP nor UDP go whole, with 1 byte of packet type and
//     the number of the context.
//   - Any other takes the number of the context (1 byte below 128, else 2), and
//     2 bytes of packet type, sequence number and CRC, in which PSH is included.
//   - The transport checksum travels, 2 bytes; that of UDP not if it is zero.
//   - Of the fields, those travel that are not as foreseen: TOS, TTL, TCP flags
//     and IP flags 1 byte each; IPv4 identification, unless the same or one more,
//     window and urgent pointer 2 each; IPv6 traffic class and flow label
//     together 3.
//   - TCP sequence number, unless it is where the last segment ended,
//     acknowledgement and timestamps take a byte for each 7 bits of change.
//   - Other TCP options that changed travel whole, with 1 byte.
//   - Payloads travel as they are.
type headerModel struct {
	decoder  parsers.Decoder
	seg      parsers.Segment
	contexts map[parsers.FlowKey]*headerContext
}

// A headerContext is a flow's last header.
type headerContext struct {
	number  int
	header  []byte
	ip      int    // bytes of IP header in it
	nextSeq uint32 // TCP: where the segment ended
}

// maxContexts bounds the contexts, as a number of 16 bits does. Packets of
// further flows go whole.
const maxContexts = 1 << 16

func newHeaderModel() *headerModel {
	return &headerModel{contexts: make(map[parsers.FlowKey]*headerContext)}
}

// cost returns how many bytes the packet takes.
func (m *headerModel) cost(packet []byte) int {
	s := &m.seg
	if m.decoder.Decode(packet, s) != nil || s.Fragment || s.TransportLen == 0 {
		return 1 + len(packet)
	}
	c := m.contexts[s.Key]
	header := packet[:s.HeaderLen+s.TransportLen]
	if c == nil {
		if len(m.contexts) == maxContexts {
			return 1 + len(packet)
		}
		c = &headerContext{number: len(m.contexts)}
		m.contexts[s.Key] = c
	}
	number := 1
	if c.number >= 128 {
		number = 2
	}
	cost := 1 + number + len(packet)
	if n, ok := c.changes(s, header); ok {
		cost = number + 2 + n + len(s.Payload())
	}
	c.header, c.ip = append(c.header[:0], header...), s.HeaderLen
	c.nextSeq = s.Seq + uint32(len(s.Payload()))
	if s.Flags&parsers.FlagSYN != 0 {
		c.nextSeq++
	}
	if s.Flags&parsers.FlagFIN != 0 {
		c.nextSeq++
	}
	return cost
}

// changes returns the bytes of fields that are not as foreseen. It reports false
// where the layout is another one.
func (c *headerContext) changes(s *parsers.Segment, h []byte) (n int, ok bool) {
	if len(c.header) != len(h) || c.ip != s.HeaderLen {
		return 0, false
	}
	old := c.header
	differ := func(from, to, cost int) {
		if !bytes.Equal(old[from:to], h[from:to]) {
			n += cost
		}
	}
	fixed := 40
	if s.Key.Version == 4 {
		fixed = 20
		differ(1, 2, 1)
		differ(6, 8, 1)
		differ(8, 9, 1)
		if step := binary.BigEndian.Uint16(h[4:]) - binary.BigEndian.Uint16(old[4:]); step > 1 {
			n += 2
		}
	} else {
		differ(0, 4, 3)
		differ(7, 8, 1)
	}
	if !bytes.Equal(old[fixed:c.ip], h[fixed:c.ip]) {
		return 0, false
	}
	if s.Key.Proto == ip.UDP {
		if h[c.ip+6] != 0 || h[c.ip+7] != 0 {
			n += 2
		}
		return n, true
	}
	n += 2 // the checksum
	t, was := h[c.ip:], old[c.ip:]
	n += change(c.nextSeq, s.Seq)
	n += change(binary.BigEndian.Uint32(was[8:]), s.Ack)
	if was[12] != t[12] || (was[13]^t[13])&^flagPSH != 0 {
		n++
	}
	differ(c.ip+14, c.ip+16, 2)
	differ(c.ip+18, c.ip+20, 2)
	return n + optionChanges(was[20:], t[20:]), true
}

const (
	flagPSH = 0x08
)

// optionChanges returns what the TCP options take, of which was and now have the
// same length.
func optionChanges(was, now []byte) int {
	if bytes.Equal(was, now) {
		return 0
	}
	at := timestamps(now)
	if at < 0 || at != timestamps(was) {
		return 1 + len(now)
	}
	n := 0
	if !bytes.Equal(was[:at], now[:at]) || !bytes.Equal(was[at+8:], now[at+8:]) {
		n = 1 + len(now) - 8
	}
	for i := at; i < at+8; i += 4 {
		n += change(binary.BigEndian.Uint32(was[i:]), binary.BigEndian.Uint32(now[i:]))
	}
	return n
}

// timestamps returns where the values of the timestamps option are, -1 where
// there is none (RFC 7323 section 3.2).
func timestamps(options []byte) int {
	for i := 0; i < len(options); {
		switch kind := options[i]; {
		case kind == 0:
			return -1
		case kind == 1:
			i++
		case i+1 >= len(options) || options[i+1] < 2:
			return -1
		case kind == 8 && options[i+1] == 10 && i+10 <= len(options):
			return i + 2
		default:
			i += int(options[i+1])
		}
	}
	return -1
}

// change returns what the difference of two numbers takes, nothing if there is
// none.
func change(was, now uint32) int {
	d := int32(now - was)
	if d == 0 {
		return 0
	}
	return varint(uint32(d<<1 ^ d>>31))
}

// varint returns the length of a number in groups of 7 bits.
func varint(v uint32) int {
	n := 1
	for ; v >= 1<<7; v >>= 7 {
		n++
	}
	return n
}
