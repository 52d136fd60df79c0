package nats

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][]string {
	alarm := `{"seq":7,"ts":1795988128205,"src":"line4/press2","temp":61.19,"press":4.205,"flow":17.03,"rpm":1486}`
	small := fmt.Sprintf("MSG plant.4.alarms 145 %d\r\n%s\r\n", len(alarm), alarm)
	large := "MSG plant.4.picture 7 3000\r\n" + strings.Repeat("x", 3000) + "\r\n"
	return map[string][]string{
		"msg":        {small},
		"pub":        {"PUB plant.4.alarms 4\r\n21.5\r\n"},
		"request":    {"PUB plant.4.get _INBOX.RC0CSHJGL2K7UACXWR26GO.17 4\r\n21.5\r\n"},
		"hmsg":       {"HMSG plant.4.alarms 7 20 24\r\nNATS/1.0\r\nId: 17\r\n\r\n21.5\r\n"},
		"ack":        {"PUB " + ackTo + " 4\r\n+ACK\r\n"},
		"stream":     {"MSG orders 7 " + ackTo + " 4\r\n21.5\r\n"},
		"ping":       {"PING\r\n"},
		"batch":      {strings.Repeat(small, 40)},
		"straddling": {large[:1448], large[1448:2896], large[2896:] + small[:10], small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	spans := make([]parsers.Span, 0, 64)
	for name, segments := range traffic() {
		s := NewScanner(testID)
		list := bytesOf(segments)
		once := func() {
			for _, p := range list {
				spans = s.Scan(spans[:0], p)
				spans = s.Rescan(spans[:0], p)
			}
		}
		once()
		if n := testing.AllocsPerRun(100, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	s := NewScanner(testID)
	garbage := []byte(strings.Repeat("MSG a b\r\nPUB \r\nPING\r\nMSG a 1 2\r\n", 40))
	if n := testing.AllocsPerRun(100, func() {
		s.Lost()
		spans = s.Scan(spans[:0], garbage)
		Probe(garbage)
	}); n != 0 {
		t.Errorf("garbage: %v allocations", n)
	}
}

func BenchmarkScan(b *testing.B) {
	for name, segments := range traffic() {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(testID)
			spans := make([]parsers.Span, 0, 64)
			list := bytesOf(segments)
			messages := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range list {
					spans = s.Scan(spans[:0], p)
					messages += len(spans)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/span")
		})
	}
}

func bytesOf(texts []string) (list [][]byte) {
	for _, s := range texts {
		list = append(list, []byte(s))
	}
	return list
}

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	for name, p := range map[string]string{
		"text":  strings.Repeat("0.123,456,789;", 104),
		"lines": strings.Repeat("0.123\r\n", 207),
		"worst": strings.Repeat("SUB a 1\r\n", 161),
	} {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(testID)
			spans := make([]parsers.Span, 0, 2048)
			payload := []byte("x" + p)
			b.ReportAllocs()
			for b.Loop() {
				s.Lost()
				spans = s.Scan(spans[:0], payload)
			}
		})
	}
}

func BenchmarkProbe(b *testing.B) {
	p := []byte("MSG plant.4.alarms 145 4\r\n21.5\r\n")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := []byte("MSG plant.4.alarms 145 4\r\n21.5\r\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
