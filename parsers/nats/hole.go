package nats

import (
	"bytes"

	"sheaf/parsers"
)

// A hole is a field of the flow: where it is in the message, and what follows.
type hole struct {
	off           int32
	len           uint8
	kind          parsers.HoleKind
	counter, step uint8
}

// holes are those of a message, in the order of their offsets.
type holes struct {
	list [parsers.MaxHoles]hole
	n    uint8
}

func (h *holes) add(x hole) {
	if h.n < parsers.MaxHoles {
		h.list[h.n] = x
		h.n++
	}
}

// number adds a field that is mostly a number, else a short text.
func (h *holes) number(b []byte, a arg, counter, step, text uint8) {
	switch {
	case counts(a.of(b)):
		h.add(hole{a.off, uint8(a.len), parsers.HoleDecimal, counter, step})
	case a.len <= parsers.MaxHoleText:
		h.add(hole{a.off, uint8(a.len), parsers.HoleText, text, 0})
	}
}

// counts says whether b is a decimal number as a HoleDecimal wants it.
func counts(b []byte) bool {
	if len(b) == 0 || len(b) > 19 || len(b) > 1 && b[0] == '0' {
		return false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// inbox says whether a subject is an inbox: the first token is _INBOX, or a
// prefix of somebody's own that begins so, and others follow.
func inbox(s []byte) bool {
	const prefix = "_INBOX"
	if len(s) <= len(prefix) || s[0] != '_' || string(s[:len(prefix)]) != prefix {
		return false
	}
	return bytes.IndexByte(s, '.') > 0
}

// inbox adds an inbox of the flow's own. One that a client makes for all of its
// requests ends in a token for each of them, which some count up and others draw
// at random: the latter belongs to the message.
func (h *holes) inbox(b []byte, a arg) {
	s := a.of(b)
	last := bytes.LastIndexByte(s, '.')
	tail := arg{a.off + int32(last) + 1, a.len - int32(last) - 1}
	if bytes.IndexByte(s, '.') == last {
		last, tail = len(s), arg{}
	}
	if last > parsers.MaxHoleText {
		return
	}
	h.add(hole{a.off, uint8(last), parsers.HoleText, textInbox, 0})
	if tail.len > 0 && counts(tail.of(b)) {
		h.add(hole{tail.off, uint8(tail.len), parsers.HoleDecimal, counterSequence, 1})
	}
}

const ackPrefix = "$JS.ACK."

// ack says whether a subject is a JetStream acknowledgement.
func ack(s []byte) bool {
	return len(s) > len(ackPrefix) && s[0] == '$' && string(s[:len(ackPrefix)]) == ackPrefix
}

// ack adds the fields of a JetStream acknowledgement subject, and returns the
// part that names it. Its tokens are
//
//	$JS.ACK.[domain.account.]stream.consumer.delivered.stream seq.consumer seq.time.pending[.random]
//
// of which the stream sequence and the time are the message's, and the same for
// every consumer that gets it (ADR-15 of the NATS architecture).
func (h *holes) ack(b []byte, a arg) arg {
	const most = 12
	var tokens [most]arg
	n := 0
	for at, end := a.off+int32(len(ackPrefix)), a.off+a.len; at <= end && n < most; n++ {
		length := int32(bytes.IndexByte(b[at:end], '.'))
		if length < 0 {
			length = end - at
		}
		tokens[n] = arg{at, length}
		at += length + 1
	}
	first := 0
	switch {
	case n == 7:
	case n >= 9 && n < most:
		first = 2
	default:
		return a
	}
	stream, consumer := tokens[first], tokens[first+1]
	for _, t := range tokens[first+2 : first+7] {
		if !counts(t.of(b)) {
			return a
		}
	}
	if consumer.len > 0 && consumer.len <= parsers.MaxHoleText {
		h.add(hole{consumer.off, uint8(consumer.len), parsers.HoleText, textConsumer, 0})
	}
	sequence, pending := tokens[first+4], tokens[first+6]
	h.add(hole{sequence.off, uint8(sequence.len), parsers.HoleDecimal, counterSequence, 1})
	h.add(hole{pending.off, uint8(pending.len), parsers.HoleDecimal, counterPending, 0})
	return arg{a.off, stream.off + stream.len - a.off}
}
