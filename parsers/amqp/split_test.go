package amqp

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid frames, and the messages in it.
func genStream(t *rapid.T) (list [][]byte) {
	if rapid.Bool().Draw(t, "start") {
		list = append(list, []byte(preamble))
	}
	keys := []string{"", "a", "plant.line.4", strings.Repeat("k", 255)}
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		channel := rapid.IntRange(1, 3).Draw(t, "channel")
		tag := rapid.IntRange(0, 1<<40).Draw(t, "tag")
		key := rapid.SampledFrom(keys).Draw(t, "key")
		text := strings.Repeat("\xce", rapid.SampledFrom([]int{0, 1, 5, 120, 2700}).Draw(t, "body"))
		consumer := rapid.SampledFrom([]string{"c", "ctag-1.x", strings.Repeat("t", 63), strings.Repeat("t", 255)}).Draw(t, "consumer")
		var m []byte
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1:
			m = deliver(channel, consumer, tag, "x", key, text)
		case 2:
			m = publish(channel, "exchange", key, text)
		case 3:
			m = ack(channel, tag)
		case 4:
			m = heartbeat()
		case 5:
			m = cat(method(channel, BasicReturn, u16(312), str("NO_ROUTE"), str("x"), str(key)), contents(channel, text))
		case 6:
			m = rapid.SampledFrom(frames).Draw(t, "frame").bytes
			var f front
			if parseFront(m, &f); f.name.HasContent() || f.kind == typeHeader {
				continue
			}
		}
		list = append(list, m)
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) { suite.AnySplit(t, newScanner, genStream) }

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first message after that which begins a
// segment is found.
func TestLoss(t *testing.T) {
	name := func(m []byte) Name {
		var f front
		parseFront(m, &f)
		return f.name
	}
	suite.Loss(t, newScanner, genStream,
		func(_ parsers.Scanner, m []byte) bool { return name(m) != Method },
		func(m []byte, sp parsers.Span) bool { return Name(sp.Name) == name(m) })
}
