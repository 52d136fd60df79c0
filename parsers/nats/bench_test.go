package nats

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[string] {
	alarm := `{"seq":7,"ts":1795988128205,"src":"line4/press2","temp":61.19,"press":4.205,"flow":17.03,"rpm":1486}`
	small := fmt.Sprintf("MSG plant.4.alarms 145 %d\r\n%s\r\n", len(alarm), alarm)
	large := "MSG plant.4.picture 7 3000\r\n" + strings.Repeat("x", 3000) + "\r\n"
	return parsertest.Traffic[string]{
		"msg":        {small},
		"pub":        {"PUB plant.4.alarms 4\r\n21.5\r\n"},
		"request":    {"PUB plant.4.get _INBOX.RC0CSHJGL2K7UACXWR26GO.17 4\r\n21.5\r\n"},
		"hmsg":       {"HMSG plant.4.alarms 7 20 24\r\nNATS/1.0\r\nId: 17\r\n\r\n21.5\r\n"},
		"hpub":       {"HPUB plant.4.alarms 20 24\r\nNATS/1.0\r\nId: 17\r\n\r\n21.5\r\n"},
		"ack":        {"PUB " + ackTo + " 4\r\n+ACK\r\n"},
		"stream":     {"MSG orders 7 " + ackTo + " 4\r\n21.5\r\n"},
		"ping":       {"PING\r\n"},
		"batch":      {strings.Repeat(small, 40)},
		"straddling": {large[:1448], large[1448:2896], large[2896:] + small[:10], small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("MSG a b\r\nPUB \r\nPING\r\nMSG a 1 2\r\n", 40), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  "x" + strings.Repeat("0.123,456,789;", 104),
		"lines": "x" + strings.Repeat("0.123\r\n", 207),
		"worst": "x" + strings.Repeat("SUB a 1\r\n", 161),
	})
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
