package capgen

import (
	"encoding/binary"
	"time"
)

// ipOddities is what IP carries beside TCP, and headers that are rare or wrong.
var ipOddities = []oddity{
	{"IPv4 fragments", func(o *oddWriter) {
		t := o.talk(brokerPort, false)
		whole := t.fromBroker(appendRecord(nil, o.rng, 1, o.t, 900))
		parts := fragmentIPv4(whole, 320)
		o.put(parts...)
		parts = fragmentIPv4(t.fromBroker(appendRecord(nil, o.rng, 2, o.t, 900)), 320)
		o.put(parts[2], parts[0], parts[1])
		parts = fragmentIPv4(t.fromBroker(appendRecord(nil, o.rng, 3, o.t, 200)), 24) // cuts the TCP header
		o.put(parts[:4]...)
	}},
	{"ICMP echo and an error that quotes a segment", func(o *oddWriter) {
		quoted := o.talk(brokerPort, false).fromBroker(o.random(60))
		for i := range 4 {
			up, down := o.ip(false), o.ip(false)
			down.src, down.dst, down.ttl = up.dst, up.src, 64
			body := append([]byte{0x12, 0x34, 0, byte(i)}, "abcdefghijklmnopqrstuvwabcdefghi"...)
			o.put(icmp(&up, protoICMP, 8, 0, body), icmp(&down, protoICMP, 0, 0, body))
		}
		h := o.ip(false)
		o.put(icmp(&h, protoICMP, 3, 4, append([]byte{0, 0, 5, 0x14}, quoted[:28]...)))
	}},
	{"ICMPv6 echo and neighbour solicitation", func(o *oddWriter) {
		up := o.ip(true)
		o.put(icmp(&up, protoICMPv6, 128, 0, []byte{0x12, 0x34, 0, 1, 'p', 'i', 'n', 'g'}))
		up.ttl = 255
		target := up.dst.As16()
		o.put(icmp(&up, protoICMPv6, 135, 0, append(make([]byte, 4), target[:]...)))
	}},
	{"UDP datagrams", func(o *oddWriter) {
		h := o.ip(false)
		for i := range 6 {
			h.id++
			o.put(appendDatagram(nil, &h, 40000, 514, []byte("<13>pump 7: pressure low, code "+string(rune('0'+i)))))
		}
		p := appendDatagram(nil, &h, 40000, 5353, o.random(33))
		p[26], p[27] = 0, 0 // no checksum
		o.put(p)
		p = appendDatagram(nil, &h, 40000, 5353, o.random(34))
		p[27] ^= 1
		o.put(p)
		p = appendDatagram(nil, &h, 40000, 5353, nil)
		p[25] = 200 // longer than its packet
		o.put(p)
		h6 := o.ip(true)
		o.put(appendDatagram(nil, &h6, 40000, 5683, append([]byte{0x40, 1, 0, 7}, "\xb4temp"...)))
	}},
	{"IPv6 with hop-by-hop, destination options, routing and fragments", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, true), o.alarms()
		t.exchange(2, alarm)
		ext := func(kind byte, b ...byte) tweak {
			return func(s *segment) { s.ip.extension, s.ip.extensions = kind, b }
		}
		o.put(t.fromBroker(alarm(2), ext(protoHopByHop, protoTCP, 0, 5, 2, 0, 0, 1, 0)))
		o.put(t.fromClient(nil, ext(protoHopByHop, protoTCP, 0, 5, 2, 0, 0, 1, 0)))
		o.put(t.fromBroker(alarm(3), ext(protoDestOpts, protoTCP, 0, 1, 4, 0, 0, 0, 0)))
		o.put(t.fromBroker(alarm(4), ext(protoHopByHop, protoDestOpts, 0, 1, 4, 0, 0, 0, 0, protoTCP, 0, 1, 4, 0, 0, 0, 0)))
		o.put(t.fromBroker(alarm(5), ext(protoRouting, protoTCP, 0, 4, 0, 0, 0, 0, 0)))
		o.put(t.fromBroker(alarm(6), ext(protoFragment, protoTCP, 0, 0, 0, 1, 2, 3, 4))) // the only fragment
		o.put(t.fromBroker(alarm(7), ext(protoFragment, protoTCP, 0, 0, 0x11, 1, 2, 3, 5)))
		o.put(t.fromBroker(alarm(8), ext(protoHopByHop, protoTCP, 9, 5, 2, 0, 0, 1, 0))) // past the end of the header
		for i := range 3 {
			o.put(t.fromBroker(alarm(9+i), func(s *segment) { s.ip.label = uint32(i); s.ip.tos = byte(i); s.ip.ttl = byte(60 + i) }))
		}
		h := o.ip(true)
		o.put(appendIP(nil, &h, protoNoNext, 0))
	}},
	{"IPv4 options", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(1, alarm)
		o.put(t.fromBroker(alarm(1), func(s *segment) { s.ip.options = []byte{148, 4, 0, 0} }))                          // router alert
		o.put(t.fromBroker(alarm(2), func(s *segment) { s.ip.options = []byte{7, 7, 4, 0, 0, 0, 0, 0} }))                // record route
		o.put(t.fromBroker(alarm(3), func(s *segment) { s.ip.options = append([]byte{68, 40, 5, 0}, o.random(36)...) })) // timestamps
		o.put(t.fromClient(nil, func(s *segment) { s.ip.options = []byte{1, 1, 1, 0} }))
	}},
	{"payload of zero length, other protocols", func(o *oddWriter) {
		h := o.ip(false)
		o.put(appendIP(nil, &h, protoTCP, 0), appendIP(nil, &h, protoUDP, 0), appendIP(nil, &h, 255, 0))
		h.frag |= moreFragments
		o.put(appendIP(nil, &h, protoTCP, 0))
		h = o.ip(false)
		inner := o.talk(brokerPort, false).fromBroker([]byte("inside GRE"))
		o.put(append(append(appendIP(nil, &h, protoGRE, 4+len(inner)), 0, 0, 8, 0), inner...))
		o.put(append(appendIP(nil, &h, 4, len(inner)), inner...))  // IP in IP
		o.put(append(appendIP(nil, &h, 132, 40), o.random(40)...)) // SCTP
		h6 := o.ip(true)
		o.put(appendIP(nil, &h6, protoTCP, 0), append(appendIP(nil, &h6, protoGRE, 9), o.random(9)...))
		o.put(append(appendIP(nil, &h6, 222, 16), o.random(16)...)) // unassigned
	}},
	{"bytes behind a consistent packet", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(1, alarm)
		o.put(append(t.fromClient(nil), 0, 0, 0, 0, 0, 0)) // as Ethernet pads
		o.put(append(t.fromBroker(alarm(1)), o.random(13)...))
		o.put(append(o.talk(brokerPort, true).fromBroker(alarm(2)), o.random(5)...))
		t.exchange(1, func(int) []byte { return alarm(3) })
	}},
	{"lengths and checksums of IP that are wrong", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		lengthen := func(p []byte, by int) []byte {
			binary.BigEndian.PutUint16(p[2:], uint16(len(p)+by))
			return fixIPv4(p)
		}
		o.put(lengthen(t.fromBroker(alarm(0)), 20))
		o.put(lengthen(t.fromBroker(alarm(1)), -30))
		p := t.fromBroker(alarm(2))
		o.put(lengthen(p, -len(p))) // 0, as segmentation offload writes it
		p = t.fromBroker(alarm(3))
		p[10] ^= 0xff
		o.put(p)
		p = t.fromBroker(alarm(4))
		p[10], p[11] = 0, 0
		o.put(p)
		p = t.fromBroker(alarm(5))
		p[0] = 0x44 // a header of 16 bytes
		o.put(fixIPv4(p))
		p = t.fromBroker(alarm(6))
		p[0] = 0x4f // a header that reaches into the segment
		o.put(p)
		p = t.fromBroker(alarm(7))
		p[0] = 0x55 // version 5
		o.put(p)
		p = o.talk(brokerPort, true).fromBroker(alarm(8))
		p[5] += 50 // a payload past the end
		o.put(p)
		p = o.talk(brokerPort, true).fromBroker(alarm(9))
		p[4], p[5] = 0, 0 // a jumbogram without its option
		o.put(p)
	}},
	{"cut off garbage of 1 to 40 bytes", func(o *oddWriter) {
		t := o.talk(brokerPort, false)
		for n := 1; n <= 40; n++ {
			o.put(o.random(n))
			o.put(t.fromBroker([]byte("cut off"))[:n])
		}
		six := o.talk(brokerPort, true).fromBroker([]byte("cut off"))
		for _, n := range []int{1, 8, 39, 40, 41, 59, 60, 71} {
			o.put(six[:n])
		}
		o.wait(time.Second)
		t.exchange(2, o.alarms())
	}},
}

// icmp builds an ICMP or ICMPv6 packet.
func icmp(h *ipHeader, proto, kind, code byte, body []byte) []byte {
	p := appendIP(nil, h, proto, 4+len(body))
	start := len(p)
	p = append(append(p, kind, code, 0, 0), body...)
	check := ^fold(sum(p[start:], 0))
	if proto == protoICMPv6 {
		check = transportChecksum(h, proto, p[start:])
	}
	binary.BigEndian.PutUint16(p[start+2:], check)
	return p
}

// fragmentIPv4 cuts a packet without options into fragments of n bytes, a
// multiple of 8, of payload.
func fragmentIPv4(packet []byte, n int) [][]byte {
	var parts [][]byte
	payload := packet[20:]
	for at := 0; at < len(payload); at += n {
		end := min(at+n, len(payload))
		p := append(append([]byte{}, packet[:20]...), payload[at:end]...)
		frag := uint16(at / 8)
		if end < len(payload) {
			frag |= moreFragments
		}
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
		binary.BigEndian.PutUint16(p[6:], frag)
		parts = append(parts, fixIPv4(p))
	}
	return parts
}

// fixIPv4 makes the checksum of a header of 20 bytes right.
func fixIPv4(p []byte) []byte {
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], ^fold(sum(p[:20], 0)))
	return p
}
