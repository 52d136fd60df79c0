package feed

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// message frames what a message holds.
func message(kind Kind, inside string) string {
	b := binary.BigEndian.AppendUint16(nil, uint16(1+len(inside)))
	return string(append(b, byte(kind))) + inside
}

func serial(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func news(n uint32, topic, body string) string {
	return message(News, serial(n)+string([]byte{byte(len(topic))})+topic+body)
}

var hello = message(Hello, "FEED\x01")

var suite = parsertest.Suite[string]{
	Name: func(name uint8) string { return names[name] },
	Hole: parsertest.ShowField,
}

func newScanner() parsers.Scanner { return Protocol().New(parsertest.ID) }

func TestScan(t *testing.T) {
	stream := hello + message(Subscribe, "stocks") + news(1, "stocks", "41.5") + message(Ack, serial(1)) + message(Ping, "")
	want := `HELLO 0+8 body 8
SUBSCRIBE 0+9 body 9 "stocks"
NEWS 0+18 body 14 "stocks" +#0=` + serial(1) + `
ACK 0+7 body 7 +#0=` + serial(1) + `
PING 0+3 body 3
`
	if diff := cmp.Diff(want, suite.ShowSpans(suite.ScanAll(t, newScanner(), stream), stream)); diff != "" {
		t.Error(diff)
	}
}

// draw draws the messages of a stream.
func draw(t *rapid.T) (list []string) {
	for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
		topic := rapid.SampledFrom([]string{"", "stocks", strings.Repeat("t", 255)}).Draw(t, "topic")
		list = append(list, rapid.SampledFrom([]string{
			hello, message(Subscribe, topic+"x"[len(topic)/255:]), message(Ack, serial(uint32(i))), message(Ping, ""),
			news(uint32(i), topic, strings.Repeat("body", rapid.SampledFrom([]int{0, 1, 700}).Draw(t, "body"))),
		}).Draw(t, "message"))
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut, and TestLoss
// that after a loss the first message that begins a segment is found.
func TestAnySplit(t *testing.T) { suite.AnySplit(t, newScanner, draw) }

func TestLoss(t *testing.T) {
	suite.Loss(t, newScanner, draw, nil, func(m string, sp parsers.Span) bool { return sp.Len == len(m) && sp.Key != 0 })
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte(hello+news(7, "stocks", "41.5")), []byte{3, 0, 9, 1, 200})
	f.Fuzz(func(t *testing.T, b, lengths []byte) {
		suite.FuzzScan(t, newScanner(), string(b), lengths, nil, 0)
	})
}

func TestScanDoesNotAllocate(t *testing.T) {
	large := news(1, "stocks", strings.Repeat("x", 3000))
	parsertest.Traffic[string]{
		"news": {news(1, "stocks", "41.5")}, "straddling": {large[:10], large[10:1448], large[1448:]},
	}.NoAllocs(t, newScanner)
}

func TestProbe(t *testing.T) {
	for b, want := range map[string]parsers.Confidence{
		hello:                       parsers.Strong,
		news(1, "stocks", "41.5"):   parsers.Weak,
		news(1, "stocks", "4")[:12]: parsers.Weak,
		"GET / HTTP/1.1\r\n":        parsers.None,
		"":                          parsers.None,
	} {
		if got := Probe([]byte(b)); got != want {
			t.Errorf("%q: %d, want %d", b, got, want)
		}
	}
	parsertest.ProbeRandom(t, 100_000, Probe, nil)
}
