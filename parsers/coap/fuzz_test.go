package coap

import (
	"errors"
	"testing"

	"sheaf/parsers"
)

// FuzzScanner scans arbitrary bytes as datagrams that other arbitrary bytes say
// the lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, put(1, "to", "1", "a", "b")), []byte{byte(len(m.bytes)), 0})
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		s := NewScanner(testID)
		carries := func() int { return max(len(s.scan), len(s.rescan)) }
		suite.FuzzScan(t, s, b, lengths, carries, parsers.MaxKeyEvent)
	})
}

// FuzzParse holds that Parse, Probe and the scanner agree, and that options lie
// within their message, in order.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil && Probe(b) != parsers.None {
			t.Fatalf("error %v, probe %d", err, Probe(b))
		}
		spans := NewScanner(testID).Scan(nil, b)
		if len(b) > 0 && (err == nil) != (spans[0].Protocol == testID) {
			t.Fatalf("error %v, spans %s", err, showSpans(spans))
		}
		if err != nil {
			if !errors.Is(err, parsers.ErrMalformed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		at, number := headSize+m.TokenLen, 0
		for _, o := range m.Options {
			if o.Off <= at || o.Len < 0 || o.Off+o.Len > m.Body || o.Number < number {
				t.Fatalf("option %+v of %s", o, show(m))
			}
			at, number = o.Off+o.Len-1, o.Number
		}
		if m.Body > len(b) || m.Name.String() == "" || spans[0].Body != m.Body {
			t.Fatalf("body at %d of %d, spans %s", m.Body, len(b), showSpans(spans))
		}
	})
}
