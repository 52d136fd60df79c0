package websocket

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// messages are frames and heads of all kinds.
func messages() [][]byte {
	return [][]byte{
		request("mqtt"), answer("mqtt"),
		frame(0x82, publish("a/b", 3, "body")), masked(0x01020304, frame(0x82, publish("a/b", 3, "body"))),
		frame(0x82, make([]byte, 300)), frame(0x82, make([]byte, 70_000)),
		frame(0x81, []byte("text")), masked(7, frame(1, []byte("te"))), masked(8, frame(0x80, []byte("xt"))),
		frame(0xc1, []byte("zzz")), frame(0x89, nil), frame(0x88, []byte("\x03\xe8")),
	}
}

// FuzzScanner scans arbitrary bytes in pieces that other arbitrary bytes say the
// lengths of: zero is a loss and an odd one is scanned twice.
func FuzzScanner(f *testing.F) {
	for _, m := range messages() {
		f.Add(cat(m, m)[:min(2*len(m), 1000)], []byte{3, 0, 9, 1, 200}, true)
		f.Add(cat(masked(5, frame(0x82, []byte(connect))), m[:min(len(m), 500)]), []byte{40, 1, 2}, false)
	}
	f.Fuzz(func(t *testing.T, b, lengths []byte, inside bool) {
		s := newScanner().(*Scanner)
		if !inside {
			s = newBare().(*Scanner)
		}
		suite := suite
		if !inside {
			suite = bare
		}
		largest := len(b)
		suite.FuzzScan(t, s, b, lengths, func() int { return max(len(s.plain), len(s.again)) }, 2*largest)
	})
}

// FuzzSplit holds that a stream which scans as messages does so in pieces.
func FuzzSplit(f *testing.F) {
	for _, m := range messages() {
		f.Add(cat(m, m), uint16(3))
		f.Add(cat(masked(5, frame(0x82, []byte(connect))), m, m), uint16(30))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16) {
		bare.FuzzSplitKeys(t, newBare, atBoundary, b, at)
	})
}

// FuzzParse holds that Parse and the scanner agree on lengths.
func FuzzParse(f *testing.F) {
	for _, m := range messages() {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h head
		if bad := parseHead(b, &h); bad == short && len(b) >= maxHead {
			t.Fatalf("%d bytes are not enough", len(b))
		}
		m, n, err := Parse(b)
		if err != nil {
			parsertest.Typed(t, err)
			return
		}
		if n != m.Length || n > len(b) || m.Body > n || m.Body < 2 {
			t.Fatalf("n %d of %d, %+v", n, len(b), m)
		}
		plain := m.AppendPayload(nil, b[:n])
		if len(plain) != n-m.Body {
			t.Fatalf("payload of %d bytes, %+v", len(plain), m)
		}
		s := NewScanner(testID, nil)
		spans := s.Scan(nil, b[:n])
		if len(spans) != 1 || s.state != boundary || spans[0].Body != m.Body {
			t.Fatalf("%+v, spans:\n%s", m, bare.Show(spans))
		}
		if m.Masked {
			if hole := spans[0].Holes[0]; hole.Kind != parsers.HoleMask || hole.Key != m.Key || hole.Off != m.Body-4 {
				t.Fatalf("%+v, hole %+v", m, hole)
			}
		}
	})
}
