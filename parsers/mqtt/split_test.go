package mqtt

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid messages of one version.
func genStream(t *rapid.T) (list [][]byte) {
	version := rapid.SampledFrom([]uint8{3, 4, 5}).Draw(t, "version")
	list = append(list, connect(version))
	topics := []string{"a", "a/b", "sensors/ärger/temp", strings.Repeat("t/", 100), strings.Repeat("long", 100)}
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		id := rapid.IntRange(1, 65535).Draw(t, "id")
		qos := byte(rapid.IntRange(0, 2).Draw(t, "qos"))
		topic := rapid.SampledFrom(topics).Draw(t, "topic")
		body := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 700}).Draw(t, "body"))
		var m []byte
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1, 2:
			if version < 5 {
				m = publish(qos, topic, id, body)
				break
			}
			var p []byte
			switch n := rapid.IntRange(0, 70).Draw(t, "alias"); {
			case n == 0:
				topic = ""
				p = topicAlias(1 + id%70)
			case n%2 == 0:
				p = topicAlias(n)
			}
			m = publish5(qos, topic, id, props(userProperty("k", "v"), p), body)
		case 3:
			m = msg(rapid.SampledFrom([]byte{0x40, 0x50, 0x62, 0x70}).Draw(t, "ack"), u16(id))
		case 4:
			m = msg(rapid.SampledFrom([]byte{0xc0, 0xd0}).Draw(t, "ping"))
		case 5:
			m = msg(0x90, u16(id), []byte{0, 0})
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
	suite.Loss(t, newScanner, genStream, nil, func(m []byte, sp parsers.Span) bool { return Name(sp.Name) == Name(m[0]>>4) })
}
