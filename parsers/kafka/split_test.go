package kafka

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid requests or responses.
func genStream(t *rapid.T) (list [][]byte) {
	id := rapid.IntRange(0, 1000).Draw(t, "id")
	client := rapid.SampledFrom([]string{"c-1", "client", strings.Repeat("long", 40)}).Draw(t, "client")
	answers := rapid.Bool().Draw(t, "responses")
	topics := rapid.SampledFrom([]string{"a", "a.b", strings.Repeat("long", 60)})
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		id++
		body := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 256, 700}).Draw(t, "body"))
		switch {
		case answers:
			list = append(list, response(id, "\xff\xff\xff\xff"+body))
		case rapid.Bool().Draw(t, "fetch"):
			list = append(list, fetch(rapid.SampledFrom([]int{0, 7, 12}).Draw(t, "version"), id, client, topics.Draw(t, "topic"), 77, id))
		case rapid.Bool().Draw(t, "produce"):
			list = append(list, produce(rapid.SampledFrom([]int{0, 3, 9}).Draw(t, "version"), id, client, topics.Draw(t, "topic"), []byte(body)))
		default:
			list = append(list, request(rapid.IntRange(2, 99).Draw(t, "API"), 1, id, client, []byte(body)))
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
