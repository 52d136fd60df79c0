package capgen

import (
	"encoding/binary"
	"fmt"
	"time"
)

// streamOddities is streams whose bytes are not, or not nicely, pub-sub.
var streamOddities = []oddity{
	{"MQTT cut anywhere and several to a segment", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		first := alarm(0)
		for i := range 40 {
			o.put(t.fromBroker(first[i : i+1]))
		}
		o.put(t.fromBroker(first[40:]), t.fromClient(nil))
		stream := []byte{}
		for i := range 12 {
			stream = append(stream, alarm(i+1)...)
		}
		for len(stream) > 0 {
			n := min(len(stream), 1+o.rng.IntN(400))
			o.put(t.fromBroker(stream[:n]), t.fromClient(nil))
			stream = stream[n:]
		}
		acks := []byte{}
		for i := range 13 {
			acks = appendPubAck(acks, uint16(i+1))
		}
		o.put(t.fromClient(acks), t.fromBroker(nil))
	}},
	{"capture begins in the middle of a message", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		o.put(t.fromBroker(alarm(0)[70:]), t.fromClient(nil))
		t.exchange(5, func(i int) []byte { return alarm(i + 1) })
	}},
	{"broken MQTT: endless length, reserved type, wrong packet length", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		t.exchange(1, alarm)
		o.put(t.fromBroker([]byte{0x30, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3}), t.fromClient(nil))
		o.put(t.fromBroker([]byte{0xf0, 0}), t.fromBroker([]byte{0, 0}))
		o.put(t.fromBroker([]byte{0x30, 4, 0xff, 0xff, 'a', 'b'})) // a topic past the end
		o.put(t.fromBroker([]byte{0x30, 0xff, 0xff, 0xff, 0x7f, 0, 1, 'a'}))
		t.exchange(2, alarm)
	}},
	{"opaque random bytes on an unknown port", func(o *oddWriter) {
		t := o.talk(9999, false)
		for range 6 {
			o.put(t.fromClient(o.random(1+o.rng.IntN(250))), t.fromBroker(o.random(1+o.rng.IntN(60))))
		}
	}},
	{"opaque random bytes on the MQTT port", func(o *oddWriter) {
		t := o.talk(brokerPort, false)
		for range 6 {
			o.put(t.fromBroker(o.random(1+o.rng.IntN(200))), t.fromClient(nil))
		}
	}},
	{"text protocol that nobody knows", func(o *oddWriter) {
		t := o.talk(7007, false)
		for i := range 12 {
			o.put(t.fromClient(fmt.Appendf(nil, "GETVAL pump%d.speed;unit=rpm #%d\r\n", i%4, 1000+i)))
			o.put(t.fromBroker(fmt.Appendf(nil, "OK #%d %d.%d rpm GOOD\r\n", 1000+i, 1480+o.rng.IntN(9), o.rng.IntN(10))))
			o.put(t.fromClient(nil))
			o.wait(30 * time.Millisecond)
		}
	}},
	{"TLS records", func(o *oddWriter) {
		t := o.talk(8883, false)
		record := func(kind byte, n int) []byte {
			b := binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(n))
			return append(b, o.random(n)...)
		}
		hello := record(22, 240)
		copy(hello[2:], []byte{1, 0, 240, 1, 0, 0, 236, 3, 3})
		o.put(t.fromClient(hello), t.fromBroker(append(record(22, 90), append(record(20, 1), record(23, 900)...)...)))
		for range 5 {
			o.put(t.fromBroker(record(23, 150)), t.fromClient(nil))
			o.wait(50 * time.Millisecond)
		}
		o.put(t.fromClient(record(21, 19)))
	}},
	{"segments larger than any MTU", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		var stream []byte
		for i := 0; len(stream) < 43_000; i++ {
			stream = append(stream, alarm(i)...)
		}
		o.put(t.fromBroker(stream[:3000]), t.fromClient(nil))
		o.put(t.fromBroker(stream[3000:43_000]), t.fromClient(nil))
	}},
	{"connections from the middle of their life", func(o *oddWriter) {
		var talks []*talk
		for range 5 {
			talks = append(talks, o.talk(brokerPort, false))
		}
		alarm := o.alarms()
		for i := range 4 {
			message := alarm(i)
			for k, t := range talks {
				binary.BigEndian.PutUint16(message[3+2+len(alarmTopic):], uint16(100*k+i+1))
				o.put(t.fromBroker(message), t.fromClient(nil))
			}
			o.wait(50 * time.Millisecond)
		}
	}},
	{"both ends speak at once", func(o *oddWriter) {
		t, alarm := o.talk(brokerPort, false), o.alarms()
		for i := range 4 {
			old := t.down.ack
			a, b := t.fromClient(appendPubAck(nil, uint16(i))), t.fromBroker(alarm(i), func(s *segment) { s.ack = old })
			o.put(b, a)
			o.wait(10 * time.Millisecond)
		}
	}},
}
