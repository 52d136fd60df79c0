package resp

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[string] {
	alarm := `{"seq":7,"ts":1795988128205,"src":"line4/press2","temp":61.19,"press":4.205,"flow":17.03,"rpm":1486}`
	small := arrayOf("message", "plant:4:alarms", alarm)
	large := arrayOf("message", "plant:4:picture", strings.Repeat("x", 3000))
	return parsertest.Traffic[string]{
		"message":    {small},
		"publish":    {arrayOf("PUBLISH", "plant:4:alarms", "21.5")},
		"pmessage":   {arrayOf("pmessage", "plant:*", "plant:4:alarms", "21.5")},
		"xreadgroup": {arrayOf("XREADGROUP", "GROUP", "g", "consumer-1", "COUNT", "1", "STREAMS", "race", ">")},
		"stream":     {"*1\r\n*2\r\n$4\r\nrace\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nk\r\n$1\r\nv\r\n"},
		"xadd":       {arrayOf("XADD", "race", "*", "temp", "21.5")},
		"get":        {arrayOf("get", "plant:4:alarms")},
		"integer":    {":100\r\n"},
		"batch":      {strings.Repeat(small, 40)},
		"straddling": {large[:1448], large[1448:2896], large[2896:] + small[:10], small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("*3\r\n$7\r\nPING\r\n:1\r\n*2\r\nx", 40), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  "x" + strings.Repeat("0.123,456,789;", 104) + "\x00",
		"lines": "x" + strings.Repeat("0.123\r\n", 207) + "\x00",
		"worst": "x" + strings.Repeat("*1\r\n$4\r\nPING\r\n", 103) + "\x00",
	})
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
