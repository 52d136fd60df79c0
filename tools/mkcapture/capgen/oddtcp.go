package capgen

import (
	"encoding/binary"
	"time"
)

// tcpOddities is what TCP does when not all goes well, or what it may do.
var tcpOddities = []oddity{
	{"retransmission", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(2, alarm)
		lost := t.fromBroker(alarm(2))
		o.put(lost)
		o.wait(200 * time.Millisecond)
		t.down.seq -= uint32(len(lost) - 52)
		o.put(t.fromBroker(lost[52:]), t.fromClient(nil)) // the same data under a new timestamp
		t.exchange(2, func(i int) []byte { return alarm(i + 3) })
		half := alarm(5)
		o.put(t.fromBroker(half[:60]))
		o.wait(200 * time.Millisecond)
		t.down.seq -= 60
		o.put(t.fromBroker(half), t.fromClient(nil)) // with more data than the first time
	}},
	{"out of order, duplicates and SACK blocks", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(2, alarm)
		hole := t.up.ack
		first := t.fromBroker(alarm(2))
		second := t.fromBroker(alarm(3))
		third := t.fromBroker(alarm(4))
		end := t.up.ack
		size := (end - hole) / 3
		sack := func(blocks ...uint32) tweak {
			return func(s *segment) {
				s.ack = hole
				s.options = append(s.options, 1, 1, 5, byte(2+4*len(blocks)))
				for _, edge := range blocks {
					s.options = binary.BigEndian.AppendUint32(s.options, edge)
				}
			}
		}
		o.put(third, t.fromClient(nil, sack(end-size, end)))
		o.put(second, t.fromClient(nil, sack(end-2*size, end)))
		o.put(first)
		hole = end
		o.put(t.fromClient(nil))
		o.put(first, t.fromClient(nil, sack(end-3*size, end-2*size))) // a duplicate SACK, RFC 2883
		o.put(second, second)
		o.put(t.fromClient(nil, sack(end+100, end+200, end+300, end+400, end+500, end+600)))
		o.put(t.fromClient(nil), t.fromClient(nil), t.fromClient(nil))
	}},
	{"bad TCP checksum", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(1, alarm)
		p := t.fromBroker(alarm(1))
		p[36] ^= 0x55
		o.put(p, t.fromClient(nil))
		p = t.fromBroker(alarm(2))
		p[36], p[37] = 0, 0
		o.put(p, t.fromClient(nil))
		t.exchange(1, func(int) []byte { return alarm(3) })
	}},
	{"checksum 0x0000 and its other form 0xFFFF", func(o *oddWriter) {
		t := o.talk(brokerPort, false)
		for i, want := range []uint16{0, 0xffff, 0, 0xffff} {
			message := appendPublish(nil, "a/b", 0, 0, []byte{'x', 'y', 0, 0, 0})
			p := t.fromBroker(message)
			at := len(p) - 2 - len(p)%2
			copy(p[at:], p[36:38]) // adds the checksum to the sum, which makes it 0xffff
			binary.BigEndian.PutUint16(p[36:], want)
			o.put(p)
			if i%2 == 1 {
				o.put(t.fromClient(nil))
			}
		}
	}},
	{"urgent data, unknown options, other option orders", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		o.put(t.fromBroker(alarm(0), func(s *segment) { s.flags |= flagURG; s.urgent = 7 }))
		o.put(t.fromBroker(alarm(1), func(s *segment) { s.urgent = 9 })) // without the flag
		o.put(t.fromClient(nil, moreOptions(253, 8, 0xca, 0xfe, 1, 2, 3, 4)))
		o.put(t.fromBroker(alarm(2), moreOptions(1, 1, 1, 0)))                          // end of list
		o.put(t.fromBroker(alarm(3), moreOptions(77, 2, 78, 2)))                        // no data in them
		o.put(t.fromClient(nil, moreOptions(9, 0, 1, 1)))                               // a length of 0
		o.put(t.fromClient(nil, moreOptions(9, 40, 1, 1)))                              // a length past the end
		o.put(t.fromBroker(alarm(4), onlyOptions(8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1))) // NOPs at the end
		o.put(t.fromBroker(alarm(5), onlyOptions()))
		o.put(t.fromBroker(alarm(6), onlyOptions(append([]byte{19, 18}, append(o.random(16), 1, 1)...)...))) // MD5 signature
		o.put(t.fromBroker(alarm(7), moreOptions(30, 20, 0x20, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 8, 9, 9, 0, 0, 0, 0, 1, 1, 1, 1)))
	}},
	{"reset", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(1, alarm)
		o.put(t.fromClient(nil, flags(flagRST), onlyOptions(), func(s *segment) { s.ack, s.window = 0, 0 }))
		o.put(t.fromBroker(nil, flags(flagRST|flagACK), onlyOptions(), func(s *segment) { s.window = 0 }))
		o.put(t.fromBroker([]byte("no such session"), flags(flagRST|flagACK)))
	}},
	{"handshakes: refused, repeated, with data, port used again", func(o *oddWriter) {
		t := o.talk(brokerPort, false)
		syn := func(s *segment) { s.options = appendSYNOptions(nil, 1460, 100, 0) }
		start := t.up.seq
		for range 2 {
			t.up.seq = start
			o.put(t.fromClient(nil, flags(flagSYN), syn))
			o.wait(time.Second)
		}
		o.put(t.fromBroker(nil, flags(flagRST|flagACK), onlyOptions(), func(s *segment) { s.seq, s.ip.id = 0, 0 }))
		for range 2 { // twice on the same ports
			t.up.seq, t.down.seq = o.rng.Uint32(), o.rng.Uint32()
			o.put(t.fromClient(nil, flags(flagSYN), syn))
			o.put(t.fromBroker(nil, flags(flagSYN|flagACK), syn, func(s *segment) { s.ip.id = 0 }))
			o.put(t.fromClient(nil))
			o.put(t.fromClient(appendConnect(nil, "odd", 60)), t.fromBroker(appendConnAck(nil)))
			o.put(t.fromClient(nil, flags(flagFIN|flagACK)), t.fromBroker(nil, flags(flagFIN|flagACK)), t.fromClient(nil))
		}
		o.put(t.fromClient(appendConnect(nil, "fast-open", 60), flags(flagSYN), // RFC 7413
			onlyOptions(2, 4, 5, 0xb4, 34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1)))
		o.put(t.fromClient(nil, flags(0x3f)), t.fromClient(nil, flags(0))) // all flags, none
	}},
	{"keep-alive, zero window, window update", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(1, alarm)
		before := t.down.seq
		o.put(t.fromBroker(nil, func(s *segment) { s.seq-- }))
		t.down.seq, t.up.ack = before, before
		o.put(t.fromClient(nil))
		o.put(t.fromBroker([]byte{0}, func(s *segment) { s.seq-- })) // with the last byte again
		t.down.seq, t.up.ack = before, before
		window := func(n uint16) tweak { return func(s *segment) { s.window = n } }
		o.put(t.fromClient(nil, window(0)), t.fromClient(nil, window(1)), t.fromClient(nil, window(0xffff)))
		t.exchange(1, alarm)
	}},
	{"sequence numbers and timestamps that wrap", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.down.seq, t.up.ack = 1<<32-200, 1<<32-200
		t.up.seq, t.down.ack = 1<<32-2, 1<<32-2
		t.downTS = -uint32(o.t/time.Millisecond) - 100
		t.up.ip.id, t.down.ip.id = 0xffff, 0xfffe
		t.exchange(4, alarm)
		o.put(t.fromClient(appendPubAck(nil, 4)), t.fromBroker(nil))
	}},
	{"TTL, ECN, reserved bits, random and constant identification", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		for i := range 12 {
			o.put(t.fromBroker(alarm(i), func(s *segment) {
				s.ip.ttl -= byte(i / 3)
				s.ip.tos = [...]byte{0, 2, 2, 3, 0xb8, 1}[i/2]
				s.flags |= [...]uint16{0, flagECE, flagCWR, flagECE | flagCWR, 0x100, 0xe00}[i%6]
				s.ip.id = uint16(o.rng.Uint32())
			}))
			o.put(t.fromClient(nil, func(s *segment) {
				s.ip.id = 0
				if i > 6 {
					s.ip.frag = 0
				}
				if i > 9 {
					s.ip.frag = 0x8000 // reserved, RFC 3514
				}
			}))
			o.wait(20 * time.Millisecond)
		}
	}},
	{"no timestamps", func(o *oddWriter) {
		t := o.talk(brokerPort, false)
		t.upTS, t.downTS = 0, 0
		t.exchange(4, o.alarms())
	}},
	{"impossible TCP headers", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		p := t.fromBroker(alarm(0))
		p[32] = 0x40 // a header of 16 bytes
		o.put(p)
		p = t.fromBroker(nil)
		p[32] = 0xf0 // a header past the end
		o.put(p)
		h := o.ip(false)
		o.put(append(appendIP(nil, &h, protoTCP, 11), o.random(11)...)) // no room for a header
	}},
}
