package mqtt

import "sheaf/parsers"

// A Scanner finds MQTT messages in one flow. It remembers, beside the message it
// is in, at most maxFront bytes of a message whose beginning was cut, and topic
// aliases.
type Scanner = parsers.Cutter[grammar, *grammar]

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[grammar](id, maxFront, resyncBudget)
}

// A grammar tells a parsers.Cutter of MQTT.
type grammar struct {
	parsers.Sized
	version uint8 // 3, 4, 5, or 0 when unknown
	frozen  bool  // leaves aliases alone
	aliases *aliases
}

// Begin implements parsers.Grammar.
func (g *grammar) Begin(again bool) {
	if g.frozen = again; !again && g.aliases != nil {
		g.aliases.turn++
	}
}

// Front implements parsers.Grammar.
func (g *grammar) Front(b []byte, whole *parsers.Span) parsers.Verdict {
	var f front
	bad := parseFront(b, g.version, &f)
	t := &traits[f.name&15]
	whole.Name = uint8(f.name)
	whole.Class = t.class
	switch bad {
	case ok:
	case short:
		return parsers.Short
	default:
		return parsers.Wrong
	}
	whole.Len = f.size
	whole.Body = f.body
	if f.id > 0 {
		whole.AddHole(f.id, 2, parsers.HoleBig, t.counter, 1)
	}
	if f.version != 0 {
		g.version = f.version
	}
	var topic []byte
	if f.name == PUBLISH {
		topic = b[f.topicAt:min(f.topicAt+f.topicLen, len(b))]
		if f.alias != 0 {
			g.alias(topic, &f, whole)
			return parsers.Good
		}
	} else if f.name == CONNECT {
		g.aliases = nil // they last as long as the connection [MQTT-3.3.2-7]
	}
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, f.topicLen)
	if len(topic) == f.topicLen {
		whole.Event = topic
	}
	return parsers.Good
}

// alias sets the event of a PUBLISH that has a topic alias: the topic is given a
// number with it, or, when it is empty, had been.
func (g *grammar) alias(topic []byte, f *front, whole *parsers.Span) {
	switch {
	case f.topicLen > 0:
		if !g.frozen {
			if g.aliases == nil {
				g.aliases = &aliases{turn: 1}
			}
			g.aliases.learn(f.alias, topic)
		}
		whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, f.topicLen)
		whole.Event = topic
		return
	case g.aliases != nil:
		turn := g.aliases.turn
		if g.frozen {
			turn++ // a Scan may follow while the event is still borrowed
		}
		topic = g.aliases.find(f.alias, turn)
	}
	if len(topic) > 0 {
		whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, len(topic))
		whole.Event = topic
		return
	}
	number := [3]byte{0, byte(f.alias >> 8), byte(f.alias)} // no topic begins with 0
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, number[:], len(number))
}

// Resync implements parsers.Grammar.
func (g *grammar) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, g.version, begin, &budget)
	return n, budget
}
