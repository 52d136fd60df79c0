package mqtt

import "sheaf/parsers"

const (
	// maxGuess is the largest message that a guess may begin with: a wrong one
	// takes that many bytes for its body.
	maxGuess = 256 << 10

	// maxChain is how many messages in a row are looked at before they are
	// believed to go on.
	maxChain = 16

	// resyncBudget bounds the messages that one call of Scan looks at to find a
	// boundary; one that has much to look at counts for more, by costShift.
	resyncBudget = 512
	costShift    = 6

	// What a chain of messages must weigh to be believed: in the middle of a
	// segment, and on any port.
	insideWeight = 8
	strongWeight = 10

	exactWeight   = 4 // of ending where the segment does
	publishWeight = 3 // and one for each of the first eight bytes of its topic
	connectWeight = 16
	connackWeight = 8
	// A CONNACK without properties is four or five bytes, which PCEP and others
	// send too: alone it is believed on the port only.
	bareWeight = 5
	bareSize   = 5
)

// Probe judges whether bytes begin with MQTT messages; see parsers.Protocol.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, 0, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.connect || c.exact && c.weight >= strongWeight:
		return parsers.Strong
	case c.begins():
		return parsers.Weak
	}
	return parsers.None
}

// resync returns how many bytes of p come before the first message boundary in
// it, len(p) when there is none. begin says that p begins a segment, which is
// where messages mostly begin; elsewhere more is asked for.
func resync(p []byte, version uint8, begin bool, budget *int) int {
	for i := range p {
		if !firstByte[p[i]] || !likely(p[i:]) {
			continue
		}
		if *budget <= 0 {
			break
		}
		c := weigh(p[i:], version, budget)
		if c.good && (begin && i == 0 && c.begins() || c.weight >= insideWeight && (c.exact || c.whole > 1)) {
			return i
		}
	}
	return len(p)
}

// likely rejects, at the cost of two bytes, most of the text and numbers that
// begin like a PUBLISH: one of less than 256 bytes has a topic of less.
func likely(p []byte) bool {
	return Name(p[0]>>4) != PUBLISH || len(p) < 3 || p[1] >= 0x80 || p[2] == 0
}

// A chain is what can be said of bytes as messages in a row.
type chain struct {
	good    bool // nothing speaks against it
	exact   bool // the last message ends where the bytes do
	cut     bool // the bytes end before the last message's front does
	connect bool // the first message is a CONNECT
	whole   int  // messages that are wholly there
	weight  int  // what speaks for it
}

// begins says whether the chain is good enough where a message is expected.
func (c *chain) begins() bool { return c.exact || c.cut || c.weight >= publishWeight }

func weigh(b []byte, version uint8, budget *int) (c chain) {
	for len(b) > 0 && c.whole < maxChain {
		if *budget <= 0 {
			c.good = c.whole > 0
			return c
		}
		*budget--
		var f front
		switch parseFront(b, version, &f) {
		case ok:
		case short:
			c.cut, c.good = true, true
			return c
		default:
			return chain{}
		}
		if f.version != 0 {
			version = f.version
		}
		if f.size > maxGuess || f.name == PUBLISH && f.qos() == 0 && f.flags&8 != 0 { // [MQTT-3.3.1-2]
			return chain{}
		}
		whole := f.size <= len(b)
		if f.name == PUBLISH {
			*budget -= f.topicLen >> costShift
		} else if whole {
			*budget -= f.size >> costShift
		}
		if whole && !sound(b[:f.size], version, &f) {
			return chain{}
		}
		switch f.name {
		case CONNECT:
			c.weight += connectWeight
			c.connect = c.connect || c.whole == 0
		case CONNACK:
			switch {
			case c.whole > 0: // a server begins with it, and has but one
			case f.size > bareSize:
				c.weight += connackWeight
			default:
				c.weight += bareWeight
			}
		case PUBLISH:
			if !plausible(b[f.topicAt:min(f.topicAt+f.topicLen, len(b))]) {
				return chain{}
			}
			c.weight += publishWeight + min(f.topicLen, 8)
		case SUBSCRIBE, UNSUBSCRIBE:
			if whole { // its topic filters are sound
				c.weight += publishWeight + min(f.size-f.body, 8)
			}
		case PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK:
			c.weight++
		}
		if !whole {
			c.good = true
			return c
		}
		c.whole++
		b = b[f.size:]
	}
	c.good = c.whole > 0
	c.exact = c.good
	c.weight += exactWeight
	return c
}

// sound says whether a whole message can be taken apart.
func sound(message []byte, version uint8, f *front) bool {
	r := reader{b: message, at: f.fixed, quiet: true}
	r.message(f, version)
	return r.bad == ok
}

// plausible says whether bytes look like a topic that people or programs make
// up: no control characters and no wildcards.
func plausible(topic []byte) bool {
	for _, c := range topic {
		if c < ' ' || c == 0x7f || c == '+' || c == '#' {
			return false
		}
	}
	return true
}
