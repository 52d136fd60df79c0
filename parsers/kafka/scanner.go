package kafka

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A Scanner finds Kafka messages in one flow. It remembers, beside the message it
// is in, at most maxFront bytes of a message whose beginning was cut.
type Scanner = parsers.Cutter[framer, *framer]

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[framer](id, maxFront, resyncBudget)
}

// A framer tells a parsers.Cutter of Kafka.
type framer struct {
	parsers.Sized
	side side
	last uint32 // correlation ID of the last message
}

// Begin implements parsers.Framer. What comes again was before the last message,
// mostly not by far.
func (fr *framer) Begin(again bool) {
	if again {
		fr.last -= maxAhead / 2
	}
}

// Front implements parsers.Framer.
func (fr *framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	var f front
	switch parseFront(b, fr.side, &f) {
	case ok:
	case short:
		fr.cut(f.name, whole)
		return parsers.NeedMore
	default:
		if fr.side == requests {
			fr.side = unknown // it may have been taken for that by chance
		}
		return parsers.Invalid
	}
	fr.side = f.side
	fr.last = binary.BigEndian.Uint32(b[f.id:])
	whole.Len = f.size
	whole.Name = uint8(f.name)
	whole.Class = f.name.class()
	whole.Body = f.body
	topic := f.topic.of(b)
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, len(topic))
	if len(topic) > 0 {
		whole.Event = topic
	}
	whole.AddHole(f.id, 4, parsers.HoleBig, counterCorrelation, 1)
	if c := f.client; c.len > 0 && c.len <= parsers.MaxHoleText {
		whole.AddHole(c.off, c.len, parsers.HoleText, counterClient, 0)
	}
	if at := f.session; at > 0 {
		whole.AddHole(at, 4, parsers.HoleBig, counterSession, 0)
		whole.AddHole(at+4, 4, parsers.HoleBig, counterEpoch, 1)
	}
	return parsers.Complete
}

// cut says what a message may be whose front is cut.
func (fr *framer) cut(name Name, whole *parsers.Span) {
	switch {
	case name != 0:
	case fr.side == responses:
		name = Response
	default:
		name = Request
	}
	whole.Name = uint8(name)
	whole.Class = name.class()
}

// Resync implements parsers.Framer.
func (fr *framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, fr.side, fr.last, begin, &budget)
	return n, budget
}
