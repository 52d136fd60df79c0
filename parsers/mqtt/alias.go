package mqtt

import (
	"bytes"

	"sheaf/parsers"
)

// maxAliases is how many topic aliases of a flow are remembered: those with the
// numbers 1 to maxAliases, which are the ones that senders begin with.
const maxAliases = 64

// aliases remembers the topics that a version 5 sender has given numbers to
// (3.3.2.3.4).
type aliases struct {
	turn   uint32  // counts the calls of Scan
	topics []topic // by alias - 1
}

type topic struct {
	text []byte // owned, at most parsers.MaxKeyEvent bytes
	used uint32 // the last turn in which text was handed out
}

// learn remembers a topic, which it copies.
func (a *aliases) learn(alias uint16, text []byte) {
	if alias == 0 || alias > maxAliases {
		return
	}
	for len(a.topics) < int(alias) {
		a.topics = append(a.topics, topic{})
	}
	switch t := &a.topics[alias-1]; {
	case len(text) > parsers.MaxKeyEvent:
		t.text = nil
	case bytes.Equal(t.text, text):
	case t.used == a.turn:
		t.text = bytes.Clone(text) // an event of this turn borrows the old bytes
	default:
		t.text = append(t.text[:0], text...)
	}
}

// find returns the topic of an alias, nil when it is not known. The bytes stay
// as they are for that turn.
func (a *aliases) find(alias uint16, turn uint32) []byte {
	if a == nil || alias == 0 || int(alias) > len(a.topics) {
		return nil
	}
	t := &a.topics[alias-1]
	t.used = turn
	return t.text
}
