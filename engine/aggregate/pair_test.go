package aggregate

import (
	"encoding/binary"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers/builtin"
)

// A tester is a testing.T, a testing.F or a rapid.T.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// A pair is the two ends of a lane, joined without delay, or late: then frames are
// on their way until deliver is called, and cross those of the other direction.
type pair struct {
	t     tester
	ends  [2]*Lane
	sent  [2][][]byte // packets that wait, by direction
	way   [2][]transit
	late  bool
	long  bool          // frames may be longer than their packets by more than the bound
	frame []byte        // the last that was delivered
	now   time.Duration // of the last flush
	bytes [2]int        // of frames
	count [2]int        // of frames that were delivered
}

// A transit is a frame on its way.
type transit struct {
	frame   []byte
	packets [][]byte
}

func newPair(t tester, cfg Config) *pair {
	t.Helper()
	p := &pair{t: t}
	if cfg.Registry == nil {
		cfg.Registry = builtin.Registry()
	}
	for i := range p.ends {
		var err error
		if p.ends[i], err = NewLane(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// add gives a packet to the merger of end d.
func (p *pair) add(d int, now time.Duration, packet []byte) {
	p.t.Helper()
	if err := p.ends[d].Merger.Add(now, packet); err != nil {
		p.t.Fatalf("%d bytes: %v", len(packet), err)
	}
	p.sent[d] = append(p.sent[d], append([]byte(nil), packet...))
}

// flush carries what waits at end d over, or sets it on its way.
func (p *pair) flush(d int, now time.Duration) {
	p.t.Helper()
	p.now = now
	frame := p.ends[d].Merger.Flush(nil, now, FlushEnd)
	if len(p.sent[d]) == 0 {
		if len(frame) != 0 {
			p.t.Fatalf("a frame of %d bytes for no packets", len(frame))
		}
		return
	}
	p.way[d] = append(p.way[d], transit{frame, p.sent[d]})
	p.sent[d] = nil
	if !p.late {
		p.deliver(d)
	}
}

// deliver has the oldest frame that is on its way from end d arrive and checks that
// all comes out as it went in: the same packets and, within a flow, in the same
// order.
func (p *pair) deliver(d int) {
	p.t.Helper()
	if len(p.way[d]) == 0 {
		return
	}
	frame, packets := p.way[d][0].frame, p.way[d][0].packets
	p.way[d] = p.way[d][1:]
	p.frame = frame
	got, n, err := p.ends[1-d].Expander.Expand(frame)
	if err != nil {
		p.t.Fatalf("frame %d of direction %d: %v", p.count[d]+1, d, err)
	}
	if n != len(frame) {
		p.t.Fatalf("frame of %d bytes, %d taken", len(frame), n)
	}
	most := frameOverhead
	for _, b := range packets {
		most += len(b) + packetOverhead
	}
	if n > most && !p.long {
		p.t.Fatalf("a frame of %d bytes for %d packets of %d bytes", n, len(packets), most-frameOverhead-packetOverhead*len(packets))
	}
	p.bytes[d] += n
	p.count[d]++
	if !p.late {
		p.same(d)
	}
	if len(got) != len(packets) {
		p.t.Fatalf("%d packets sent, %d rebuilt", len(packets), len(got))
	}
	want := map[string][]string{}
	for _, b := range packets {
		want[flowName(b)] = append(want[flowName(b)], string(b))
	}
	for _, b := range got {
		q := want[flowName(b)]
		if len(q) == 0 || q[0] != string(b) {
			p.t.Fatalf("flow %x: rebuilt %x, expected first of %x", flowName(b), b, q)
		}
		want[flowName(b)] = q[1:]
	}
}

// settle has all that waits arrive, and compares what the ends remember then.
func (p *pair) settle(now time.Duration) {
	p.t.Helper()
	for d := range p.ends {
		p.flush(d, now)
		for len(p.way[d]) > 0 {
			p.deliver(d)
		}
	}
	for d := range p.ends {
		p.report(d)
	}
}

// report carries a frame without packets over: from then on the reader knows what
// the writer of direction d has rebuilt.
func (p *pair) report(d int) {
	p.t.Helper()
	m := &p.ends[d].Merger
	if _, _, err := p.ends[1-d].Expander.Expand(m.Report(nil, p.now)); err != nil {
		p.t.Fatalf("a report of direction %d: %v", d, err)
	}
	p.compare(d, true)
}

// run adds a packet and flushes when that is due.
func (p *pair) run(d int, now time.Duration, packet []byte) {
	p.t.Helper()
	p.due(now)
	p.add(d, now, packet)
	p.due(now)
}

func (p *pair) due(now time.Duration) {
	p.t.Helper()
	for d := range p.ends {
		if at, _, ok := p.ends[d].Merger.Deadline(); ok && at <= now {
			p.flush(d, at)
		}
	}
}

// flowName is the same for packets whose order matters: those that can be told
// to be of one flow.
func flowName(b []byte) string {
	switch {
	case len(b) >= 24 && b[0]>>4 == 4:
		return string(b[9:10]) + string(b[12:24])
	case len(b) >= 44 && b[0]>>4 == 6:
		return string(b[6:7]) + string(b[8:44])
	}
	return ""
}

// A segment is what packet makes a packet from.
type segment struct {
	client, port int  // the client is 10.1.0.0+client
	down         bool // from the broker
	seq, ack     uint32
	flags        uint8
	window       uint16
	id           uint16
	tsval, tsecr uint32 // no option where both are 0
	options      []byte // behind those, of a length that is a multiple of 4
	payload      []byte
}

func (s segment) packet() []byte {
	stamp := 0
	if s.tsval|s.tsecr != 0 {
		stamp = 12
	}
	tcp := 20 + stamp + len(s.options)
	b := make([]byte, 20+tcp, 20+tcp+len(s.payload))
	b[0], b[6], b[8], b[9] = 0x45, 0x40, 64, 6
	binary.BigEndian.PutUint16(b[2:], uint16(cap(b)))
	binary.BigEndian.PutUint16(b[4:], s.id)
	client, broker := []byte{10, 1, byte(s.client >> 8), byte(s.client)}, []byte{10, 2, 0, 10}
	t := b[20:]
	src, dst := client, broker
	binary.BigEndian.PutUint16(t, uint16(40000+s.port))
	binary.BigEndian.PutUint16(t[2:], 1883)
	if s.down {
		src, dst = broker, client
		binary.BigEndian.PutUint16(t, 1883)
		binary.BigEndian.PutUint16(t[2:], uint16(40000+s.port))
	}
	copy(b[12:], src)
	copy(b[16:], dst)
	binary.BigEndian.PutUint16(b[10:], ^checksum.Checksum(b[:20], 0))
	binary.BigEndian.PutUint32(t[4:], s.seq)
	binary.BigEndian.PutUint32(t[8:], s.ack)
	t[12], t[13] = byte(tcp/4<<4), s.flags
	binary.BigEndian.PutUint16(t[14:], s.window)
	copy(t[20+stamp:], s.options)
	if stamp != 0 {
		copy(t[20:], []byte{1, 1, 8, 10})
		binary.BigEndian.PutUint32(t[24:], s.tsval)
		binary.BigEndian.PutUint32(t[28:], s.tsecr)
	}
	b = append(b, s.payload...)
	fixSum(b)
	return b
}

// fixSum sets the TCP checksum of an IPv4 packet right.
func fixSum(b []byte) {
	t := b[20:]
	t[16], t[17] = 0, 0
	sum := checksum.Checksum(b[12:20], 0)
	sum = checksum.Combine(sum, checksum.Combine(6, uint16(len(t))))
	binary.BigEndian.PutUint16(t[16:], ^checksum.Checksum(t, sum))
}

// publish is an MQTT PUBLISH: QoS 0, or 1 where id is not 0.
func publish(topic, body string, id int) []byte {
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

// A fanout is a broker that sends every message to all of its clients, and they
// acknowledge.
type fanout struct {
	flows []segment // down
	now   time.Duration
	round int
}

func newFanout(n int) *fanout {
	f := &fanout{flows: make([]segment, n)}
	for i := range f.flows {
		f.flows[i] = segment{
			client: i, port: i, down: true, flags: 0x18, window: 64,
			seq: uint32(i) * 7919, ack: uint32(i) * 104729, id: uint16(i * 31), tsval: uint32(i)*65537 + 1, tsecr: uint32(i)*257 + 1,
		}
	}
	return f
}

// send emits the next round of messages, and the acknowledgements a little later.
func (f *fanout) send(payload func(i int) []byte, emit func(d int, now time.Duration, packet []byte)) {
	f.round++
	f.now += 50 * time.Millisecond
	ms := uint32(f.now / time.Millisecond)
	for i := range f.flows {
		s := f.flows[i]
		s.payload = payload(i)
		s.tsval += ms
		s.tsecr += ms - 50
		emit(1, f.now, s.packet())
		f.flows[i].seq += uint32(len(s.payload))
		f.flows[i].id++
	}
	for i := range f.flows {
		s := f.flows[i]
		a := segment{
			client: s.client, port: s.port, flags: 0x10, window: 63, id: uint16(i*17 + f.round),
			seq: s.ack, ack: s.seq, tsval: s.tsecr + ms, tsecr: s.tsval + ms,
		}
		emit(0, f.now+100*time.Microsecond, a.packet())
	}
}

// same checks that the two ends of direction d remember the same: with every frame
// where there is little, else as often as it takes about as long as the rest. A drift
// does not go away again before what drifted gives way.
func (p *pair) same(d int) {
	p.t.Helper()
	if p.count[d]%(1+codectest.Size(p.ends[d].Merger.encoder)/64) == 0 {
		p.compare(d, p.count[d]%16 == 0)
	}
}

// compare checks that they do, down to the models or without them.
func (p *pair) compare(d int, models bool) {
	p.t.Helper()
	if at := codectest.Differ(p.ends[d].Merger.encoder, p.ends[1-d].Expander.decoder, models); at != "" {
		p.t.Fatalf("the ends drift apart with frame %d of direction %d: %s", p.count[d], d, at)
	}
}

// small are limits under which every table that both ends share has n places, so
// that it is full at once, evicts, and meets again what it evicted. A frame has room
// for as many packets: with less for their bytes it would be full with the first.
func small(n int) wire.Limits {
	return wire.Limits{Flows: uint32(n), Templates: uint32(n), Bodies: uint32(60 * n), Packets: uint32(n), Bytes: 2 * wire.MaxPacket}
}
