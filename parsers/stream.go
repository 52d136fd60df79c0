package parsers

import (
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers/ip"
)

// A Stream is what is remembered of one flow to find the messages in it. Its
// zero value is ready. It belongs to one goroutine and must not be copied once
// in use.
type Stream struct {
	scanner  Scanner      // nil until a protocol is recognised
	next     seqnum.Value // sequence number of the byte that comes next
	wait     uint16       // segments to let pass before the next probe
	protocol ProtocolID
	port     port  // what the ports say, once probes is not 0
	probes   uint8 // probes that failed, up to lastProbe
	failures uint8 // segments in a row in which the scanner found nothing
	started  bool  // next is valid
	fell     bool  // a scanner was given up: bindings no longer go unchecked
	inner    bool  // the bytes are those inside TLS records
}

const (
	// maxFailures is how many segments in a row a scanner may find nothing in.
	// It is more than a large message has segments after a loss, mostly.
	maxFailures = 32

	// The probes of a flow on a port that says nothing: every segment at first,
	// then after doubling pauses, which end at maxWait segments.
	freeProbes = 4
	lastProbe  = freeProbes + 6
	maxWait    = 1<<6 - 1

	// maxBehind is how far behind the expected byte a segment is taken for a
	// retransmission. Further away it is of another connection whose start was
	// not seen.
	maxBehind = 16 << 20
)

// Protocol returns the protocol that was recognised, Opaque until then.
func (st *Stream) Protocol() ProtocolID { return st.protocol }

// Scan appends the spans of a segment's payload to dst; their lengths add up to
// the payload's. Segments come in the order in which they were captured. The
// spans borrow from seg.Packet and from the Stream, until its next Scan.
func (st *Stream) Scan(reg *Registry, seg *Segment, dst []Span) []Span {
	payload := seg.Payload()
	switch {
	case seg.TransportLen == 0:
		return appendOpaque(dst, len(payload))
	case seg.Key.Proto == ip.UDP:
		if len(payload) == 0 {
			return dst
		}
		return st.advance(reg, &seg.Key, dst, payload)
	}

	seq := seqnum.Value(seg.Seq)
	if seg.Flags&FlagSYN != 0 {
		*st = Stream{started: true}
		seq = seq.Add(1) // a SYN takes one number, its data follows (RFC 9293, 3.4)
		st.next = seq
	}
	if !st.started {
		st.started = true
		st.next = seq
	}
	if len(payload) == 0 {
		return dst
	}
	if behind := seq.Size(st.next); seq.LessThan(st.next) && behind <= maxBehind {
		old := min(int(behind), len(payload))
		dst = st.again(dst, payload[:old])
		payload = payload[old:]
		if len(payload) == 0 {
			return dst
		}
	} else if seq != st.next {
		st.next = seq
		if st.scanner != nil {
			st.scanner.Lost()
		}
	}
	st.next.UpdateForward(seqnum.Size(len(payload)))
	return st.advance(reg, &seg.Key, dst, payload)
}

// ScanInner is Scan for what a TCP flow carries inside TLS records: bytes that come in
// their turn. What is not known to the caller it says by Lost.
func (st *Stream) ScanInner(reg *Registry, key *FlowKey, payload []byte, dst []Span) []Span {
	if len(payload) == 0 {
		return dst
	}
	st.inner = true
	return st.advance(reg, key, dst, payload)
}

// RescanInner is ScanInner for bytes that were scanned before.
func (st *Stream) RescanInner(payload []byte, dst []Span) []Span {
	if len(payload) == 0 {
		return dst
	}
	return st.again(dst, payload)
}

// Lost says that bytes are missing before the next ScanInner.
func (st *Stream) Lost() {
	if st.scanner != nil {
		st.scanner.Lost()
	}
}

// advance scans bytes in their turn.
func (st *Stream) advance(reg *Registry, key *FlowKey, dst []Span, payload []byte) []Span {
	if st.scanner == nil {
		st.recognise(reg, key, payload)
		if st.scanner == nil {
			return appendOpaque(dst, len(payload))
		}
	}
	had := len(dst)
	dst = st.scanner.Scan(dst, payload)
	found, exact := judge(dst[had:], len(payload))
	if !exact {
		st.scanner.Lost()
		dst = appendOpaque(dst[:had], len(payload))
	}
	if found && exact {
		st.failures = 0
		return dst
	}
	if st.failures++; st.failures >= maxFailures {
		*st = Stream{next: st.next, started: st.started, port: st.port, probes: lastProbe, wait: maxWait, fell: true}
	}
	return dst
}

// again scans bytes that were seen before.
func (st *Stream) again(dst []Span, payload []byte) []Span {
	if st.scanner == nil {
		return appendOpaque(dst, len(payload))
	}
	had := len(dst)
	dst = st.scanner.Rescan(dst, payload)
	if _, exact := judge(dst[had:], len(payload)); !exact {
		dst = appendOpaque(dst[:had], len(payload))
	}
	return dst
}

// recognise looks for the protocol of a flow: by configuration, by content, and
// by its port where the content agrees.
func (st *Stream) recognise(reg *Registry, key *FlowKey, payload []byte) {
	if st.probes == 0 {
		st.port = reg.port(key, st.inner)
		st.probes = 1
	}
	// Where the port is known every segment is worth a look, since a message may
	// begin with any.
	hint, fits := st.port.id, None
	switch {
	case hint != Opaque:
		fits = reg.protocols[hint].Probe(payload)
	case st.port.bound:
		return
	}
	if fits == Strong || (hint != Opaque && st.port.bound && (fits != None || !st.fell)) {
		st.adopt(reg, hint)
		if fits == None {
			st.scanner.Lost()
		}
		return
	}
	if st.wait > 0 {
		st.wait--
	} else if id := reg.strong(payload, key.Proto == ip.UDP); id != Opaque {
		st.adopt(reg, id)
		return
	} else if st.probes++; st.probes > freeProbes {
		st.probes = min(st.probes, lastProbe)
		st.wait = 1<<(st.probes-freeProbes) - 1
	}
	if fits == Weak {
		st.adopt(reg, hint)
	}
}

func (st *Stream) adopt(reg *Registry, id ProtocolID) {
	st.protocol = id
	st.scanner = reg.protocols[id].New(id)
	st.failures = 0
}

// judge says whether spans hold anything but opaque bytes, and whether they
// cover n bytes exactly.
func judge(spans []Span, n int) (found, exact bool) {
	sum := 0
	for i := range spans {
		if spans[i].Len <= 0 {
			return false, false
		}
		sum += spans[i].Len
		found = found || spans[i].Protocol != Opaque
	}
	return found, sum == n
}

// appendOpaque appends the span of n bytes about which nothing is known.
func appendOpaque(dst []Span, n int) []Span {
	if n == 0 {
		return dst
	}
	return append(dst, OpaqueSpan(n))
}

// OpaqueSpan returns the span of n bytes about which nothing is known.
func OpaqueSpan(n int) Span { return Span{Len: n, Body: 0} }
