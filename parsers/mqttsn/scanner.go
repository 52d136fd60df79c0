package mqttsn

import "sheaf/parsers"

// A Scanner finds the MQTT-SN messages of one flow, of which every datagram is
// one. It implements parsers.Scanner and remembers nothing.
type Scanner struct{ protocol parsers.ProtocolID }

// NewScanner returns a scanner for one flow.
func NewScanner(id parsers.ProtocolID) *Scanner { return &Scanner{protocol: id} }

// Lost implements parsers.Scanner. Datagrams stand alone.
func (s *Scanner) Lost() {}

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, datagram []byte) []parsers.Span {
	return s.Scan(dst, datagram)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, b []byte) []parsers.Span {
	if len(b) == 0 {
		return dst
	}
	var f front
	if parseFront(b, &f) != ok {
		return append(dst, parsers.OpaqueSpan(len(b)))
	}
	k := &kinds[f.name]
	event, n := f.event(b)
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = len(b)
	sp.Protocol = s.protocol
	sp.Name = uint8(f.name)
	sp.Class = k.class
	sp.Event = event
	sp.Key = parsers.MessageKey(s.protocol, sp.Name, event, n)
	sp.Body = f.body
	// Without a quality of service there is no message ID, and 0 in its place.
	if f.id > 0 && (b[f.id] != 0 || b[f.id+1] != 0) {
		sp.AddHole(f.id, 2, parsers.HoleBig, k.counter, 1)
	}
	return dst
}

// event returns the event of a message and a length that tells the types of
// topic IDs apart too.
func (f *front) event(b []byte) (event []byte, n int) {
	switch f.name {
	case PUBLISH:
		return b[f.topic : f.topic+2], 2 + int(f.flags&maskTopicType)<<16
	case SUBSCRIBE, UNSUBSCRIBE:
		if f.text.len == 0 {
			return b[f.topic : f.topic+2], 2 + topicPredefined<<16
		}
		return f.text.of(b), f.text.len
	case REGISTER:
		return f.text.of(b), f.text.len
	}
	return nil, 0
}
