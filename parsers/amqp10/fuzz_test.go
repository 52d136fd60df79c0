package amqp10

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// FuzzScanner scans arbitrary bytes in pieces that other arbitrary bytes say the
// lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range frames {
		f.Add(cat(m.bytes, transfer(1, 2, 3, "tag", "body")), []byte{3, 0, 9, 1, 200})
		f.Add(cat(attach(1, 2, no, "", "queue"), m.bytes), []byte{40, 1, 2})
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		suite.FuzzScan(t, newScanner(), b, lengths, nil, 0)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range frames {
		f.Add(cat(m.bytes, m.bytes), uint16(3))
		f.Add(cat(transfer(1, 2, 3, "tag", "body"), m.bytes), uint16(30))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		suite.FuzzSplitKeys(t, newScanner, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree on lengths and that fields lie
// within their frame.
func FuzzParse(f *testing.F) {
	for _, m := range frames {
		f.Add(m.bytes)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var fr front
		bad := parseFront(b, &fr)
		if bad == short && len(b) >= maxFront {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		if bad == short && fr.size > 0 && len(b) >= fr.size {
			t.Fatal("a whole frame is not enough")
		}
		frame, n, err := Parse(b)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if bad != ok || n != fr.size || n != frame.Length || n > len(b) {
			t.Fatalf("n %d, front %d, frame %+v", n, fr.size, frame)
		}
		for _, field := range frame.Fields {
			if field.Off < frameHead || field.Len < 0 || field.Off+field.Len > n {
				t.Fatalf("field %+v of %d bytes", field, n)
			}
		}
		if spans := NewScanner(testID).Scan(nil, b[:n]); len(spans) != 1 {
			t.Fatalf("spans:\n%s", showSpans(spans))
		}
	})
}
