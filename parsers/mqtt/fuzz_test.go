package mqtt

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in pieces that other arbitrary bytes say the
// lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, publish(1, "a/b/c", 3, "body")), []byte{3, 0, 9, 1, 200}, uint8(0))
		f.Add(cat(connect(5), m.bytes), []byte{40, 1, 2}, m.version)
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte, version uint8) {
		s := NewScanner(testID)
		s.Framer.version = version % 6
		suite.FuzzScan(t, s, b, lengths, nil, 0)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, m.bytes), uint16(3))
		f.Add(cat(connect(5), m.bytes, m.bytes), uint16(30))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		suite.FuzzSplitKeys(t, newScanner, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree on lengths and that fields lie
// within their message.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.bytes, m.version)
	}
	f.Fuzz(func(t *testing.T, b []byte, version uint8) {
		version %= 6
		var fr front
		bad := parseFront(b, version, &fr)
		if bad == short && len(b) >= maxFront {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		if bad == short && fr.size > 0 && len(b) >= fr.size {
			t.Fatal("a whole message is not enough")
		}
		m, n, err := Parse(b, version)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if bad != ok || n != fr.size || n != m.Length || n > len(b) {
			t.Fatalf("n %d, front %d, message %+v", n, fr.size, m)
		}
		for _, field := range m.Fields {
			if field.Off < fr.fixed || field.Len < 0 || field.Off+field.Len > n {
				t.Fatalf("field %+v of %d bytes", field, n)
			}
		}
		s := NewScanner(testID)
		s.Framer.version = version
		if spans := s.Scan(nil, b[:n]); len(spans) != 1 {
			t.Fatalf("spans:\n%s", showSpans(spans))
		}
	})
}
