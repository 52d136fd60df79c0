package aggregate

import (
	"errors"
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/engine/aggregate/seal"
	"sheaf/parsers"
	"sheaf/parsers/ip"
	"sheaf/parsers/tls"
)

// sealing is a Table as the Decoder sees it: what it cannot seal does not fit what is
// remembered.
type sealing struct{ *seal.Table }

func (s sealing) Tell(key *parsers.FlowKey, secrets []byte) error {
	return notSealed(s.Table.Tell(key, secrets))
}

func (s sealing) Seal(dst []byte, key *parsers.FlowKey, opened []byte) ([]byte, error) {
	dst, err := s.Table.Seal(dst, key, opened)
	return dst, notSealed(err)
}

func notSealed(err error) error {
	if errors.Is(err, seal.ErrOpened) {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return err
}

// tlsRecords are what the Merger has of a flow with TLS records that may be opened.
type tlsRecords struct {
	conn     *seal.Conn
	inner    parsers.Stream // of what is in the records
	messages tls.Dissector  // of the handshake
}

// records returns those of a flow that is new, nil where they are not to be opened.
func (m *Merger) records(f *flow) *tlsRecords {
	if m.cfg.TLS == nil || f.Key.Proto != ip.TCP {
		return nil
	}
	if c := m.cfg.TLS.Flow(f.used, &f.Key); c != nil {
		return &tlsRecords{conn: c}
	}
	return nil
}

// scan finds the spans of the segment at hand, m.seg, in its payload as it is or, where its
// records can be opened, in what is in them. It returns the payload that the spans are
// of.
func (m *Merger) scan(f *flow) (payload []byte, opened bool) {
	seg := &m.seg
	payload = seg.Payload()
	if r := f.records; r != nil {
		if seg.Flags&parsers.FlagSYN != 0 {
			r.conn.Begin(seg.Seq)
			r.inner, r.messages = parsers.Stream{}, tls.Dissector{}
		}
		if b, opened := m.open(r, payload); len(m.spans) > 0 {
			return b, opened
		}
	}
	m.spans = f.stream.Scan(m.cfg.Registry, seg, m.spans[:0])
	if f.stream.Protocol() == m.tls {
		m.countCarried(f)
	}
	return payload, false
}

// countCarried counts the protected records that begin in the segment at hand, of a server
// whose connections are not to be opened or of a connection whose records are not found.
func (m *Merger) countCarried(f *flow) {
	records := uint64(0)
	for i := range m.spans {
		if s := &m.spans[i]; s.Encrypted && s.At == 0 && s.Protocol == m.tls {
			records++
		}
	}
	if f.records != nil {
		f.records.conn.Passed(records)
		return
	}
	m.stats.TLS.Carried[seal.CarriedUnnamed] += records
}

// open opens a payload, where it can be, into m.opened. m.spans are those of what it
// returns, and empty where nothing is known of it.
func (m *Merger) open(r *tlsRecords, payload []byte) (b []byte, ok bool) {
	m.opened, m.pieces, ok = r.conn.Out.Open(m.opened[:0], m.pieces[:0], seqnum.Value(m.seg.Seq), payload)
	if out := &r.conn.Out; out.Missed {
		r.inner.Lost()
		r.messages = tls.Dissector{}
		out.Missed = false
	}
	r.messages.TLS13 = r.conn.TLS13()
	m.spans = m.spans[:0]
	b = m.opened
	if !ok {
		b = payload
	}
	if !ok && r.conn.Out.Lost() { // nobody knows what it is, so it may be another protocol
		return b, false
	}
	at := 0
	m.ticket = [2]int{}
	for i := range m.pieces {
		p := &m.pieces[i]
		if !ok { // then all of them are plain, one behind the other
			p.From, p.At, p.To = at, at, at+p.To-p.At
		}
		at = p.To
		m.piece(r, p, b)
	}
	if rest := len(b) - at; rest > 0 && at > 0 {
		m.spans = append(m.spans, parsers.OpaqueSpan(rest))
	}
	if !ok && len(m.spans) > 0 && !r.conn.Out.Again {
		return m.hello(r, b)
	}
	return b, ok
}

// hello marks a payload that is a ClientHello, and puts the name of the ticket that is in it
// in its place, where the peer knows it by name.
func (m *Merger) hello(r *tlsRecords, payload []byte) (b []byte, ok bool) {
	at, end := m.ticket[0], m.ticket[1]
	opened, prefix, named, ok := r.conn.AppendHello(m.opened[:0], payload, at, end)
	if m.opened = opened; !ok {
		return payload, false
	}
	m.spans[0].Len += prefix
	m.spans[0].Body += prefix
	if !named {
		return m.opened, true
	}
	for i, seen := 0, -prefix; i < len(m.spans); i++ {
		if s := &m.spans[i]; seen+s.Len > at {
			s.Len += seal.TicketNamed - (end - at)
			s.Body = s.Len
			break
		}
		seen += m.spans[i].Len
	}
	return m.opened, true
}

// piece appends the spans of a piece of b, of which the first has what leads to it.
func (m *Merger) piece(r *tlsRecords, p *seal.Piece, b []byte) {
	prefix, at, b := p.At-p.From, p.At, b[p.At:p.To]
	first := len(m.spans)
	messages := p.Type == uint8(tls.Handshake) && !p.Protected && !r.conn.Out.Again
	if head := min(tls.HeadLen, len(b)); messages && p.Plain && p.Start {
		prefix += head
		at += head
		b = b[head:]
	}
	switch {
	case len(b) == 0 && p.Plain: // a marker is all that there is
	case p.Closing:
		m.spans = append(m.spans, parsers.OpaqueSpan(len(b)))
	case messages:
		m.spans = r.messages.Cut(m.tls, b, m.spans)
		if t := r.messages.Ticket; t[1] > 0 {
			m.ticket = [2]int{at + t[0], at + t[1]}
		}
	case p.Plain || p.Type != uint8(tls.ApplicationData):
		m.spans = append(m.spans, tls.RecordSpan(m.tls, p.Type, len(b), p.Protected, p.Start))
	case r.conn.Out.Again:
		m.spans = r.inner.RescanInner(b, m.spans)
	default:
		m.spans = r.inner.ScanInner(m.cfg.Registry, &m.seg.Key, b, m.spans)
	}
	if p.Cut { // nobody says where the next message begins, but the next record
		r.messages = tls.Dissector{TLS13: r.messages.TLS13}
	}
	if prefix == 0 {
		return
	}
	if first == len(m.spans) {
		m.spans = append(m.spans, parsers.OpaqueSpan(prefix))
		return
	}
	s := &m.spans[first]
	s.Len += prefix
	s.Body += prefix
	for k := range s.NumHoles {
		s.Holes[k].Off += prefix
	}
}

// ended notes that the segment at hand ends its flow.
func (m *Merger) ended(f *flow) {
	if f.records != nil && m.seg.Flags&(parsers.FlagFIN|parsers.FlagRST) != 0 {
		f.records.conn.End(m.seg.Flags&parsers.FlagRST != 0)
	}
}
