package aggregate

import (
	"bytes"
	"time"

	"github.com/cespare/xxhash/v2"
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
	cfg     Config
	writer  writer
	decoder parsers.Decoder
	seg     parsers.Segment
	spans   []parsers.Span
	header  []byte // scratch: a header zeroed
	runs    []run  // scratch: its runs
	sack    sack   // scratch: its SACK blocks
	rebuilt []byte // scratch: a header rebuilt
	plain   []byte // scratch: a payload without its masks
	store   []byte // bodies of the pending groups
	events  []byte // their events
	pending pending
	coder   model.Coder
	control []byte
	alone   int           // frames of one lone segment in a row
	loneAt  time.Duration // when that of the last such frame came
	paced   time.Duration // before which no frame is written for urgency
	pace    time.Duration // how long that was from the last one
	stats   Stats
}

// pending is what waits for the next Flush.
type pending struct {
	groups  []pendingGroup
	list    []group
	first   map[uint64]int32 // the first group of a key
	packets int
	bytes   int
	beside  int // bytes that may be sent beside the bodies: headers, what fills holes
	digest  wire.Digest
	waited  time.Duration // of its packets together, until the last came
	barrier int32         // index of the last group that nothing may overtake

	oldest, firstData, firstAck, last, urgentAt time.Duration
	data, acks, urgent, full                    bool
	acked, halfAcked                            bool // all of a known set have acknowledged; half of one
	lone                                        int  // groups of data of a single segment that are not of a known set
	waiting, complete, half, bursts             int  // groups of data; those that nobody is missing from; or half at most; those that may be a burst
}

// A pendingGroup is what the Merger knows of a group beyond what is written.
type pendingGroup struct {
	next     int32 // an older group of the same key, plus one
	complete bool
	half     bool // of the known set is there
	expect   int  // members of the known set, 0 if there is none
}

// A source is what the Merger keeps of a flow beyond its context.
type source struct {
	flow
	stream parsers.Stream
	shape  *layout // of its last segment, which may still be pending
	index  int     // in the list of all
	used   time.Duration
	frame  uint64        // number of the frame in which it was last pending, plus one
	group  int32         // its last group in that frame
	acks   uint16        // pure acknowledgements in that frame
	acked  time.Duration // when its last message came that only acknowledges
	told   seqnum.Value  // what it acknowledged last without data; 0 for nothing
}

// Add takes an IP packet, borrowed for the call. Time is whatever clock the
// caller uses throughout; it must not run backwards. Once Deadline says
// FlushFull the frame takes no more: an Add before the Flush panics.
//
// The error is ErrLength, bare: the packet is not carried, counts as Refused in
// Stats, and all else goes on. Whatever has the length of a packet is carried.
func (m *Merger) Add(now time.Duration, packet []byte) error {
	if m.pending.full {
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
	if p.packets == 0 {
		p.oldest, p.last = now, now
	}
	p.waited += time.Duration(p.packets) * (now - p.last)
	p.last = now
	p.packets++
	p.bytes += len(packet)
	p.full = m.fills()
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

// maxSteps bounds the search for a group to join.
const maxSteps = 16

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
		src.frame, src.group, src.acks = frame, -1, 0
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
	pg := &p.groups[g]
	at := &p.list[g]
	at.members = append(at.members, member{flow: &src.flow, fields: f})
	src.group = int32(g)
	m.wait(now, src, pg, at, flags)
	return src
}

// group finds the group that the segment may join, or makes one. It appends the
// values of the segment's holes to it.
func (m *Merger) group(src *source, k kind, flags uint8, payload []byte) (index int) {
	p := &m.pending
	key := uint64(k)<<8 | uint64(flags)
	if len(m.spans) > 0 {
		first := &m.spans[0]
		v := first.Key
		if first.Protocol == parsers.Opaque || first.Encrypted {
			v = xxhash.Sum64(payload)
		}
		key ^= v * 0x9e3779b97f4a7c15
	}
	start := len(m.store)
	m.storeBodies(payload)
	p.beside += len(payload) - (len(m.store) - start) // what fills its holes
	// The newest group of the key comes first. Of those behind the flow's last
	// segment the oldest is best: it leaves the others to segments still to come.
	found := int32(0)
	behind := max(src.group, p.barrier) + 1
	steps := 0
	for i := p.first[key]; i > behind && steps < maxSteps; i = p.groups[i-1].next {
		if at := &p.list[i-1]; at.kind == k && at.flags == flags && m.matches(at, m.store[start:]) {
			found = i
		}
		steps++
	}
	if found != 0 {
		m.store = m.store[:start]
		m.appendValues(&p.list[found-1], payload)
		return int(found - 1)
	}
	at := m.room(k, flags)
	g := len(p.groups)
	p.groups = append(p.groups, pendingGroup{next: p.first[key]})
	p.first[key] = int32(g) + 1
	m.describe(src, at, start)
	m.appendValues(at, payload)
	return g
}

// room appends an empty group to the list, with the arrays of one of an earlier
// frame.
func (m *Merger) room(k kind, flags uint8) *group {
	p := &m.pending
	n := len(p.list)
	if n < cap(p.list) {
		p.list = p.list[:n+1]
	} else {
		p.list = append(p.list, group{})
	}
	g := &p.list[n]
	*g = group{kind: k, flags: flags, members: g.members[:0], spans: g.spans[:0], values: g.values[:0]}
	return g
}

// storeBodies appends the payload, without its holes, to the store.
func (m *Merger) storeBodies(payload []byte) {
	at := 0
	for i := range m.spans {
		s := &m.spans[i]
		from := at
		for k := range s.NumHoles {
			h := &s.Holes[k]
			m.store = append(m.store, payload[from:at+h.Off]...)
			from = at + h.Off + h.Len
		}
		m.store = append(m.store, payload[from:at+s.Len]...)
		at += s.Len
	}
}

// matches tells whether the segment whose spans are m.spans and whose stored
// bodies are b has the payload of g.
func (m *Merger) matches(g *group, b []byte) bool {
	if len(g.spans) != len(m.spans) {
		return false
	}
	for i := range m.spans {
		s, t := &m.spans[i], &g.spans[i]
		if len(b) < len(t.body) || !bytes.Equal(b[:len(t.body)], t.body) || s.NumHoles != len(t.holes) {
			return false
		}
		b = b[len(t.body):]
		out := 0
		for k := range s.NumHoles {
			if h := &s.Holes[k]; t.holes[k] != holeOf(h, out) {
				return false
			} else {
				out += h.Len
			}
		}
	}
	return len(b) == 0
}

// describe fills the spans of a new group, whose bodies are stored from start.
func (m *Merger) describe(src *source, g *group, start int) {
	for i := range m.spans {
		s := &m.spans[i]
		n := len(g.spans)
		if n < cap(g.spans) {
			g.spans = g.spans[:n+1]
		} else {
			g.spans = append(g.spans, span{})
		}
		t := &g.spans[n]
		holes := t.holes[:0]
		out, before := 0, 0
		for k := range s.NumHoles {
			h := &s.Holes[k]
			holes = append(holes, holeOf(h, out))
			out += h.Len
			if h.Off < s.Body {
				before += h.Len
			}
		}
		end := start + s.Len - out
		*t = span{body: m.store[start:end:end], holes: holes, advice: advice{
			key: s.Key, message: s.Key, split: s.Body - before, at: s.At,
			protocol: s.Protocol, name: s.Name, class: s.Class, sealed: s.Encrypted,
		}}
		if len(s.Event) > 0 {
			from := len(m.events)
			m.events = append(m.events, s.Event...)
			t.event = m.events[from:]
		}
		g.holes += len(holes)
		start = end
	}
}

// appendValues appends what fills the segment's holes to g.
func (m *Merger) appendValues(g *group, payload []byte) {
	if g.holes == 0 {
		return
	}
	at := 0
	for i := range m.spans {
		s := &m.spans[i]
		for k := range s.NumHoles {
			h := &s.Holes[k]
			field := payload[at+h.Off : at+h.Off+h.Len]
			if h.Kind == parsers.HoleText {
				g.values = append(g.values, textValue(len(m.writer.texts), len(field)))
				m.writer.texts = append(m.writer.texts, field...)
				continue
			}
			if h.Kind == parsers.HoleMask {
				g.values = append(g.values, uint64(h.Key)) // which need not be in the payload
				continue
			}
			v := uint64(0)
			for _, b := range field {
				if h.Kind == parsers.HoleBig {
					v = v<<8 | uint64(b)
				} else {
					v = v*10 + uint64(b-'0')
				}
			}
			g.values = append(g.values, v)
		}
		at += s.Len
	}
}

// verbatim makes the packet a group of its own.
func (m *Merger) verbatim(now time.Duration, packet []byte) {
	m.stats.Verbatim++
	p := &m.pending
	start := len(m.store)
	m.store = append(m.store, packet...)
	g := m.room(kindRaw, 0)
	g.spans = append(g.spans, span{
		body:   m.store[start:len(m.store):len(m.store)],
		advice: advice{key: verbatimKey ^ uint64(len(packet))},
	})
	p.groups = append(p.groups, pendingGroup{})
	p.barrier = int32(len(p.list)) - 1 // whose flow it is nobody knows, so its place is among all
	m.startData(now)
}

const verbatimKey = 0x76657262

// Pending returns how many packets wait.
func (m *Merger) Pending() int { return m.pending.packets }

// Flush appends a frame with all that waits to dst, and returns dst as it was
// where nothing does. The frame can be expanded once, in its order, by the
// Expander at the other end.
func (m *Merger) Flush(dst []byte, now time.Duration, why Reason) []byte {
	if m.pending.packets == 0 {
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
	m.writer.write(c, now, p)
	m.control = c.Finish()
	literals, coding := m.writer.squeeze()
	dst = wire.AppendFrame(dst, wire.Frame{Digest: p.digest, Control: m.control, Literals: literals, Coding: coding})

	m.company()
	s := &m.stats
	s.Frames++
	if p.packets > 0 {
		s.Waited += p.waited + time.Duration(p.packets)*(now-p.last)
		s.Longest = max(s.Longest, now-p.oldest)
	}
	if p.urgent {
		m.slow(now)
	}
	s.BytesFrames += uint64(len(dst) - start)
	m.writer.settleDebts(len(dst)-start-len(m.control), len(literals))
	*p = pending{groups: p.groups[:0], list: p.list[:0], first: p.first, barrier: -1}
	if len(p.first) > 1<<10 {
		p.first = make(map[uint64]int32) // clearing takes the time of the largest it ever was
	}
	clear(p.first)
	m.store, m.events, m.writer.texts = m.store[:0], m.events[:0], m.writer.texts[:0]
	m.writer.sacks = m.writer.sacks[:0]
	return dst
}

// Stats returns what was counted so far. It is a view: valid until the next
// call of any method.
func (m *Merger) Stats() *Stats { return &m.stats }
