package tls

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in pieces that other arbitrary bytes say the
// lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, r := range records {
		if len(r.bytes) < 1000 {
			f.Add(cat(r.bytes, data(20)), []byte{3, 0, 9, 1, 200})
			f.Add(cat(clientHello, r.bytes), []byte{10, 1, 53, 2})
		}
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		s := NewScanner(testID)
		suite.FuzzScan(t, s, b, lengths, func() int { return int(s.have) }, headSize)
		if c := Probe(b); c > 2 {
			t.Fatalf("confidence %d", c)
		}
	})
}

// FuzzSplit holds that a stream which scans as records does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, r := range records {
		if len(r.bytes) < 1000 {
			f.Add(cat(r.bytes, change, r.bytes), uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		suite.FuzzSplit(t, newScanner, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree.
func FuzzParse(f *testing.F) {
	for _, r := range records {
		if len(r.bytes) < 1000 {
			f.Add(r.bytes)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, bad := parseHead(b)
		if bad == short && len(b) >= headSize {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		r, n, err := Parse(b)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if bad != ok || n != r.Length || n > len(b) || len(r.Fragment(b)) != n-headSize {
			t.Fatalf("n %d, %+v", n, r)
		}
		s := NewScanner(testID)
		if spans := s.Scan(nil, b[:n]); len(spans) != 1 || Name(spans[0].Name) != r.Name || s.state != boundary {
			t.Fatalf("spans:\n%s", showSpans(spans))
		}
	})
}
