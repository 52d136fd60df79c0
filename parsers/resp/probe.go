package resp

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest string that a guess may begin with: a wrong one
	// takes that many bytes.
	maxGuess = 4 << 20

	// maxChain is how many messages in a row are looked at before they are
	// believed to go on.
	maxChain = 16

	// resyncBudget bounds the messages that one call of Scan looks at to find a
	// boundary; a long one counts for more, by costShift.
	resyncBudget = 256
	costShift    = 8

	strongWeight = 10 // of a chain of messages to be believed on any port
	exactWeight  = 4  // of ending where the segment does
	namedWeight  = 10 // of a command or push, with the strings it is made of
	lightWeight  = 2  // of what other protocols have too, but once
	stringLength = 8  // bytes of a string whose end is no chance
)

// Probe judges whether bytes begin with RESP messages; see parsers.Protocol.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, unknown, &budget)
	switch {
	case !c.good || !c.begins():
		return parsers.None
	case c.weight >= strongWeight && (c.exact || c.proofs >= 3):
		return parsers.Strong
	}
	return parsers.Weak
}

// resync returns how many bytes of p come before the first message boundary in
// it, len(p) when there is none. begin says that p begins a segment, which is
// where messages mostly begin; elsewhere, where elements of a reply look like
// messages, only commands and pushes are.
func resync(p []byte, from side, begin bool, budget *int) int {
	for i := 0; i < len(p); {
		first := begin && i == 0
		if first || i > 0 && i+1 < len(p) && (p[i] == '*' || p[i] == '>') && p[i+1]-'0' <= 9 {
			if *budget <= 0 {
				break
			}
			c := weigh(p[i:], from, budget)
			if c.good && (first && c.begins() || c.named && (c.exact || c.proofs >= 2)) {
				return i
			}
		}
		n := bytes.IndexByte(p[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	return len(p)
}

// A chain is what can be said of bytes as messages in a row.
type chain struct {
	good   bool // nothing speaks against it
	exact  bool // the last message ends where the bytes do
	cut    bool // the bytes end before the last message does
	named  bool // the first message is a command, not inline, or a push
	first  bool // the first message is an aggregate, or +OK
	whole  int  // messages that are wholly there
	proofs int  // strings that end where they should
	weight int  // what speaks for it
}

// begins says whether the chain is good enough where a message is expected. Many
// small replies in a row are more likely elements of a large one.
func (c *chain) begins() bool { return c.exact || c.cut && c.whole < maxChain || c.first }

func weigh(b []byte, from side, budget *int) (c chain) {
	light, strings := false, 0
	for len(b) > 0 && c.whole < maxChain {
		if *budget <= 0 {
			c.good = c.whole > 0
			return c
		}
		*budget--
		var f front
		bad := parseFront(b, from, &f)
		if bad != ok && bad != short {
			return chain{}
		}
		var w walker
		n, done, worse := w.start(b, &f)
		if worse != ok || w.skip > maxGuess {
			return chain{}
		}
		*budget -= n >> costShift
		if bad == short {
			c.cut, c.good = true, true
			return c
		}
		from = f.side
		c.proofs += w.proofs
		named := !f.inline && (f.side == client || f.name >= Msg && f.name <= Push) || f.name == Stream
		if c.whole == 0 {
			c.named = named
			c.first = b[0] == '*' || b[0] == '>' || b[0] == '%' || f.name == OK
		}
		switch {
		case named && w.proofs > 0:
			c.weight += namedWeight
		case w.proofs > 0 && strings < 4:
			strings += w.proofs
			c.weight += 2 + min(w.proofs, 4)
			if f.name == Bulk && n-f.body-2 >= stringLength {
				c.weight += 4
			}
		case !light && w.proofs == 0:
			c.weight += lightWeight
			light = true
		}
		if f.inline && !inlineText(b[:n]) {
			return chain{}
		}
		if !done {
			c.cut, c.good = true, true
			return c
		}
		c.whole++
		b = b[n:]
	}
	c.good = c.whole > 0
	c.exact = c.good && len(b) == 0
	if c.exact {
		c.weight += exactWeight
	}
	return c
}

// inlineText says whether a line could be typed by somebody, and is not the
// first of an HTTP request.
func inlineText(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return !bytes.Contains(b, []byte(" HTTP/1."))
}
