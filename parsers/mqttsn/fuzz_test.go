package mqttsn

import (
	"errors"
	"testing"

	"sheaf/parsers"
)

// FuzzScanner scans arbitrary bytes as datagrams that other arbitrary bytes say
// the lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add(m.bytes, []byte{byte(len(m.bytes)), 0})
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		suite.FuzzScan(t, newScanner(), b, lengths, nil, 0)
	})
}

// FuzzParse holds that Parse, Probe and the scanner agree.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if (err == nil) != (Probe(b) != parsers.None) {
			t.Fatalf("error %v, probe %d", err, Probe(b))
		}
		spans := NewScanner(testID).Scan(nil, b)
		if len(b) > 0 && (err == nil) != (spans[0].Protocol == testID) {
			t.Fatalf("error %v, spans %+v", err, spans)
		}
		if err != nil {
			if !errors.Is(err, parsers.ErrMalformed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if m.Body > len(b) || m.Name.String() == "" || spans[0].Body != m.Body {
			t.Fatalf("%s of %d bytes, span %+v", show(m), len(b), spans[0])
		}
	})
}
