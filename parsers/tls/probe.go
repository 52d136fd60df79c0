package tls

import (
	"bytes"

	"sheaf/parsers"
)

// maxChain is how many records in a row are looked at before they are believed to
// go on: a head is 24 bits of evidence and more.
const maxChain = 3

// Probe judges whether bytes begin with TLS records; see parsers.Protocol. Beyond
// doubt are the first messages of a handshake, whole records up to the end of the
// bytes, and several records in a row. The head of one that is cut is 27 bits of
// evidence at most, which is enough where the port says so too.
func Probe(payload []byte) parsers.Confidence {
	c := follow(payload)
	switch {
	case c.whole == 0 && !c.open, len(payload) < 3:
		return parsers.None
	case c.sure(payload):
		return parsers.Strong
	}
	return parsers.Weak
}

// A chain is what can be said of bytes as records in a row.
type chain struct {
	whole int  // records that are there to their end
	open  bool // another begins behind them, whose head is there and whose end is not
	exact bool // the last ends where the bytes do
}

// follow reads heads in a row. What comes to something else is no chain.
func follow(b []byte) (c chain) {
	for c.whole < maxChain {
		h, bad := parseHead(b)
		if bad == short { // nothing speaks against the bytes that are there
			c.open = len(b) > 2
			c.exact = len(b) == 0
			return c
		}
		if bad != ok {
			return chain{}
		}
		if headSize+h.size > len(b) {
			c.open = true
			return c
		}
		c.whole++
		b = b[headSize+h.size:]
	}
	return c
}

// sure says whether nothing but TLS looks like that.
func (c *chain) sure(b []byte) bool {
	switch {
	case c.whole > 1, c.whole == 1 && (c.open || c.exact):
		return true
	}
	return hello(b)
}

// hello says whether b begins with a ClientHello or a ServerHello (RFC 8446
// section 4.1): they are the longest records before keys are known, and cut the
// more for it.
func hello(b []byte) bool {
	const (
		clientHello, serverHello = 1, 2
		size                     = headSize + 6
	)
	return len(b) >= size && Name(b[0]) == Handshake && (b[5] == clientHello || b[5] == serverHello) &&
		b[6] == 0 && b[9] == major && b[10] <= maxMinor
}

// resync returns how many bytes of p come before the first record boundary in it,
// len(p) when there is none. The flow is known to be TLS, so a single head is
// believed where it is of application data; others have to be followed by more.
func resync(p []byte, minor byte) int {
	for i := 0; i+headSize <= len(p); i++ {
		j := bytes.IndexByte(p[i+1:], major) // the type is before it
		if j < 0 {
			break
		}
		i += j
		h, bad := parseHead(p[i:])
		if bad != ok {
			continue
		}
		c := follow(p[i:])
		if c.whole > 1 || c.whole == 1 && (c.open || c.exact) || c.open && (i == 0 || h.name == ApplicationData && h.minor == minor) {
			return i
		}
	}
	return len(p)
}
