package nats

import (
	"bytes"

	"sheaf/parsers"
)

// fields adds the fields of a message that belong to its flow, in the order of
// their offsets, and returns its event.
func (f *front) fields(b []byte, sp *parsers.Span) (event []byte) {
	subject, reply := f.field(b, f.subject), f.field(b, f.reply)
	switch f.name {
	case UNSUB:
		addNumber(sp, b, f.args[f.sid], counterOtherSID, 1)
	case SUB:
		if isInbox(subject) {
			addInbox(sp, b, f.args[f.subject])
		}
		addNumber(sp, b, f.args[f.sid], counterSID, 1)
	case PUB, HPUB:
		if isAck(subject) {
			sp.Class = parsers.ClassAck
			return addAck(sp, b, f.args[f.subject])
		}
		if isInbox(reply) {
			addInbox(sp, b, f.args[f.reply])
		}
		return label(subject)
	case MSG, HMSG:
		counter := uint8(counterSID)
		if last := subject[len(subject)-1]; (last^byte(len(subject)))&1 != 0 {
			counter = counterOtherSID
		}
		if isInbox(subject) {
			addInbox(sp, b, f.args[f.subject])
		}
		addNumber(sp, b, f.args[f.sid], counter, 0)
		if isAck(reply) {
			addAck(sp, b, f.args[f.reply])
		}
		return label(subject)
	}
	return nil
}

// label returns the part of a subject that names the message.
func label(subject []byte) []byte {
	if isInbox(subject) {
		if dot := bytes.IndexByte(subject, '.'); dot > 0 {
			return subject[:dot]
		}
	}
	return subject
}

// addNumber adds a sid, which is mostly a number, else a short text.
func addNumber(sp *parsers.Span, b []byte, a arg, counter, step uint8) {
	switch {
	case parsers.IsDecimal(a.of(b)):
		sp.AddHole(int(a.off), int(a.len), parsers.HoleDecimal, counter, step)
	case a.len <= parsers.MaxHoleText:
		sp.AddHole(int(a.off), int(a.len), parsers.HoleText, textSID, 0)
	}
}

// isInbox says whether a subject begins like an inbox: with _INBOX, or with a
// prefix of somebody's own that begins so. It is one when more tokens follow.
func isInbox(s []byte) bool {
	const prefix = "_INBOX"
	return len(s) > len(prefix) && s[0] == '_' && string(s[:len(prefix)]) == prefix
}

// addInbox adds an inbox of the flow's own, if what begins like one is. One that
// a client makes for all of its requests ends in a token for each of them, which
// some count up and others draw at random: the latter belongs to the message.
func addInbox(sp *parsers.Span, b []byte, a arg) {
	s := a.of(b)
	first := bytes.IndexByte(s, '.')
	if first < 0 {
		return
	}
	last := bytes.LastIndexByte(s, '.')
	tail := s[last+1:]
	if first == last {
		last, tail = len(s), nil
	}
	if last > parsers.MaxHoleText {
		return
	}
	sp.AddHole(int(a.off), last, parsers.HoleText, textInbox, 0)
	if parsers.IsDecimal(tail) {
		sp.AddHole(int(a.off)+last+1, len(tail), parsers.HoleDecimal, counterSequence, 1)
	}
}

const ackPrefix = "$JS.ACK."

// isAck says whether a subject is a JetStream acknowledgement.
func isAck(s []byte) bool {
	return len(s) > len(ackPrefix) && s[0] == '$' && string(s[:len(ackPrefix)]) == ackPrefix
}

// addAck adds the fields of a JetStream acknowledgement subject, and returns the
// part that names it. Its tokens are
//
//	$JS.ACK.[domain.account.]stream.consumer.delivered.stream seq.consumer seq.time.pending[.random]
//
// of which the stream sequence and the time are the message's, and the same for
// every consumer that gets it (ADR-15 of the NATS architecture).
func addAck(sp *parsers.Span, b []byte, a arg) (name []byte) {
	from, end := int(a.off), int(a.off+a.len)
	b = b[:end]
	at := from + len(ackPrefix)
	var k ack
	if k.read(b, at) != end { // there are not seven tokens
		if n := bytes.Count(b[at:], []byte{'.'}) + 1; n < 9 || n > 11 {
			return b[from:]
		}
		at = k.read(b, token(b, token(b, at)+1)+1)
		if at == 0 || at < end && b[at] != '.' {
			return b[from:]
		}
	}
	if n := k.consumer - k.stream - 1; n > 0 && n <= parsers.MaxHoleText {
		sp.AddHole(k.stream+1, n, parsers.HoleText, textConsumer, 0)
	}
	sequence, pending := &k.numbers[2], &k.numbers[4]
	sp.AddHole(sequence.from, sequence.to-sequence.from, parsers.HoleDecimal, counterSequence, 1)
	sp.AddHole(pending.from, pending.to-pending.from, parsers.HoleDecimal, counterPending, 0)
	return b[from:k.stream]
}

// An ack is where the tokens of a JetStream acknowledgement subject are, from its
// stream on.
type ack struct {
	stream, consumer int // where they end
	numbers          [5]struct{ from, to int }
}

// read finds the tokens from an offset on, and returns where they end; 0 when they
// are not what they should be.
func (k *ack) read(b []byte, at int) (end int) {
	k.stream = token(b, at)
	k.consumer = token(b, k.stream+1)
	at = k.consumer
	for i := range k.numbers {
		n := &k.numbers[i]
		n.from = at + 1
		if at = parsers.DecimalEnd(b, n.from); at == n.from || b[n.from-1] != '.' {
			return 0
		}
		n.to = at
	}
	return at
}

// token returns where the token of a subject ends that begins at an offset, and
// that others follow.
func token(b []byte, at int) int { return parsers.TokenEnd(b, at, 0, '.') }
