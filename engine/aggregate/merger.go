package aggregate

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/aggregate/seal"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// A Merger is the writing end of one direction of a lane. Add takes packets in;
// when Deadline has passed, Flush writes them as a frame:
//
//	Add:   packet -> Segment -> fields and spans -> a group of the frame to be
//	Flush: groups -> control field, literals -> frame
//
// It keeps no packet longer than until the next Flush. It is not safe for
// concurrent use, also not together with the Expander of its lane.
type Merger struct {
	cfg      Config
	encoder  *codec.Encoder
	decoder  parsers.Decoder
	literals compressor
	flows    flows
	pending  pending
	schedule schedule
	stats    Stats
	account  account

	seg     parsers.Segment
	spans   []parsers.Span
	plain   []byte       // scratch: a payload without its masks
	opened  []byte       // scratch: what is in the records of a payload
	pieces  []seal.Piece // of opened
	ticket  [2]int       // where one is in the payload at hand, and ends; 0 for none
	tls     parsers.ProtocolID
	reuse   []codec.CID
	control []byte
	bodies  []byte // the literals of the frame, not compressed
}

func (m *Merger) init(cfg Config, enc *codec.Encoder) {
	m.cfg = cfg
	m.encoder = enc
	m.literals.level = cfg.Compression
	if cfg.Registry != nil {
		m.tls, _ = cfg.Registry.Lookup("tls")
	}
	m.flows = flows{
		byKey: make(map[parsers.FlowKey]*flow), frame: 1,
		limit: int(cfg.Limits.Flows), maxIdle: cfg.MaxIdle,
	}
	m.pending.init()
	m.schedule.times = times{
		window: cfg.Window, quiet: cfg.Quiet, ackWait: cfg.AckWait, urgentInterval: cfg.UrgentInterval,
	}
	m.account = account{stats: &m.stats, byEvent: cfg.Similarity&ByEvent != 0}
}

// Add takes an IP packet, borrowed for the call. Time is whatever clock the
// caller uses throughout; it must not run backwards. Once Deadline says
// FlushFull the frame takes no more: an Add before the Flush panics.
//
// The error is ErrLength, bare: the packet is not carried, counts as Refused in
// Stats, and all else goes on. Whatever has the length of a packet is carried.
func (m *Merger) Add(now time.Duration, packet []byte) error {
	if m.schedule.full {
		panic("aggregate: Add to a full frame")
	}
	if len(packet) == 0 || len(packet) > wire.MaxPacket {
		m.stats.Refused++
		return ErrLength
	}
	m.stats.Packets++
	m.stats.BytesIn += uint64(len(packet))
	p := &m.pending
	if f := m.admit(now, packet); f != nil {
		f.crc = p.digest.Add(f.crc, packet)
	} else {
		m.verbatim(now, packet)
		p.digest.AddVerbatim(packet)
	}
	p.beside += packetOverhead
	p.bytes += len(packet)
	if m.fills() {
		m.schedule.fill()
	}
	return nil
}

// Protocol returns the protocol that was recognised in a flow, Opaque where none was,
// or where the flow is not remembered.
func (m *Merger) Protocol(key *parsers.FlowKey) parsers.ProtocolID {
	if f := m.flows.byKey[*key]; f != nil {
		return f.stream.Protocol()
	}
	return parsers.Opaque
}

// admit puts the packet into a group, an old one or a new one. It returns whose
// it is, nil for packets that can only be carried as they are.
func (m *Merger) admit(now time.Duration, packet []byte) *flow {
	seg := &m.seg
	if m.decoder.Decode(packet, seg) != nil {
		return nil
	}
	k, ok := m.encoder.Dissect(seg)
	if !ok {
		return nil
	}
	f := m.flows.get(now, &seg.Key)
	flags := uint8(0)
	if k.TCP() {
		flags = seg.Flags
	}
	mb := m.encoder.Member(&f.Flow, seg, flags)
	if mb == nil {
		m.flows.abandon(f)
		return nil
	}
	if !f.met {
		f.met, f.records = true, m.records(f)
	}
	p := &m.pending
	p.beside += len(packet) - len(seg.Payload())
	if _, announced := f.CID(); !announced && f.group == 0 {
		p.fresh++
	}
	payload, opened := m.scan(f)
	s := shape{kind: k, flags: flags, opened: opened}
	if opened {
		mb.Sealed = len(seg.Payload())
	}
	if f.records != nil {
		s.secrets = f.records.conn.Secrets()
		p.beside += len(s.secrets)
		m.ended(f)
	}
	f.group = m.group(f, s, m.unmask(payload))
	g := &p.list[f.group.index()]
	g.Members = append(g.Members, *mb)
	m.await(now, f)
	return f
}

// await tells the schedule of the newest segment of a flow.
func (m *Merger) await(now time.Duration, f *flow) {
	g, wait := &m.pending.list[f.group.index()], &m.pending.groups[f.group.index()].wait
	t := traits{
		control: g.Flags&(parsers.FlagSYN|parsers.FlagFIN|parsers.FlagRST) != 0,
		icmp:    g.Kind == codec.IP4 && f.Key.Proto == ip.ICMP || g.Kind == codec.IP6 && f.Key.Proto == ip.ICMPv6,
		tcp:     g.Kind.TCP(),
		ack:     seqnum.Value(m.seg.Ack),
		payload: len(g.Spans) > 0,
		message: mostUrgent(g.Spans),
	}
	class := m.schedule.classify(now, t, &f.acks)
	if wait.members == 0 && class != parsers.ClassUrgent {
		wait.expected = m.encoder.Expected(g)
	}
	m.schedule.add(now, class, wait)
}

// mostUrgent returns the class of the span that may wait least.
func mostUrgent(spans []codec.Span) parsers.Class {
	class := parsers.ClassAck
	for i := range spans {
		switch spans[i].Class {
		case parsers.ClassUrgent:
			return parsers.ClassUrgent
		case parsers.ClassData:
			class = parsers.ClassData
		}
	}
	return class
}

// verbatim makes the packet a group of its own.
func (m *Merger) verbatim(now time.Duration, packet []byte) {
	m.stats.Verbatim++
	p := &m.pending
	start := len(p.store)
	p.store = append(p.store, packet...)
	g := p.room(codec.Verbatim, 0)
	g.Spans = append(g.Spans, codec.Span{
		Body:   p.store[start:len(p.store):len(p.store)],
		Advice: codec.Advice{Key: verbatimKey ^ uint64(len(packet))},
	})
	p.groups = append(p.groups, pendingGroup{})
	p.barrier = groupNumber(len(p.list)) // whose flow it is nobody knows, so its place is among all
	m.schedule.add(now, parsers.ClassData, &p.groups[len(p.groups)-1].wait)
}

// verbatimKey is what packets that are carried as they are have in common: those of one
// length are compared with one another.
const verbatimKey = 0x76657262

// Pending returns how many packets wait.
func (m *Merger) Pending() int { return m.schedule.packets }

// Deadline returns when the next Flush is due, and for what reason. It reports
// false while nothing waits.
func (m *Merger) Deadline() (at time.Duration, why Reason, ok bool) { return m.schedule.deadline() }

// Flush appends a frame with all that waits to dst, and returns dst as it was
// where nothing does. The frame can be expanded once, in its order, by the
// Expander at the other end.
func (m *Merger) Flush(dst []byte, now time.Duration, why Reason) []byte {
	if m.schedule.packets == 0 {
		return dst
	}
	m.stats.Flushes[why]++
	return m.appendFrame(dst, now)
}

// Report appends a frame that may hold no packet to dst: it tells the peer which
// of its frames were rebuilt, so that it can see that the lane makes progress
// where nothing goes back by itself.
func (m *Merger) Report(dst []byte, now time.Duration) []byte {
	return m.appendFrame(dst, now)
}

// Unreported returns how many frames of the peer were rebuilt that no frame has
// told the peer of.
func (m *Merger) Unreported() uint64 { return m.encoder.Unreported() }

func (m *Merger) appendFrame(dst []byte, now time.Duration) []byte {
	p := &m.pending
	start := len(dst)
	m.reuse = m.flows.reuse(m.reuse[:0], p.fresh, m.encoder.Contexts(), now)
	r := m.encoder.Encode(codec.Frame{Now: now, Groups: p.list, Reuse: m.reuse}, m.control[:0], m.bodies[:0])
	for i := range p.list {
		clear(p.list[i].Secrets) // told once
	}
	m.control, m.bodies = r.Control, r.Literals
	literals, coding := m.literals.compress(r.Literals)
	dst = wire.AppendFrame(dst, wire.Frame{Digest: p.digest, Control: r.Control, Literals: literals, Coding: coding})

	if m.cfg.TLS != nil {
		m.cfg.TLS.Written(m.encoder.Written())
	}

	s := &m.stats
	s.Frames++
	s.BytesFrames += uint64(len(dst) - start)
	s.Contexts += uint64(p.fresh)
	for _, c := range m.reuse {
		if c != (codec.CID{}) {
			s.Evicted++
		}
	}
	waited, longest := m.schedule.waits(now)
	s.Waited += waited
	s.Longest = max(s.Longest, longest)
	m.account.frame(p.list, r.Head, len(dst)-start-len(r.Control), len(literals))
	m.schedule.flushed(now)
	m.flows.frame++
	p.reset()
	return dst
}

// learn takes in what a frame of the peer changed that has just been decoded.
func (m *Merger) learn(d *codec.Decoder) {
	for n := range m.encoder.Learned(d) {
		if f := m.flows.byKey[n.Key.Reverse()]; f != nil {
			m.encoder.Pair(&f.Flow, n)
		} else {
			m.encoder.Unpaired(n)
		}
	}
}

// Stats returns what was counted so far. It is a view: valid until the next
// call of any method.
func (m *Merger) Stats() *Stats { return &m.stats }
