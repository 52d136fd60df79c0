package stomp

import (
	"bytes"

	"sheaf/parsers"
)

// A span is a part of a frame: where it is in it.
type span struct{ off, len int }

func (s span) of(b []byte) []byte { return b[s.off : s.off+s.len] }

// addConstant adds an identifier that stays as it is.
func (f *front) addConstant(b []byte, s span, counter uint8) {
	switch {
	case f.span == nil:
	case parsers.IsDecimal(s.of(b)):
		f.span.AddHole(s.off, s.len, parsers.HoleDecimal, counter, 0)
	case s.len > 0 && s.len <= parsers.MaxHoleText:
		f.span.AddHole(s.off, s.len, parsers.HoleText, counter, 0)
	}
}

// addCounted adds an identifier that may end in a number which counts up.
func (f *front) addCounted(b []byte, s span, counter uint8) {
	if f.span == nil {
		return
	}
	v := s.of(b)
	at := len(v)
	for at > 0 && len(v)-at < parsers.MaxHoleDigits && v[at-1]-'0' <= 9 {
		at--
	}
	for at < len(v)-1 && v[at] == '0' {
		at++ // leading zeros belong to the text
	}
	if at > parsers.MaxHoleText {
		return // too long to be worth it, or another every time
	}
	if at > 0 {
		f.span.AddHole(s.off, at, parsers.HoleText, counter, 0)
	}
	if at < len(v) {
		f.span.AddHole(s.off+at, len(v)-at, parsers.HoleDecimal, counter, 1)
	}
}

// header looks for what a header tells of the frame. v is its value.
func (f *front) header(b, name []byte, v span) fault {
	switch string(name) {
	case "destination":
		if f.event.len == 0 {
			f.event = v
		}
	case "content-length":
		if f.length >= 0 {
			return ok // the first of several counts
		}
		for v.len > 0 && b[v.off] == ' ' { // 1.0
			v.off++
			v.len--
		}
		n, good := parsers.Decimal(v.of(b))
		if !good || n > maxBody {
			return faultLength
		}
		f.length = n
	case "subscription":
		if f.name == MESSAGE || f.name == ACK || f.name == NACK {
			f.addConstant(b, v, counterSubscription)
		}
	case "id":
		switch f.name {
		case SUBSCRIBE, UNSUBSCRIBE:
			f.addConstant(b, v, counterSubscription)
		case ACK, NACK: // 1.2
			f.addCounted(b, v, counterAck)
		}
	case "message-id":
		switch f.name {
		case MESSAGE:
			if bytes.Contains(v.of(b), []byte("@@")) {
				f.addCounted(b, v, counterMessage)
			}
		case ACK, NACK: // 1.0, 1.1
			f.addCounted(b, v, counterAck)
		}
	case "ack":
		if f.name == MESSAGE {
			f.addCounted(b, v, counterAck)
		}
	case "receipt", "receipt-id":
		f.addCounted(b, v, counterReceipt)
	}
	return ok
}
