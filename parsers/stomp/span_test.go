package stomp

import (
	"bytes"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

const testID = parsers.ProtocolID(7)

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

// scanAll scans pieces one after another and checks what every span must keep to.
func scanAll(t tb, s *Scanner, pieces ...string) (spans []parsers.Span) {
	t.Helper()
	for _, p := range pieces {
		got := s.Scan(nil, []byte(p))
		checkSpans(t, got, p)
		for i := range got {
			got[i].Event = bytes.Clone(got[i].Event)
		}
		spans = append(spans, got...)
	}
	return spans
}

func checkSpans(t tb, spans []parsers.Span, p string) {
	t.Helper()
	for _, sp := range spans {
		if sp.Len <= 0 || sp.Len > len(p) || sp.Body < 0 || sp.Body > sp.Len || sp.NumHoles < 0 || sp.NumHoles > parsers.MaxHoles {
			t.Fatalf("span out of bounds: %+v of %d bytes", sp, len(p))
		}
		if (sp.Protocol == parsers.Opaque) != (sp.Key == 0) {
			t.Fatalf("key and protocol disagree: %+v", sp)
		}
		at := 0
		for _, h := range sp.Holes[:sp.NumHoles] {
			if h.Off < at || h.Len < 1 || h.Off+h.Len > sp.Len || h.Counter >= parsers.NumCounters || h.Step > 1 {
				t.Fatalf("hole out of bounds: %+v", sp)
			}
			at = h.Off + h.Len
			switch field := p[h.Off:at]; h.Kind {
			case parsers.HoleDecimal:
				if strings.Trim(field, "0123456789") != "" || len(field) > 19 || len(field) > 1 && field[0] == '0' {
					t.Fatalf("%q is no decimal number: %+v", field, sp)
				}
			case parsers.HoleText:
				if len(field) > parsers.MaxHoleText || h.Step != 0 {
					t.Fatalf("%q is no text: %+v", field, sp)
				}
			default:
				t.Fatalf("hole of kind %d: %+v", h.Kind, sp)
			}
		}
		p = p[sp.Len:]
	}
	if p != "" {
		t.Fatalf("%d bytes are not covered", len(p))
	}
}

// showSpans writes spans, one a line; holes are #COUNTER=TEXT for numbers, with
// a + where they count up, and @COUNTER=TEXT for texts.
func showSpans(spans []parsers.Span, stream string) string {
	var s strings.Builder
	for _, sp := range spans {
		if sp.Protocol == parsers.Opaque {
			fmt.Fprintf(&s, "opaque %d\n", sp.Len)
		} else {
			fmt.Fprintf(&s, "%v %d+%d body %d", Name(sp.Name), sp.At, sp.Len, sp.Body)
			if sp.Event != nil {
				fmt.Fprintf(&s, " %q", sp.Event)
			}
			for _, h := range sp.Holes[:sp.NumHoles] {
				sign := "#"
				if h.Kind == parsers.HoleText {
					sign = "@"
				}
				if h.Step > 0 {
					sign = "+" + sign
				}
				fmt.Fprintf(&s, " %s%d=%s", sign, h.Counter, stream[h.Off:h.Off+h.Len])
			}
			s.WriteByte('\n')
		}
		stream = stream[sp.Len:]
	}
	return s.String()
}

// cut cuts a text at offsets.
func cut(b string, at ...int) (pieces []string) {
	from := 0
	for _, to := range append(at, len(b)) {
		pieces = append(pieces, b[from:to])
		from = to
	}
	return pieces
}

// genPieces cuts a text at random.
func genPieces(t *rapid.T, b string) (pieces []string) {
	for len(b) > 0 {
		n := min(len(b), rapid.SampledFrom([]int{1, 2, 3, 7, 20, 90, 500, 1448}).Draw(t, "piece"))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// checkSplit holds that spans of pieces tell the same as those of the whole
// stream, which is of one message each.
func checkSplit(t tb, whole, pieces []parsers.Span) {
	t.Helper()
	i, at := 0, 0
	for _, sp := range pieces {
		if i == len(whole) {
			t.Fatalf("more pieces than messages: %+v", sp)
		}
		w := whole[i]
		if sp.At != at || sp.Name != w.Name && sp.Name != 0 {
			t.Fatalf("span %+v at %d of %+v", sp, at, w)
		}
		at += sp.Len
		if at == w.Len && (sp.Key != w.Key || sp.Class != w.Class || sp.Name != w.Name) {
			t.Fatalf("span %+v at the end of %+v", sp, w)
		}
		if sp.Event != nil && !bytes.Equal(sp.Event, w.Event) {
			t.Fatalf("event %q of %+v", sp.Event, w)
		}
		if sp.Key == w.Key && sp.Body != 0 && sp.Body != sp.Len && sp.At+sp.Body != w.Body {
			t.Fatalf("body at %d of %+v in %+v", sp.Body, sp, w)
		}
		for _, h := range sp.Holes[:sp.NumHoles] {
			h.Off += sp.At
			found := false
			for _, k := range w.Holes[:w.NumHoles] {
				found = found || h == k
			}
			if !found {
				t.Fatalf("hole %+v of %+v", h, w)
			}
		}
		if at == w.Len {
			i, at = i+1, 0
		}
	}
	if i != len(whole) {
		t.Fatalf("%d of %d messages", i, len(whole))
	}
}

// checkLoss scans pieces some of which are missing, come twice or come late.
func checkLoss(t *rapid.T, s *Scanner, pieces []string) {
	lost := false
	for _, p := range pieces {
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0:
			lost = true
		case 1:
			checkSpans(t, s.Rescan(nil, []byte(p)), p)
			fallthrough
		default:
			if lost {
				s.Lost()
				lost = false
			}
			scanAll(t, s, p)
		}
	}
	s.Lost()
}

// fuzzScan scans pieces that lengths are the lengths of: zero is a loss and an odd
// one is scanned twice.
func fuzzScan(t tb, s *Scanner, b string, lengths []byte, carries func() int) {
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if i < len(lengths) {
			if n = min(int(lengths[i]), n); n == 0 {
				s.Lost()
				continue
			}
		}
		if n%2 == 1 {
			checkSpans(t, s.Rescan(nil, []byte(b[:n])), b[:n])
		}
		scanAll(t, s, b[:n])
		if k := carries(); k > maxFront {
			t.Fatalf("carries %d bytes", k)
		}
		b = b[n:]
	}
}
