package parsertest

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// Pieces cuts a payload at random.
func Pieces[B Text](t *rapid.T, b B) (pieces []B) {
	for len(b) > 0 {
		n := min(len(b), rapid.SampledFrom([]int{1, 2, 3, 7, 20, 90, 500, 1448}).Draw(t, "piece"))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// AnySplit holds that spans tell the same however a stream is cut. draw draws the
// stream's messages.
func (u *Suite[B]) AnySplit(t *testing.T, scanner func() parsers.Scanner, draw func(*rapid.T) []B) {
	rapid.Check(t, func(t *rapid.T) {
		list := draw(t)
		stream := Cat(list...)
		whole := u.ScanAll(t, scanner(), stream)
		if len(whole) != len(list) {
			t.Fatalf("%d spans of %d messages:\n%s", len(whole), len(list), u.ShowSpans(whole, stream))
		}
		u.checkSplit(t, whole, u.ScanAll(t, scanner(), Pieces(t, stream)...))
	})
}

// checkSplit holds that spans of pieces tell the same as those of the whole
// stream, which is of one message each.
func (u *Suite[B]) checkSplit(t TB, whole, pieces []parsers.Span) {
	t.Helper()
	i, end := 0, 0
	for _, sp := range pieces {
		if i == len(whole) {
			t.Fatalf("more pieces than messages: %+v", sp)
		}
		w := whole[i]
		if sp.At != end {
			t.Fatalf("span %+v at %d of %+v", sp, end, w)
		}
		end += sp.Len
		u.checkPiece(t, sp, w, end)
		if end == w.Len {
			i, end = i+1, 0
		}
	}
	if i != len(whole) {
		t.Fatalf("%d of %d messages", i, len(whole))
	}
}

// checkPiece checks a piece that ends with byte end of its whole message.
func (u *Suite[B]) checkPiece(t TB, sp, whole parsers.Span, end int) {
	t.Helper()
	if u.Piece != nil && !u.Piece(sp, whole, end) {
		t.Fatalf("span %+v up to %d of %+v", sp, end, whole)
	}
	if end == whole.Len && (sp.Key != whole.Key || sp.Class != whole.Class || sp.Name != whole.Name) {
		t.Fatalf("span %+v at the end of %+v", sp, whole)
	}
	if sp.Event != nil && !bytes.Equal(sp.Event, whole.Event) {
		t.Fatalf("event %q of %+v", sp.Event, whole)
	}
	inside := sp.Body != 0 && sp.Body != sp.Len && !(u.Frames && sp.At > whole.Body)
	if sp.Key == whole.Key && inside && sp.At+sp.Body != whole.Body {
		t.Fatalf("body at %d of %+v in %+v", sp.Body, sp, whole)
	}
	if u.Frames && whole.NumHoles == parsers.MaxHoles {
		return
	}
	for _, h := range sp.Holes[:sp.NumHoles] {
		h.Off += sp.At
		if h.Kind == parsers.HoleMask && h.Len == 0 {
			checkMask(t, h, whole)
			continue
		}
		if !slices.Contains(whole.Holes[:whole.NumHoles], h) {
			t.Fatalf("hole %+v of %+v", h, whole)
		}
	}
}

// checkMask checks the mask of a piece, whose key came before: it has to go on
// with that of its whole message.
func checkMask(t TB, h parsers.Hole, whole parsers.Span) {
	t.Helper()
	w := whole.Holes[0]
	if w.Kind != parsers.HoleMask || h.Key != w.Key || h.Off < w.Off+w.Len || int(h.Phase) != (h.Off-w.Off-w.Len)&3 {
		t.Fatalf("mask %+v of %+v", h, whole)
	}
}

// Loss holds that, whatever segments are missing, come twice or come late, spans
// cover what there is, and the first message after that which begins a segment is
// found: the span of m is its, as found says. Messages of which evidence says that
// the scanner s cannot know them alone are left out.
func (u *Suite[B]) Loss(t *testing.T, scanner func() parsers.Scanner, draw func(*rapid.T) []B, evidence func(s parsers.Scanner, m B) bool, found func(m B, sp parsers.Span) bool) {
	rapid.Check(t, func(t *rapid.T) {
		list := draw(t)
		s := scanner()
		u.lose(t, s, Pieces(t, Cat(list...)))
		for _, m := range list {
			if evidence != nil && !evidence(s, m) {
				continue
			}
			if spans := u.ScanAll(t, s, m); len(spans) != 1 || spans[0].At != 0 || !found(m, spans[0]) {
				t.Fatalf("%q not found:\n%s", m, u.ShowSpans(spans, m))
			}
			s.Lost()
		}
	})
}

// Garbage holds that a message about an event is found whole at the end of each
// stream of pieces, whatever comes before.
func (u *Suite[B]) Garbage(t *testing.T, scanner func() parsers.Scanner, message B, event string, streams map[string][]B) {
	t.Helper()
	for name, pieces := range streams {
		spans := u.ScanAll(t, scanner(), pieces...)
		if last := spans[len(spans)-1]; string(last.Event) != event || last.Len != len(message) || last.At != 0 {
			t.Errorf("%s:\n%s", name, u.Show(spans))
		}
	}
}

// lose scans pieces some of which are missing, come twice or come late.
func (u *Suite[B]) lose(t *rapid.T, s parsers.Scanner, pieces []B) {
	lost := false
	for _, p := range pieces {
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0:
			lost = true
		case 1:
			u.rescan(t, s, p)
			fallthrough
		default:
			if lost {
				s.Lost()
				lost = false
			}
			u.ScanAll(t, s, p)
		}
	}
	s.Lost()
}

// FuzzScan scans b in pieces that lengths are the lengths of: zero is a loss and
// an odd one is scanned twice. The scanner may carry no more than limit bytes, where
// carries tells how many they are.
func (u *Suite[B]) FuzzScan(t *testing.T, s parsers.Scanner, b B, lengths []byte, carries func() int, limit int) {
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if i < len(lengths) {
			if n = min(int(lengths[i]), n); n == 0 {
				s.Lost()
				continue
			}
		}
		if n%2 == 1 {
			u.rescan(t, s, b[:n])
		}
		u.ScanAll(t, s, b[:n])
		if carries != nil && carries() > limit {
			t.Fatalf("carries %d bytes", carries())
		}
		b = b[n:]
	}
}

// whole returns the spans of b when they are of messages.
func (u *Suite[B]) whole(t *testing.T, s parsers.Scanner, b B) (spans []parsers.Span, ok bool) {
	spans = u.ScanAll(t, s, b)
	return spans, !slices.ContainsFunc(spans, func(sp parsers.Span) bool { return sp.Key == 0 })
}

// AtBoundary says of scanners whether they take a message for the beginning of one.
func AtBoundary[B Text](message B) func(parsers.Scanner) bool {
	return func(s parsers.Scanner) bool {
		spans := s.Scan(nil, []byte(message))
		return len(spans) > 0 && spans[0].Key != 0 && spans[0].At == 0
	}
}

// FuzzSplit holds that, where b scans as whole messages, it does so when cut. atEnd
// says whether a scanner is at a boundary.
func (u *Suite[B]) FuzzSplit(t *testing.T, scanner func() parsers.Scanner, atEnd func(parsers.Scanner) bool, b B, at uint16) {
	s := scanner()
	whole, ok := u.whole(t, s, b)
	if !ok || !atEnd(s) {
		return
	}
	i := min(int(at), len(b))
	u.checkSplit(t, whole, u.ScanAll(t, scanner(), b[:i], b[i:]))
}

// FuzzSplitKeys is FuzzSplit for protocols whose bytes can be of other messages
// when cut: the messages have to end where they did, with the same keys.
func (u *Suite[B]) FuzzSplitKeys(t *testing.T, scanner func() parsers.Scanner, atEnd func(parsers.Scanner) bool, b B, at uint16) {
	s := scanner()
	whole, ok := u.whole(t, s, b)
	if !ok || !atEnd(s) {
		return
	}
	ends := map[int]uint64{}
	n := 0
	for _, sp := range whole {
		n += sp.Len
		ends[n] = sp.Key
	}
	i := min(int(at), len(b))
	n = 0
	for _, sp := range u.ScanAll(t, scanner(), b[:i], b[i:]) {
		if n += sp.Len; n != i && ends[n] != sp.Key {
			t.Fatalf("cut at %d: span %+v ends at %d, keys %v", i, sp, n, ends)
		}
	}
}
