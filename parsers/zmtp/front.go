package zmtp

import (
	"bytes"
	"encoding/binary"

	"sheaf/parsers"
)

// The flags of a frame. The other bits are zero.
const (
	flagMore    = 1 << 0
	flagLong    = 1 << 1
	flagCommand = 1 << 2
)

const (
	maxHead = 9 // flags and a long size

	// The greeting: a signature of ten bytes, the version's two, the mechanism's
	// twenty, whether it is a server, and 31 bytes of filler.
	greetingSize  = 64
	signatureSize = 10

	// maxFrame is the largest frame that is believed.
	maxFrame = 256 << 20

	// maxName is the longest name of a command that is believed.
	maxName = 32

	// maxLook is how much of a frame's body is looked at.
	maxLook = 1 + maxName + parsers.MaxKeyEvent

	// maxFront is more than parseFront ever asks for.
	maxFront = maxHead + maxLook
)

// A frame is one frame's header.
type frame struct {
	flags byte
	head  int // bytes of the header
	size  int // bytes of the body
}

// parseFrame reads a frame's header.
func parseFrame(b []byte) (f frame, bad fault) {
	if len(b) == 0 {
		return f, short
	}
	f.flags = b[0]
	if f.flags > flagCommand|flagLong || f.flags&flagCommand != 0 && f.flags&flagMore != 0 {
		return f, faultFlags
	}
	if f.flags&flagLong == 0 {
		if len(b) < 2 {
			return f, short
		}
		f.head, f.size = 2, int(b[1])
		return f, ok
	}
	// The sooner a size that is too large is seen, the fewer bytes are taken for
	// a frame.
	n := min(len(b), maxHead)
	size := uint64(0)
	for i, c := range b[1:n] {
		size |= uint64(c) << (56 - 8*i)
	}
	if size > maxFrame {
		return f, faultSize
	}
	if n < maxHead {
		return f, short
	}
	f.head, f.size = maxHead, int(size)
	return f, ok
}

// A front is what the beginning of a message tells. Offsets are from the
// message's first byte.
type front struct {
	name       Name
	size       int  // bytes of the first frame with its header, or of the greeting
	more       bool // more frames follow it
	event      int  // offset of the event
	eventLen   int  // bytes of the event, 0 when there is none
	body       int  // offset of what follows the header and the event; of messages with more frames, of the second frame
	subscriber bool // the sender's socket subscribes
}

// parseFront reads the beginning of a message into f, which is zero. It returns
// short when it needs more bytes, of which maxFront are always enough and the
// whole message is too. What it says does not depend on the bytes after those it
// needs. Where the flow is a subscriber's, messages may be subscriptions.
func parseFront(b []byte, subscriber bool, f *front) fault {
	if len(b) == 0 {
		return short
	}
	if b[0] == 0xff {
		return f.greeting(b)
	}
	h, bad := parseFrame(b)
	if bad != ok {
		return bad
	}
	f.size = h.head + h.size
	f.body = h.head
	f.more = h.flags&flagMore != 0
	look := b[h.head:min(len(b), f.size)]
	if h.flags&flagCommand != 0 {
		return f.command(look, &h)
	}
	f.name = Message
	switch {
	case f.more:
		f.event, f.eventLen, f.body = h.head, h.size, f.size
	case subscriber && h.size > 0:
		if len(look) == 0 {
			return short
		}
		switch look[0] {
		case 0:
			f.name = Cancel
		case 1:
			f.name = Subscribe
		default:
			return ok
		}
		f.event, f.eventLen, f.body = h.head+1, h.size-1, f.size
	default:
		return ok
	}
	return f.wait(len(b))
}

// wait says whether n bytes hold as much of the event as counts.
func (f *front) wait(n int) fault {
	if n < f.event+min(f.eventLen, parsers.MaxKeyEvent) {
		return short
	}
	return ok
}

// command reads a command: its name with its length, and data.
func (f *front) command(b []byte, h *frame) fault {
	f.name = Command
	if h.size < 2 {
		return faultCommand
	}
	if len(b) == 0 {
		return short
	}
	n := int(b[0])
	if n == 0 || n > maxName || n >= h.size {
		return faultCommand
	}
	for _, c := range b[1:min(len(b), 1+n)] {
		if c <= ' ' || c >= 0x7f {
			return faultCommand
		}
	}
	if len(b) < 1+n {
		return short
	}
	f.name = commandName(b[1 : 1+n])
	f.body = h.head + 1 + n
	switch f.name {
	case Subscribe, Cancel, Join, Leave:
		f.event, f.eventLen = f.body, h.size-1-n
		f.body = f.size
		return f.wait(h.head + len(b))
	case Ready, Initiate:
		if len(b) < min(h.size, maxLook) {
			return short
		}
		f.subscriber = subscribes(b[1+n : min(h.size, maxLook)])
	}
	return ok
}

// subscribes looks for the type of a socket that subscribes among metadata.
func subscribes(metadata []byte) bool {
	const property = "\x0bSocket-Type"
	i := bytes.Index(metadata, []byte(property))
	if i < 0 || len(metadata) < i+len(property)+4 {
		return false
	}
	value := metadata[i+len(property):]
	n := binary.BigEndian.Uint32(value)
	value = value[4:]
	if uint64(n) > uint64(len(value)) {
		return false
	}
	kind := string(value[:n])
	return kind == "SUB" || kind == "XSUB"
}

// greeting reads a greeting as far as its version. Version 3 is what is known,
// and whatever comes after it has to be able to speak 3.
func (f *front) greeting(b []byte) fault {
	f.name = Greeting
	f.size, f.body = greetingSize, greetingSize
	switch {
	case len(b) < signatureSize:
		return short
	case b[signatureSize-1] != 0x7f:
		return faultSignature
	case len(b) == signatureSize:
		return short
	case b[signatureSize] < 3:
		return faultVersion
	}
	return ok
}
