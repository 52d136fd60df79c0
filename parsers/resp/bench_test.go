package resp

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][]string {
	alarm := `{"seq":7,"ts":1795988128205,"src":"line4/press2","temp":61.19,"press":4.205,"flow":17.03,"rpm":1486}`
	small := arrayOf("message", "plant:4:alarms", alarm)
	large := arrayOf("message", "plant:4:picture", strings.Repeat("x", 3000))
	return map[string][]string{
		"message":    {small},
		"publish":    {arrayOf("PUBLISH", "plant:4:alarms", "21.5")},
		"pmessage":   {arrayOf("pmessage", "plant:*", "plant:4:alarms", "21.5")},
		"xreadgroup": {arrayOf("XREADGROUP", "GROUP", "g", "consumer-1", "COUNT", "1", "STREAMS", "race", ">")},
		"stream":     {"*1\r\n*2\r\n$4\r\nrace\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n"},
		"get":        {arrayOf("get", "plant:4:alarms")},
		"integer":    {":100\r\n"},
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
	garbage := []byte(strings.Repeat("*3\r\n$7\r\nPING\r\n:1\r\n*2\r\nx", 40))
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
		"worst": strings.Repeat("*1\r\n$4\r\nPING\r\n", 103),
	} {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(testID)
			spans := make([]parsers.Span, 0, 2048)
			payload := []byte("x" + p + "\x00")
			b.ReportAllocs()
			for b.Loop() {
				s.Lost()
				spans = s.Scan(spans[:0], payload)
			}
		})
	}
}

func BenchmarkProbe(b *testing.B) {
	p := []byte(arrayOf("message", "plant:4:alarms", "21.5"))
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := []byte(arrayOf("message", "plant:4:alarms", "21.5"))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
