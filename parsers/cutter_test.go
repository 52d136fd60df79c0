package parsers

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// lines is a Framer of messages that are a text, a colon and bytes: as many as
// the text has, or after a text in capitals those up to a full stop. A message
// begins with a letter.
type lines struct {
	ByValue
	toStop bool
}

const maxLine = 8

func (fr *lines) Front(b []byte, whole *Span) Outcome {
	whole.Name = b[0]
	colon := bytes.IndexByte(b[:min(len(b), maxLine)], ':')
	switch {
	case b[0]|0x20 < 'a' || b[0]|0x20 > 'z' || colon < 0 && len(b) >= maxLine:
		return Invalid
	case colon < 0:
		return NeedMore
	}
	if fr.toStop = b[0] < 'a'; !fr.toStop {
		whole.Len = 2*colon + 1
	}
	whole.Body = colon + 1
	whole.Event = b[:colon]
	whole.Key = MessageKey(whole.Protocol, whole.Name, whole.Event, colon)
	whole.AddHole(0, 1, HoleBig, 0, 0)
	whole.AddHole(colon, 1, HoleText, 1, 0)
	return Complete
}

func (fr *lines) Rest(p []byte, at int, whole *Span) (n int, v Outcome) {
	if !fr.toStop {
		return Sized{}.Rest(p, at, whole)
	}
	from := min(max(whole.Body-at, 0), len(p))
	switch stop := bytes.IndexByte(p[from:], '.'); {
	case bytes.IndexByte(p[from:], '!') >= 0:
		return from + bytes.IndexByte(p[from:], '!'), Invalid
	case stop >= 0:
		return from + stop + 1, Complete
	}
	return len(p), NeedMore
}

func (fr *lines) Resync(p []byte, begin bool, budget int) (n, left int) {
	if begin && new(lines).Front(p, new(Span)) != Invalid {
		return 0, budget
	}
	return len(p), budget - 1
}

func newCutter() *Cutter[lines, *lines] { return NewCutter[lines](7, maxLine, 10) }

// TestCutter holds that a flow's spans tell the same however it is cut, and what
// is scanned out of its turn.
func TestCutter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var flow []byte
		var ends []int
		for range rapid.IntRange(1, 6).Draw(t, "messages") {
			m := rapid.SampledFrom([]string{"a:1", "abc:123", "zyxwvut:1234567", "A:.", "ABC:a long text.", "B:::."}).Draw(t, "message")
			flow = append(flow, m...)
			ends = append(ends, len(flow))
		}
		var want []Span
		at := 0
		for _, end := range ends {
			spans := newCutter().Scan(nil, flow[at:end])
			if len(spans) != 1 || spans[0].Len != end-at || spans[0].At != 0 {
				t.Fatalf("%q: %+v", flow[at:end], spans)
			}
			want = append(want, spans[0])
			at = end
		}

		c := newCutter()
		seen := 0
		for i := 0; i < len(flow); {
			n := min(rapid.IntRange(1, 9).Draw(t, "piece"), len(flow)-i)
			if rapid.Bool().Draw(t, "again") {
				c.Rescan(nil, flow[max(i-rapid.IntRange(0, 9).Draw(t, "back"), 0):i+n])
			}
			for _, sp := range c.Scan(nil, flow[i:i+n]) {
				w := want[0]
				if sp.At != seen || sp.Name != w.Name || sp.Protocol != 7 {
					t.Fatalf("%+v at %d of %+v", sp, seen, w)
				}
				if sp.Event != nil && string(sp.Event) != string(w.Event) {
					t.Fatalf("event %q of %+v", sp.Event, w)
				}
				for _, h := range sp.Holes[:sp.NumHoles] {
					h.Off += sp.At
					if !slices.Contains(w.Holes[:2], h) {
						t.Fatalf("%+v of %+v", sp, w)
					}
				}
				if seen += sp.Len; seen == w.Len {
					if sp.Key != w.Key || sp.Body != max(w.Body-sp.At, 0) && sp.Body != sp.Len {
						t.Fatalf("%+v at the end of %+v", sp, w)
					}
					want, seen = want[1:], 0
				}
			}
			if c.cut != nil && len(c.cut.carry) > maxLine {
				t.Fatalf("carries %d bytes", len(c.cut.carry))
			}
			i += n
		}
		if len(want) > 0 {
			t.Fatalf("%d messages are missing", len(want))
		}
	})
}

func TestCutterFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pieces []string
		opaque []int // bytes, by piece
	}{
		{"no message", []string{"a:1", "?", "a:1"}, []int{0, 1, 0}},
		{"no message behind one", []string{"a:1?a:1", "a:1"}, []int{4, 0}},
		{"a front that is too long", []string{"abcdefgh", "a:1"}, []int{8, 0}},
		{"a front that turns out to be none", []string{"abcdef", "ghi", "a:1"}, []int{0, 0, 0}},
		{"a rest that is wrong", []string{"A:", "bc!de", "a:1"}, []int{0, 3, 0}},
		{"a rest that is wrong, in one", []string{"A:bc!de", "a:1"}, []int{3, 0}},
		{"a rest that is wrong at once", []string{"A:bc", "!!", "a:1"}, []int{0, 2, 0}},
	} {
		c := newCutter()
		for i, p := range tt.pieces {
			sum, opaque := 0, 0
			for _, sp := range c.Scan(nil, []byte(p)) {
				if sp.Len <= 0 {
					t.Errorf("%s: %+v", tt.name, sp)
				}
				sum += sp.Len
				if sp.Protocol == Opaque {
					opaque += sp.Len
				}
			}
			if sum != len(p) {
				t.Errorf("%s: spans cover %d of %d bytes", tt.name, sum, len(p))
			}
			if opaque != tt.opaque[i] {
				t.Errorf("%s: %d bytes of %q are opaque, want %d", tt.name, opaque, p, tt.opaque[i])
			}
		}
	}
}

// FuzzCutter scans arbitrary bytes in pieces: spans cover them.
func FuzzCutter(f *testing.F) {
	f.Add([]byte("abc:123A:some text.z:1"), byte(3))
	f.Add([]byte("A:!a:1B:?.a"), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, size byte) {
		c := newCutter()
		for p := range slices.Chunk(b, max(int(size), 1)) {
			sum := 0
			for _, sp := range c.Scan(nil, p) {
				if sp.Len <= 0 || sp.Body > sp.Len {
					t.Fatalf("%+v", sp)
				}
				sum += sp.Len
			}
			if sum != len(p) {
				t.Fatalf("spans cover %d of %d bytes", sum, len(p))
			}
		}
	})
}

// twoMinds is a Framer that finds a boundary wherever it looks.
type twoMinds struct{ lines }

func (*twoMinds) Resync([]byte, bool, int) (n, left int) { return 0, 0 }

// TestContradiction holds that a Framer of two minds costs time, and no more.
func TestContradiction(t *testing.T) {
	p := []byte("...a:1.b:2")
	var got []int
	for _, s := range NewCutter[twoMinds](7, maxLine, 10).Scan(nil, p) {
		got = append(got, s.Len)
	}
	if want := []int{1, 1, 1, 3, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("spans of %v bytes, want %v", got, want)
	}
}
