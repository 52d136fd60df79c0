package zmtp

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in pieces that other arbitrary bytes say the
// lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, message3("a", "b")), []byte{3, 0, 9, 1, 200}, m.subscriber)
		f.Add(cat(greeting("NULL"), m.bytes), []byte{10, 1, 53, 2}, m.subscriber)
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte, subscriber bool) {
		s := NewScanner(testID)
		s.Framer.subscriber = subscriber
		suite.FuzzScan(t, s, b, lengths, nil, 0)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range messages {
		f.Add(cat(m.bytes, m.bytes), uint16(3))
		f.Add(cat(ready("SUB"), m.bytes, m.bytes), uint16(30))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		suite.FuzzSplitKeys(t, newScanner, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree on lengths and that frames lie
// within their message.
func FuzzParse(f *testing.F) {
	for _, m := range messages {
		f.Add(m.bytes, m.subscriber)
	}
	f.Fuzz(func(t *testing.T, b []byte, subscriber bool) {
		var fr front
		bad := parseFront(b, subscriber, &fr)
		if bad == short && len(b) >= maxFront {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		if bad == short && fr.size > 0 && len(b) >= fr.size {
			t.Fatal("a whole frame is not enough")
		}
		u, n, err := Parse(b, subscriber)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if bad != ok || n != u.Length || n > len(b) {
			t.Fatalf("n %d, front %d, %+v", n, fr.size, u)
		}
		at := 0
		for _, frame := range u.Frames {
			if frame.Off <= at || frame.Len < 0 || frame.Off+frame.Len > n {
				t.Fatalf("frame %+v of %d bytes", frame, n)
			}
			at = frame.Off + frame.Len
		}
		s := NewScanner(testID)
		s.Framer.subscriber = subscriber
		if spans := s.Scan(nil, b[:n]); len(spans) != 1 || !atBoundary(s) {
			t.Fatalf("spans:\n%s", showSpans(spans))
		}
	})
}
