package resp

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in arbitrary pieces, some lost, some twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.text+arrayOf("message", "a:b", "body")), []byte{3, 0, 9, 1, 200})
		f.Add([]byte("+OK\r\n"+m.text), []byte{40, 1, 2})
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		s := NewScanner(testID)
		suite.FuzzScan(t, s, string(b), lengths, func() int { return len(s.carry) }, maxFront)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range messages {
		f.Add(m.text+m.text, uint16(3))
		f.Add("+OK\r\n"+m.text+m.text, uint16(60))
	}
	f.Fuzz(func(t *testing.T, b string, at uint16) {
		suite.FuzzSplit(t, newScanner, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree on lengths and that fields lie
// within their message.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, from := range []side{unknown, client, server} {
			var fr front
			if bad := parseFront(b, from, &fr); bad == short && len(b) >= maxFront {
				t.Fatalf("%d bytes are not enough", len(b))
			} else if bad == ok && (fr.event+min(fr.eventLen, 256) > len(b) || fr.hole.off+int(fr.hole.len) > len(b)) {
				t.Fatalf("front %+v of %d bytes", fr, len(b))
			}
		}
		m, n, err := Parse(b)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if n != m.Length || n > len(b) {
			t.Fatalf("n %d, message %+v", n, m)
		}
		for _, field := range m.Fields {
			if field.Off < 0 || field.Len < 0 || field.Off+field.Len > n {
				t.Fatalf("field %+v of %d bytes", field, n)
			}
		}
		if spans := NewScanner(testID).Scan(nil, b[:n]); len(spans) != 1 {
			t.Fatalf("spans:\n%s", showSpans(spans, string(b[:n])))
		}
	})
}
