package parsertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"sheaf/parsers"
)

// ID is the protocol number that the tests give their protocol.
const ID = parsers.ProtocolID(7)

// TB is what testing.T and rapid.T have in common.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A Text is how a protocol's tests write payloads.
type Text interface{ string | []byte }

// A Suite is how the spans of one protocol are checked and shown. Only Name is
// needed.
type Suite[B Text] struct {
	// Name tells a message's kind.
	Name func(uint8) string
	// Hole tells a hole of a span; field is what is in it, when that is known.
	Hole func(h parsers.Hole, field B) string
	// Span says whether a span is what the protocol's spans are, besides what
	// every span has to be.
	Span func(parsers.Span) bool
	// Piece says whether sp can be a piece of whole that ends with its byte end,
	// besides what every piece has to be.
	Piece func(sp, whole parsers.Span, end int) bool
	// Frames says that a message is of frames: pieces behind its first frame have
	// bodies of their own, and more holes than there is room for in a span.
	Frames bool
	// Datagrams says that no message straddles payloads.
	Datagrams bool
}

// TextSuite checks the spans of a protocol whose messages are text: their holes are
// too, and the first pieces of a message may not know its name yet. name tells a
// message's kind.
func TextSuite(name func(uint8) string) Suite[string] {
	return Suite[string]{
		Name:  name,
		Hole:  ShowField,
		Span:  Holes(func(h parsers.Hole) bool { return h.Kind != parsers.HoleBig }),
		Piece: func(sp, whole parsers.Span, _ int) bool { return sp.Name == whole.Name || sp.Name == 0 },
	}
}

// Holes says of spans whether all their holes are good.
func Holes(good func(parsers.Hole) bool) func(parsers.Span) bool {
	return func(sp parsers.Span) bool {
		return !slices.ContainsFunc(sp.Holes[:sp.NumHoles], func(h parsers.Hole) bool { return !good(h) })
	}
}

// ScanAll scans pieces one after another and checks what every span must keep to.
// The spans' events are copies.
func (u *Suite[B]) ScanAll(t TB, s parsers.Scanner, pieces ...B) (spans []parsers.Span) {
	t.Helper()
	for _, p := range pieces {
		got := s.Scan(nil, []byte(p))
		u.CheckSpans(t, got, p)
		for i := range got {
			got[i].Event = bytes.Clone(got[i].Event)
		}
		spans = append(spans, got...)
	}
	return spans
}

// CheckSpans checks the spans of p, which they have to cover.
func (u *Suite[B]) CheckSpans(t TB, spans []parsers.Span, p B) {
	t.Helper()
	sum := 0
	for _, sp := range spans {
		if sp.Len <= 0 || sp.At < 0 || sp.Body < 0 || sp.Body > sp.Len || sp.NumHoles < 0 || sp.NumHoles > parsers.MaxHoles {
			t.Fatalf("span out of bounds: %+v", sp)
		}
		if sum += sp.Len; sum > len(p) {
			t.Fatalf("spans cover %d of %d bytes", sum, len(p))
		}
		if (sp.Protocol == parsers.Opaque) != (sp.Key == 0) {
			t.Fatalf("key and protocol disagree: %+v", sp)
		}
		if u.Datagrams && sp.At != 0 || u.Span != nil && !u.Span(sp) {
			t.Fatalf("no span of the protocol: %+v", sp)
		}
		checkHoles(t, sp, string(p[sum-sp.Len:sum]))
	}
	if sum != len(p) {
		t.Fatalf("spans cover %d of %d bytes", sum, len(p))
	}
}

// checkHoles checks the holes of a span of b.
func checkHoles(t TB, sp parsers.Span, b string) {
	t.Helper()
	at := 0
	for i, h := range sp.Holes[:sp.NumHoles] {
		if h.Off < at || h.Len < 0 || h.Len == 0 && h.Kind != parsers.HoleMask || h.Off+h.Len > sp.Len || h.Counter >= parsers.NumCounters || h.Step > 1 {
			t.Fatalf("hole out of bounds: %+v", sp)
		}
		at = h.Off + h.Len
		switch field := b[h.Off:at]; h.Kind {
		case parsers.HoleBig:
			if h.Len > 8 {
				t.Fatalf("%q is no number: %+v", field, sp)
			}
		case parsers.HoleDecimal:
			if strings.Trim(field, "0123456789") != "" || len(field) > 19 || len(field) > 1 && field[0] == '0' {
				t.Fatalf("%q is no decimal number: %+v", field, sp)
			}
		case parsers.HoleText:
			if len(field) > parsers.MaxHoleText || h.Step != 0 {
				t.Fatalf("%q is no text: %+v", field, sp)
			}
		case parsers.HoleMask:
			if i > 0 || h.Step != 0 || h.Phase > 3 || h.Len > 0 && (h.Phase > 0 || field != string(binary.BigEndian.AppendUint32(nil, h.Key))) {
				t.Fatalf("%q is no mask: %+v", field, sp)
			}
			b = string(parsers.Mask(append([]byte(nil), b[:at]...), []byte(b[at:]), h.Key, h.Phase))
		default:
			t.Fatalf("hole of kind %d: %+v", h.Kind, sp)
		}
	}
}

// ShowSpans writes spans, one a line. They are those of stream, which holes are
// shown from; it may be empty where Hole does not look at the field.
func (u *Suite[B]) ShowSpans(spans []parsers.Span, stream B) string {
	var s strings.Builder
	for _, sp := range spans {
		u.show(&s, sp, stream)
		stream = stream[min(sp.Len, len(stream)):]
	}
	return s.String()
}

func (u *Suite[B]) show(s *strings.Builder, sp parsers.Span, b B) {
	if sp.Protocol == parsers.Opaque {
		fmt.Fprintf(s, "opaque %d\n", sp.Len)
		return
	}
	s.WriteString(u.Name(sp.Name) + " ")
	if !u.Datagrams {
		fmt.Fprintf(s, "%d+", sp.At)
	}
	fmt.Fprintf(s, "%d body %d", sp.Len, sp.Body)
	if sp.Event != nil {
		fmt.Fprintf(s, " %q", sp.Event)
	}
	for _, h := range sp.Holes[:sp.NumHoles] {
		s.WriteString(" " + u.Hole(h, b[min(h.Off, len(b)):min(h.Off+h.Len, len(b))]))
	}
	s.WriteByte('\n')
}

// Show writes spans as ShowSpans does, without what is in the holes.
func (u *Suite[B]) Show(spans []parsers.Span) string {
	var unknown B
	return u.ShowSpans(spans, unknown)
}

// ShowField tells a hole by what is in it: #COUNTER=TEXT for numbers, with a +
// where they count up, and @COUNTER=TEXT for texts.
func ShowField(h parsers.Hole, field string) string {
	sign := "#"
	if h.Kind == parsers.HoleText {
		sign = "@"
	}
	if h.Step > 0 {
		sign = "+" + sign
	}
	return fmt.Sprintf("%s%d=%s", sign, h.Counter, field)
}

// Cut cuts a payload at offsets.
func Cut[B Text](b B, at ...int) (pieces []B) {
	from := 0
	for _, to := range append(at, len(b)) {
		pieces = append(pieces, b[from:to])
		from = to
	}
	return pieces
}

// Cat joins payloads.
func Cat[B Text](parts ...B) B {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return B(b)
}
