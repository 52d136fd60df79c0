package codectest

import (
	"encoding/binary"
	"time"
)

// A Segment is what Packet makes a packet of: TCP between a client and a broker.
type Segment struct {
	Client, Port int    // the client is 10.1.0.0 + Client, or fd01:: + Client; its port is 40000 + Port
	Down         bool   // from the broker
	IPv6         bool   // instead of IPv4
	Label        uint32 // IPv6: the flow label
	ID           uint16 // IPv4: the identification
	Seq, Ack     uint32
	Flags        uint8
	Window       uint16
	TSval, TSecr uint32 // there are no timestamps where both are 0
	Options      []byte // behind the timestamps, of a length that is a multiple of 4
	Payload      []byte
}

// Packet returns the packet, with right checksums.
func (s Segment) Packet() []byte {
	b := s.ip()
	at := len(b)
	src, dst := uint16(40000+s.Port), uint16(1883)
	if s.Down {
		src, dst = dst, src
	}
	b = binary.BigEndian.AppendUint16(b, src)
	b = binary.BigEndian.AppendUint16(b, dst)
	b = binary.BigEndian.AppendUint32(b, s.Seq)
	b = binary.BigEndian.AppendUint32(b, s.Ack)
	b = append(b, 0, s.Flags)
	b = binary.BigEndian.AppendUint16(b, s.Window)
	b = append(b, 0, 0, 0, 0) // checksum, urgent pointer
	if s.TSval|s.TSecr != 0 {
		b = append(b, 1, 1, 8, 10)
		b = binary.BigEndian.AppendUint32(b, s.TSval)
		b = binary.BigEndian.AppendUint32(b, s.TSecr)
	}
	b = append(b, s.Options...)
	b[at+12] = byte((len(b) - at) / 4 << 4)
	b = append(b, s.Payload...)
	if s.IPv6 {
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)-at))
	} else {
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		FixIP(b)
	}
	FixSum(b)
	return b
}

// ip returns the IP header, without its lengths and checksum.
func (s Segment) ip() []byte {
	client, broker := []byte{10, 1, byte(s.Client >> 8), byte(s.Client)}, []byte{10, 2, 0, 10}
	if s.IPv6 {
		client = append(append([]byte{0xfd, 1}, make([]byte, 12)...), byte(s.Client>>8), byte(s.Client))
		broker = append(append([]byte{0xfd, 2}, make([]byte, 13)...), 10)
	}
	if s.Down {
		client, broker = broker, client
	}
	var b []byte
	if s.IPv6 {
		b = binary.BigEndian.AppendUint32(nil, 6<<28|s.Label)
		b = append(b, 0, 0, 6, 64)
	} else {
		b = []byte{0x45, 0, 0, 0, byte(s.ID >> 8), byte(s.ID), 0x40, 0, 64, 6, 0, 0}
	}
	return append(append(b, client...), broker...)
}

// With returns the packet of the segment with other options.
func (s Segment) With(options ...byte) []byte {
	s.Options = options
	return s.Packet()
}

// FixIP sets the checksum of an IPv4 header right.
func FixIP(b []byte) {
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^Sum(b[:b[0]&15*4]))
}

// FixSum sets the TCP checksum of a packet right that has no IPv6 extension headers.
func FixSum(b []byte) {
	addresses, t := b[8:40], b[40:]
	if b[0]>>4 == 4 {
		n := b[0] & 15 * 4
		addresses, t = b[12:20], b[n:]
	}
	t[16], t[17] = 0, 0
	pseudo := append([]byte(nil), addresses...)
	pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(t)))
	pseudo = append(pseudo, 0, 6)
	binary.BigEndian.PutUint16(t[16:], ^Sum(append(pseudo, t...)))
}

// Sum is the sum of the Internet checksum (RFC 1071), written apart from the one
// under test.
func Sum(b []byte) uint16 {
	n := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		n += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if len(b)%2 == 1 {
		n += uint32(b[len(b)-1]) << 8
	}
	for n>>16 != 0 {
		n = n&0xffff + n>>16
	}
	return uint16(n)
}

// SYN returns the packet that opens a connection, with the options of Linux.
func SYN() []byte {
	return Segment{Client: 9, Flags: 2, Window: 64240, Seq: 77}.With(2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 1, 3, 3, 7)
}

// UDP returns a datagram without a checksum.
func UDP() []byte {
	b := append(Segment{Client: 4}.Packet()[:28], "datagram"...)
	b[9] = 17
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	b[26], b[27] = 0, 0
	FixIP(b)
	return b
}

// ICMP returns an echo request.
func ICMP() []byte {
	b := UDP()
	b[9], b[20], b[21] = 1, 8, 0
	FixIP(b)
	return b
}

// Fragment returns a fragment of a datagram.
func Fragment() []byte {
	b := UDP()
	b[6], b[7] = 0x20, 3
	FixIP(b)
	return b
}

// IPv6TCP returns a segment over IPv6 with a PUBLISH in it.
func IPv6TCP() []byte {
	return Segment{
		IPv6: true, Label: 0x42, Client: 1, Flags: 0x18, Seq: 5, Ack: 6, Window: 7, TSval: 8, TSecr: 9,
		Payload: Publish("six", "hello", 0),
	}.Packet()
}

// SACKOption returns the option with some blocks, each from its first sequence
// number to the one behind its last, behind two bytes of padding.
func SACKOption(blocks ...[2]uint32) []byte {
	b := []byte{1, 1, 5, byte(2 + 8*len(blocks))}
	for _, k := range blocks {
		b = binary.BigEndian.AppendUint32(b, k[0])
		b = binary.BigEndian.AppendUint32(b, k[1])
	}
	return b
}

// Publish returns an MQTT PUBLISH: QoS 0, or 1 where id is not 0.
func Publish(topic, body string, id int) []byte {
	n := 2 + len(topic) + len(body)
	first := byte(0x30)
	if id != 0 {
		n += 2
		first = 0x32
	}
	b := append([]byte{first}, binary.AppendUvarint(nil, uint64(n))...)
	b = append(b, byte(len(topic)>>8), byte(len(topic)))
	b = append(b, topic...)
	if id != 0 {
		b = append(b, byte(id>>8), byte(id))
	}
	return append(b, body...)
}

// A Fanout is a broker that sends every message to all of its clients, which
// acknowledge it.
type Fanout struct {
	Flows []Segment // from the broker; the last segment of each
	Now   time.Duration
	Round int
}

// NewFanout returns one with n clients.
func NewFanout(n int) *Fanout {
	f := &Fanout{Flows: make([]Segment, n)}
	for i := range f.Flows {
		f.Flows[i] = Segment{
			Client: i, Port: i, Down: true, Flags: 0x18, Window: 64,
			Seq: uint32(i) * 7919, Ack: uint32(i) * 104729, ID: uint16(i * 31), TSval: uint32(i)*65537 + 1, TSecr: uint32(i)*257 + 1,
		}
	}
	return f
}

// Send emits the next round of messages, 50 ms behind the last one, and the
// acknowledgements a little later. d is 0 for packets from a client, 1 from the broker.
func (f *Fanout) Send(payload func(i int) []byte, emit func(d int, now time.Duration, packet []byte)) {
	f.Round++
	f.Now += 50 * time.Millisecond
	ms := uint32(f.Now / time.Millisecond)
	for i := range f.Flows {
		s := f.Flows[i]
		s.Payload = payload(i)
		s.TSval += ms
		s.TSecr += ms - 50
		emit(1, f.Now, s.Packet())
		f.Flows[i].Seq += uint32(len(s.Payload))
		f.Flows[i].ID++
	}
	for i := range f.Flows {
		s := f.Flows[i]
		a := Segment{
			Client: s.Client, Port: s.Port, Flags: 0x10, Window: 63, ID: uint16(i*17 + f.Round),
			Seq: s.Ack, Ack: s.Seq, TSval: s.TSecr + ms, TSecr: s.TSval + ms,
		}
		emit(0, f.Now+100*time.Microsecond, a.Packet())
	}
}
