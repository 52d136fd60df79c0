package kafka

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in pieces that other arbitrary bytes say the
// lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, m.bytes), []byte{3, 0, 9, 1, 200}, false)
		f.Add(cat(m.bytes, response(9, "body")), []byte{byte(len(m.bytes)), 1, 5, 2}, true)
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte, answers bool) {
		s := NewScanner(testID)
		if answers {
			s.Framer.side = responses
		}
		suite.FuzzScan(t, s, b, lengths, nil, 0)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, m.bytes), uint16(3))
		f.Add(cat(fetch(7, 1, "c", "t", 1, 1), m.bytes, m.bytes), uint16(30))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		suite.FuzzSplitKeys(t, newScanner, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree on lengths and that fields lie
// within their message.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.bytes, false)
		f.Add(m.bytes, true)
	}
	f.Fuzz(func(t *testing.T, b []byte, answer bool) {
		s := NewScanner(testID)
		if answer {
			s.Framer.side = responses
		}
		var fr front
		bad := parseFront(b, s.Framer.side, &fr)
		if bad == short && len(b) >= maxFront {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		if bad == short && fr.size > 0 && len(b) >= fr.size {
			t.Fatal("a whole message is not enough")
		}
		m, n, err := Parse(b, answer)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if bad != ok || n != m.Length || n != fr.size || n > len(b) || m.Body > n {
			t.Fatalf("n %d, front %d, %+v", n, fr.size, m)
		}
		for _, field := range []Field{m.Client, m.Topic} {
			if field.Off < 0 || field.Len < 0 || field.Off+field.Len > m.Body {
				t.Fatalf("field %+v of %+v", field, m)
			}
		}
		at := m.Body
		for _, batch := range m.Batches {
			if batch.Off < at || batch.Off+batch.Len > n {
				t.Fatalf("batch %+v of %d bytes", batch, n)
			}
			at = batch.Off + batch.Len
		}
		if spans := s.Scan(nil, b[:n]); len(spans) != 1 || !atBoundary(s) {
			t.Fatalf("spans:\n%s", showSpans(spans))
		}
	})
}
