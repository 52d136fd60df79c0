package zmtp

import "sheaf/parsers"

// A Frame is one frame of a message.
type Frame struct {
	Flags    byte
	Off, Len int // of the body, from the message's first byte
}

// Bytes returns the frame's body in the message it is of, which it borrows.
func (f Frame) Bytes(message []byte) []byte { return message[f.Off : f.Off+f.Len] }

// A Unit is one greeting, command or message taken apart.
type Unit struct {
	Name   Name
	Length int     // bytes of the whole
	Frames []Frame // none for a greeting
}

// Parse takes apart the greeting, command or message that b begins with and
// returns its size. subscriber says that the sender is a subscriber, whose
// messages are subscriptions in 3.0. The error is parsers.ErrCut when it goes on after
// b, else a *parsers.Error.
func Parse(b []byte, subscriber bool) (Unit, int, error) {
	var f front
	if bad := parseFront(b, subscriber, &f); bad != ok {
		return Unit{}, 0, bad.err(0)
	}
	u := Unit{Name: f.name}
	if f.name == Greeting {
		if len(b) < f.size {
			return Unit{}, 0, parsers.ErrCut
		}
		u.Length = f.size
		return u, f.size, nil
	}
	at := 0
	for more := true; more; {
		h, bad := parseFrame(b[at:])
		if bad != ok {
			return Unit{}, 0, bad.err(at)
		}
		if h.size > len(b)-at-h.head {
			return Unit{}, 0, parsers.ErrCut
		}
		u.Frames = append(u.Frames, Frame{Flags: h.flags, Off: at + h.head, Len: h.size})
		at += h.head + h.size
		more = h.goesOn(len(u.Frames) == 1)
	}
	u.Length = at
	return u, at, nil
}

// goesOn says whether the message goes on after the frame. A command between
// the frames of a message, as libzmq's heartbeat may be, does not end it.
func (h *frame) goesOn(first bool) bool {
	return h.flags&flagMore != 0 || !first && h.flags&flagCommand != 0
}
