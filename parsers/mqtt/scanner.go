package mqtt

import "sheaf/parsers"

// A Scanner finds MQTT messages in one flow. It remembers, beside the message it
// is in, at most maxFront bytes of a message whose beginning was cut, and topic
// aliases.
type Scanner = parsers.Cutter[framer, *framer]

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[framer](id, maxFront, resyncBudget)
}

// A framer tells a parsers.Cutter of MQTT.
type framer struct {
	parsers.Sized
	version uint8 // 3, 4, 5, or 0 when unknown
	frozen  bool  // leaves aliases alone
	aliases *aliases
}

// Begin implements parsers.Framer.
func (fr *framer) Begin(again bool) {
	if fr.frozen = again; !again && fr.aliases != nil {
		fr.aliases.turn++
	}
}

// Front implements parsers.Framer.
func (fr *framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	var f front
	bad := parseFront(b, fr.version, &f)
	t := &traits[f.name&15]
	whole.Name = uint8(f.name)
	whole.Class = t.class
	switch bad {
	case ok:
	case short:
		return parsers.NeedMore
	default:
		return parsers.Invalid
	}
	whole.Len = f.size
	whole.Body = f.body
	if f.id > 0 {
		whole.AddHole(f.id, 2, parsers.HoleBig, t.counter, 1)
	}
	if f.version != 0 {
		fr.version = f.version
	}
	var topic []byte
	if f.name == PUBLISH {
		topic = b[f.topicAt:min(f.topicAt+f.topicLen, len(b))]
		if f.alias != 0 {
			fr.alias(topic, &f, whole)
			return parsers.Complete
		}
	} else if f.name == CONNECT {
		fr.aliases = nil // they last as long as the connection [MQTT-3.3.2-7]
	}
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, f.topicLen)
	if len(topic) == f.topicLen {
		whole.Event = topic
	}
	return parsers.Complete
}

// alias sets the event of a PUBLISH that has a topic alias: the topic is given a
// number with it, or, when it is empty, had been.
func (fr *framer) alias(topic []byte, f *front, whole *parsers.Span) {
	switch {
	case f.topicLen > 0:
		if !fr.frozen {
			if fr.aliases == nil {
				fr.aliases = &aliases{turn: 1}
			}
			fr.aliases.learn(f.alias, topic)
		}
		whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, f.topicLen)
		whole.Event = topic
		return
	case fr.aliases != nil:
		turn := fr.aliases.turn
		if fr.frozen {
			turn++ // a Scan may follow while the event is still borrowed
		}
		topic = fr.aliases.find(f.alias, turn)
	}
	if len(topic) > 0 {
		whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, len(topic))
		whole.Event = topic
		return
	}
	number := [3]byte{0, byte(f.alias >> 8), byte(f.alias)} // no topic begins with 0
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, number[:], len(number))
}

// Resync implements parsers.Framer.
func (fr *framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, fr.version, begin, &budget)
	return n, budget
}
