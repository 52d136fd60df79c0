package stomp

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest body that a guess may begin with.
	maxGuess = 4 << 20

	// maxChain is how many frames in a row are looked at before they are believed
	// to go on.
	maxChain = 8

	// resyncBudget bounds the frames that one call of Scan looks at to find a
	// boundary; long headers count for more, by costShift.
	resyncBudget = 128
	costShift    = 8
)

// Probe judges whether bytes begin with STOMP frames; see parsers.Protocol.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.proven:
		return parsers.Strong
	}
	return parsers.Weak
}

// resync returns how many bytes of p come before the first frame boundary in it,
// len(p) when there is none. begin says that p begins a segment, which is where
// frames mostly begin; elsewhere they follow a NUL and line ends.
func resync(p []byte, begin bool, budget *int) int {
	for i := 0; i < len(p); {
		if i > 0 || begin {
			if *budget <= 0 {
				break
			}
			if c := weigh(p[i:], budget); c.good && (i == 0 || c.proven || c.beats) {
				return i
			}
		}
		n := bytes.IndexByte(p[i:], 0)
		if n < 0 {
			break
		}
		i += n + 1
		for i < len(p) && p[i] == 0 {
			i++
		}
	}
	return len(p)
}

// A chain is what can be said of bytes as frames in a row.
type chain struct {
	good   bool // nothing speaks against it
	proven bool // there is a frame that nothing else could be
	beats  bool // the bytes are heart-beats and nothing else
}

func weigh(b []byte, budget *int) (c chain) {
	for whole := 0; len(b) > 0 && whole < maxChain && *budget > 0; whole++ {
		if n := lineEnds(b); n > 0 {
			c.beats = whole == 0 && n == len(b)
			c.good = true
			b = b[n:]
			continue
		}
		*budget--
		var f front
		switch bad := parseFront(b, &f); bad {
		case ok:
		case short:
			*budget -= len(b) >> costShift
			c.good = true
			return c
		default:
			return chain{}
		}
		*budget -= f.body >> costShift
		if f.length > maxGuess {
			return chain{}
		}
		typical := f.typical(b)
		size := f.size()
		if size == 0 {
			size = f.body + bytes.IndexByte(b[f.body:], 0) + 1
		}
		c.good = true
		if size == f.body || size > len(b) { // its end is not here
			c.proven = c.proven || typical && !f.lower
			return c
		}
		if b[size-1] != 0 {
			return chain{}
		}
		c.proven = c.proven || typical || f.count > 0 && !f.lower
		b = b[size:]
	}
	return c
}

// typical says whether a frame has the headers that its command demands, and
// that other protocols with such lines do not have.
func (f *front) typical(b []byte) bool {
	has := func(name string) bool { return bytes.Contains(b[:f.body], []byte("\n"+name+":")) }
	switch f.name {
	case CONNECT, STOMP:
		return has("accept-version") || has("login") || has("heart-beat")
	case CONNECTED:
		return has("version") || has("session") || has("heart-beat")
	case MESSAGE:
		return f.event.len > 0 && has("message-id")
	case SEND, SUBSCRIBE:
		return f.event.len > 0
	case ACK, NACK:
		return has("id") || has("message-id")
	case RECEIPT:
		return has("receipt-id")
	case BEGIN, COMMIT, ABORT:
		return has("transaction")
	}
	return false
}
