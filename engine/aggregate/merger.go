package aggregate

import (
	"bytes"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
	"sheaf/parsers"
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
	writer   writer
	decoder  parsers.Decoder
	seg      parsers.Segment
	spans    []parsers.Span
	header   []byte // scratch: a header zeroed
	runs     []run  // scratch: its runs
	sack     sack   // scratch: its SACK blocks
	rebuilt  []byte // scratch: a header rebuilt
	plain    []byte // scratch: a payload without its masks
	pending  pending
	schedule schedule
	coder    model.Coder
	control  []byte
	stats    Stats
}

// A source is what the Merger keeps of a flow beyond its context.
type source struct {
	flow
	stream parsers.Stream
	shape  *layout // of its last segment, which may still be pending
	index  int     // in the list of all
	used   time.Duration
	frame  uint64 // number of the frame in which it was last pending, plus one
	group  int32  // its last group in that frame
	acks   flowAcks
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
	if src := m.admit(now, packet); src != nil {
		src.crc = p.digest.Add(src.crc, packet)
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
	if src := m.writer.sources[*key]; src != nil {
		return src.stream.Protocol()
	}
	return parsers.Opaque
}

// admit puts the packet into a group, an old one or a new one. It returns whose
// it is, nil for packets that can only be carried as they are.
func (m *Merger) admit(now time.Duration, packet []byte) *source {
	seg := &m.seg
	if m.decoder.Decode(packet, seg) != nil {
		return nil
	}
	f := fields{sack: &m.sack}
	h, ok := dissect(seg, m.header, &f)
	if !ok {
		return nil
	}
	if seg.Fragment {
		seg.Key.SrcPort, seg.Key.DstPort = 0, 0
	}
	k := kindOf(&seg.Key)
	if k.tcp() != (seg.Key.Proto == protoTCP && seg.TransportLen > 0) {
		return nil
	}
	f.opaque = m.opaque(h, k)
	m.header = h
	src := m.writer.source(now, &seg.Key)
	p := &m.pending
	if frame := m.writer.frames + 1; src.frame != frame {
		src.frame, src.group, src.acks.inFrame = frame, -1, 0
	}
	if src.shape == nil || !bytes.Equal(src.shape.bytes, h) || src.shape.ip != seg.HeaderLen {
		l := m.writer.layout(h, seg.HeaderLen, seg.Key.Proto)
		if l == nil || l.kind != k {
			m.writer.abandon(src)
			return nil
		}
		src.shape = l
	}
	f.layout = src.shape
	f.sumMode = unresolved

	flags := uint8(0)
	if k.tcp() {
		flags = seg.Flags
	}
	payload := seg.Payload()
	// The proof: the header is what the fields make of it, or the packet is not
	// taken apart.
	n := len(h)
	m.rebuilt = appendHeader(m.rebuilt[:0], &src.key, &f, flags, len(payload), checksum.Checksum(payload, 0))
	if !bytes.Equal(m.rebuilt, packet[:n]) {
		m.writer.abandon(src)
		return nil
	}
	p.beside += n
	if f.sack = nil; src.shape.sack != 0 {
		f.sack = m.writer.hold(0)
		*f.sack = m.sack
	}
	m.spans = src.stream.Scan(m.cfg.Registry, seg, m.spans[:0])
	payload = m.unmask(payload)
	g := m.group(src, k, flags, payload)
	p.list[g].members = append(p.list[g].members, member{flow: &src.flow, fields: f})
	src.group = int32(g)
	m.await(now, src, g)
	return src
}

// await tells the schedule of the newest member of a group, which is of src.
func (m *Merger) await(now time.Duration, src *source, index int) {
	g, wait := &m.pending.list[index], &m.pending.groups[index].wait
	t := traits{
		control: g.flags&(flagSYN|flagFIN|flagRST) != 0,
		icmp:    g.kind == kindIP4 && src.key.Proto == protoICMP || g.kind == kindIP6 && src.key.Proto == protoICMPv6,
		tcp:     g.kind.tcp(),
		ack:     seqnum.Value(m.seg.Ack),
		payload: len(g.spans) > 0,
		message: mostUrgent(g.spans),
	}
	class := m.schedule.classify(now, t, &src.acks)
	if wait.members == 0 && class != parsers.ClassUrgent {
		wait.expected = m.writer.expect(g)
	}
	m.schedule.add(now, class, wait)
}

// mostUrgent returns the class of the span that may wait least.
func mostUrgent(spans []span) parsers.Class {
	class := parsers.ClassAck
	for i := range spans {
		switch spans[i].class {
		case parsers.ClassUrgent:
			return parsers.ClassUrgent
		case parsers.ClassData:
			class = parsers.ClassData
		}
	}
	return class
}

const (
	protoICMP   = 1
	protoICMPv6 = 58
)

// verbatim makes the packet a group of its own.
func (m *Merger) verbatim(now time.Duration, packet []byte) {
	m.stats.Verbatim++
	p := &m.pending
	start := len(p.store)
	p.store = append(p.store, packet...)
	g := p.room(kindRaw, 0)
	g.spans = append(g.spans, span{
		body:   p.store[start:len(p.store):len(p.store)],
		advice: advice{key: verbatimKey ^ uint64(len(packet))},
	})
	p.groups = append(p.groups, pendingGroup{})
	p.barrier = int32(len(p.list)) - 1 // whose flow it is nobody knows, so its place is among all
	m.schedule.add(now, parsers.ClassData, &p.groups[len(p.groups)-1].wait)
}

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
func (m *Merger) Unreported() uint64 { return m.writer.rebuilt - m.writer.memory.named }

func (m *Merger) appendFrame(dst []byte, now time.Duration) []byte {
	p := &m.pending
	start := len(dst)
	c := &m.coder
	c.Write(m.control[:0])
	m.writer.write(c, now, p.list, m.schedule.packets)
	m.control = c.Finish()
	literals, coding := m.writer.squeeze()
	dst = wire.AppendFrame(dst, wire.Frame{Digest: p.digest, Control: m.control, Literals: literals, Coding: coding})

	s := &m.stats
	s.Frames++
	waited, longest := m.schedule.waits(now)
	s.Waited += waited
	s.Longest = max(s.Longest, longest)
	m.schedule.flushed(now)
	s.BytesFrames += uint64(len(dst) - start)
	m.writer.settleDebts(len(dst)-start-len(m.control), len(literals))
	p.reset()
	m.writer.texts = m.writer.texts[:0]
	m.writer.sacks = m.writer.sacks[:0]
	return dst
}

// Stats returns what was counted so far. It is a view: valid until the next
// call of any method.
func (m *Merger) Stats() *Stats { return &m.stats }
