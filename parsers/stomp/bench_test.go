package stomp

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[string] {
	alarm := `{"seq":7,"ts":1795988128205,"src":"line4/press2","temp":61.19,"press":4.205,"flow":17.03,"rpm":1486}`
	small := "MESSAGE\nsubscription:7\ndestination:/topic/plant.4\n\n" + alarm + "\x00"
	large := "SEND\ndestination:/topic/plant.4\ncontent-length:3000\n\n" + strings.Repeat("x", 3000) + "\x00"
	return parsertest.Traffic[string]{
		"message":    {small},
		"send":       {"SEND\ndestination:/topic/plant.4\n\n21.5\x00"},
		"rabbit":     {"MESSAGE\nsubscription:7\ndestination:/topic/a\nmessage-id:" + rabbitID + "17\nredelivered:false\ncontent-length:4\n\n21.5\x00"},
		"ack":        {"ACK\nid:17\n\n\x00"},
		"heart-beat": {"\n"},
		"batch":      {strings.Repeat(small, 40)},
		"straddling": {large[:1448], large[1448:2896], large[2896:] + small[:10], small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("SEND\na:b\nc\n\n\x00ACK\n", 40), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  "x" + strings.Repeat("0.123,456,789;", 104),
		"lines": "x" + strings.Repeat("0.123\r\n", 207),
		"worst": "x" + strings.Repeat("SEND\na:b\n\n\x00\x01\x00", 112),
	})
}

func BenchmarkProbe(b *testing.B) {
	p := []byte("SEND\ndestination:/topic/plant.4\n\n21.5\x00")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := []byte("SEND\ndestination:/topic/plant.4\n\n21.5\x00")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
