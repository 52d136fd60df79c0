package parsertest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
)

// Shows holds that the spans of pieces, scanned one after another, are shown as
// want.
func (u *Suite[B]) Shows(t TB, s parsers.Scanner, want string, pieces ...B) {
	t.Helper()
	if diff := cmp.Diff(want, u.ShowSpans(u.ScanAll(t, s, pieces...), Cat(pieces...))); diff != "" {
		t.Fatalf("%s", diff)
	}
}

// Streams are streams in pieces, by name, and what their spans are shown as, on
// lines of their own.
type Streams[B Text] []struct {
	Name   string
	Pieces []B
	Want   string
}

// Scans holds that the spans of streams are shown as they say, each as a new
// scanner finds them.
func (u *Suite[B]) Scans(t *testing.T, scanner func() parsers.Scanner, streams Streams[B]) {
	for _, tt := range streams {
		t.Run(tt.Name, func(t *testing.T) {
			u.Shows(t, scanner(), strings.TrimPrefix(tt.Want, "\n"), tt.Pieces...)
		})
	}
}

// AfterLoss are segments that follow a loss, by name, and what their spans are
// shown as.
type AfterLoss[B Text] []struct {
	Name    string
	Segment B
	Want    string
}

// Resync holds that a scanner which lost its place behind the bytes before finds in
// segments what they say, each in the next one.
func (u *Suite[B]) Resync(t *testing.T, scanner func() parsers.Scanner, before B, segments AfterLoss[B]) {
	for _, tt := range segments {
		t.Run(tt.Name, func(t *testing.T) {
			s := scanner()
			u.ScanAll(t, s, before)
			s.Lost()
			u.Shows(t, s, tt.Want, tt.Segment)
		})
	}
}

// Rescan scans segments, the last of which ends inside a message, and holds that
// those before it are the same when scanned again, and that nothing scanned again,
// others included, changes what s goes on with: state returns that, to be compared.
func (u *Suite[B]) Rescan(t TB, s parsers.Scanner, state func() any, segments []B, others ...B) {
	t.Helper()
	whole, cut := segments[:len(segments)-1], segments[len(segments)-1]
	first := u.ScanAll(t, s, whole...)
	u.ScanAll(t, s, cut)
	before := state()
	var again []parsers.Span
	for _, p := range whole {
		again = append(again, u.rescan(t, s, p)...)
	}
	stream := Cat(whole...)
	if diff := cmp.Diff(u.ShowSpans(first, stream), u.ShowSpans(again, stream)); diff != "" {
		t.Fatalf("%s", diff)
	}
	for _, p := range append(others, cut) {
		u.rescan(t, s, p)
	}
	if after := state(); after != before {
		t.Fatalf("Rescan changed the scanner from %+v to %+v", before, after)
	}
}

// rescan scans p again and checks its spans.
func (u *Suite[B]) rescan(t TB, s parsers.Scanner, p B) []parsers.Span {
	t.Helper()
	spans := s.Rescan(nil, []byte(p))
	u.CheckSpans(t, spans, p)
	return spans
}

// InKey holds that keys of others differ from key, by what the messages differ in.
func InKey(t TB, key uint64, others map[string]uint64) {
	t.Helper()
	for name, other := range others {
		if other == key {
			t.Errorf("%s is not in the key", name)
		}
	}
}
