package capgen

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// An oddity is a part of the odd workload.
type oddity struct {
	name  string
	write func(o *oddWriter)
}

var oddities = slices.Concat(tcpOddities, streamOddities, ipOddities)

// odd writes every oddity, with addresses and random numbers of its own.
func odd(cfg Config, emit emitFunc) error {
	o := &oddWriter{emit: emit}
	for _, odd := range oddities {
		o.number++
		o.rng = rand.New(rand.NewPCG(cfg.Seed, uint64(o.number)))
		o.t += 100 * time.Millisecond
		odd.write(o)
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

// An oddWriter emits hand-made packets.
type oddWriter struct {
	emit   emitFunc
	err    error
	rng    *rand.Rand
	t      time.Duration
	number int // of the oddity, from 1
}

// put emits packets 18 us apart.
func (o *oddWriter) put(packets ...[]byte) {
	for _, p := range packets {
		if o.err == nil {
			o.err = o.emit(o.t, p)
		}
		o.t += 18 * time.Microsecond
	}
}

// wait lets time pass.
func (o *oddWriter) wait(d time.Duration) { o.t += d }

// random returns n random bytes.
func (o *oddWriter) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(o.rng.Uint32())
	}
	return b
}

// ip returns the header of a packet from the client host of this oddity to the
// broker.
func (o *oddWriter) ip(ipv6 bool) ipHeader {
	return ipHeader{
		src: o.client(ipv6), dst: brokerAddr(ipv6), ttl: 62,
		id: uint16(o.rng.Uint32()), frag: dontFragment, label: o.rng.Uint32N(1 << 20),
	}
}

// client is the client host of this oddity.
func (o *oddWriter) client(ipv6 bool) netip.Addr { return clientAddr(1000+o.number, ipv6) }

// A talk is a connection in the middle of its life whose segments are made by
// hand.
type talk struct {
	o        *oddWriter
	up, down segment // next of each direction, without options
	upTS     uint32  // offset of the timestamps; no timestamps when both are 0
	downTS   uint32
}

// talk makes a connection between the client host of this oddity and a port of
// the broker.
func (o *oddWriter) talk(port uint16, ipv6 bool) *talk {
	t := &talk{o: o, upTS: o.rng.Uint32() | 1, downTS: o.rng.Uint32() | 1}
	t.up = segment{
		ip: o.ip(ipv6), srcPort: 1<<15 | uint16(o.rng.IntN(1<<15)), dstPort: port,
		seq: o.rng.Uint32(), flags: flagACK, window: 63,
	}
	t.down = segment{
		ip: o.ip(ipv6), srcPort: port, dstPort: t.up.srcPort,
		seq: o.rng.Uint32(), flags: flagACK, window: 64,
	}
	t.down.ip.src, t.down.ip.dst, t.down.ip.ttl = t.up.ip.dst, t.up.ip.src, 64
	t.up.ack, t.down.ack = t.down.seq, t.up.seq
	return t
}

// A tweak changes a segment before it is built.
type tweak func(*segment)

// fromClient builds the client's next segment and moves both directions on, as
// if it arrived.
func (t *talk) fromClient(payload []byte, tweaks ...tweak) []byte {
	return t.build(&t.up, &t.down, t.upTS, t.downTS, payload, tweaks)
}

// fromBroker is fromClient for the other direction.
func (t *talk) fromBroker(payload []byte, tweaks ...tweak) []byte {
	return t.build(&t.down, &t.up, t.downTS, t.upTS, payload, tweaks)
}

func (t *talk) build(from, to *segment, ts, echo uint32, payload []byte, tweaks []tweak) []byte {
	s := *from
	if len(payload) > 0 {
		s.flags |= flagPSH
	}
	if ts != 0 {
		clock := uint32(t.o.t / time.Millisecond)
		s.options = appendTimestamps(nil, ts+clock, echo+clock-1)
	}
	for _, f := range tweaks {
		f(&s)
	}
	from.ip.id++
	from.seq = s.seq + uint32(len(payload))
	if s.flags&(flagSYN|flagFIN) != 0 {
		from.seq++
	}
	to.ack = from.seq
	return appendSegment(nil, &s, payload)
}

// exchange puts n rounds of a message from the broker and its acknowledgement.
func (t *talk) exchange(n int, message func(i int) []byte) {
	for i := range n {
		t.o.put(t.fromBroker(message(i)), t.fromClient(nil))
		t.o.wait(50 * time.Millisecond)
	}
}

// alarms returns a function that makes successive PUBLISH messages.
func (o *oddWriter) alarms() func(i int) []byte {
	body := newAlarm()
	return func(i int) []byte {
		return appendPublish(nil, alarmTopic, 1, uint16(i+1), body.appendBody(nil, o.rng, o.t))
	}
}

func flags(f uint16) tweak { return func(s *segment) { s.flags = f } }

// moreOptions puts options behind those that the segment has.
func moreOptions(b ...byte) tweak {
	return func(s *segment) { s.options = append(s.options, b...) }
}

// onlyOptions puts options in place of those that the segment has.
func onlyOptions(b ...byte) tweak { return func(s *segment) { s.options = b } }
