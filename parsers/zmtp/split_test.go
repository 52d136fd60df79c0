package zmtp

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid messages.
func genStream(t *rapid.T) (list [][]byte) {
	list = append(list, greeting("NULL"), ready(rapid.SampledFrom([]string{"PUB", "SUB"}).Draw(t, "socket")))
	text := rapid.SampledFrom([]string{"a", "\x01a/b", "\x00weather", strings.Repeat("long", 64), strings.Repeat("t/", 200)})
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			list = append(list, command(rapid.SampledFrom([]string{"SUBSCRIBE", "CANCEL", "PING", "JOIN", "NEW"}).Draw(t, "command"), text.Draw(t, "data")))
		case 1:
			list = append(list, message3(text.Draw(t, "body")))
		default:
			frames := []string{text.Draw(t, "topic")}
			for range rapid.IntRange(1, 3).Draw(t, "frames") {
				frames = append(frames, strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 256, 700}).Draw(t, "body")))
			}
			list = append(list, message3(frames...))
		}
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) { suite.AnySplit(t, newScanner, genStream) }

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first message after that which begins a
// segment is found.
func TestLoss(t *testing.T) {
	suite.Loss(t, newScanner, genStream, nil, func(_ []byte, sp parsers.Span) bool { return sp.Key != 0 })
}
