package parsers

import "github.com/cespare/xxhash/v2"

// MaxKeyEvent is how many bytes of an event its key looks at. A scanner that
// sees an event in pieces need not keep more of it than that.
const MaxKeyEvent = 256

// MessageKey returns the Span.Key of messages of a kind: a hash over the
// protocol, the name, and the event's first MaxKeyEvent bytes and its length.
// eventLen is the length of the whole event, of which event holds at least the
// first MaxKeyEvent bytes. The result is never 0.
func MessageKey(id ProtocolID, name uint8, event []byte, eventLen int) uint64 {
	h := xxhash.Sum64(event[:min(len(event), MaxKeyEvent)])
	h ^= (uint64(eventLen)<<16 | uint64(id)<<8 | uint64(name)) * 0x9e3779b97f4a7c15
	h *= 0xff51afd7ed558ccd
	h ^= h >> 32
	return max(h, 1)
}
