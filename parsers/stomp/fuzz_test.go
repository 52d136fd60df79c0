package stomp

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in arbitrary pieces, some lost, some twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m.text+"SEND\ndestination:a\n\nbody\x00"), []byte{3, 0, 9, 1, 200})
		f.Add([]byte(messages[2].text+m.text), []byte{40, 1, 2})
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		suite.FuzzScan(t, newScanner(), string(b), lengths, nil, 0)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range messages {
		f.Add(m.text+m.text, uint16(3))
		f.Add(messages[2].text+m.text+m.text, uint16(60))
	}
	f.Fuzz(func(t *testing.T, b string, at uint16) {
		i := min(int(at), len(b))
		if rest := strings.TrimLeft(b[i:], "\r\n"); len(rest) < len(b[i:]) && i > 0 {
			scanAll(t, newScanner(), b)
			return // line ends that begin a segment are a heart-beat, elsewhere not
		}
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
		var fr front
		bad := parseFront(b, &fr)
		if bad == short && len(b) >= maxFront {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		m, n, err := Parse(b)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if n != m.Length || n > len(b) || m.Name != HeartBeat && (bad != ok || fr.size() > n) {
			t.Fatalf("n %d, front %d, message %+v", n, fr.size(), m)
		}
		for _, field := range m.Fields {
			if field.Off < 4 || field.Len < 0 || field.Off+field.Len > n {
				t.Fatalf("field %+v of %d bytes", field, n)
			}
		}
		if spans := NewScanner(testID).Scan(nil, b[:n]); len(spans) != 1 {
			t.Fatalf("spans:\n%s", showSpans(spans, string(b[:n])))
		}
	})
}
