package websocket

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws the stream of a client or a server, with an MQTT message in each
// frame of data.
func genStream(t *rapid.T) (list [][]byte) {
	client := rapid.Bool().Draw(t, "client")
	if client {
		list = append(list, request("mqtt"))
	} else {
		list = append(list, answer("mqtt"))
	}
	add := func(b []byte) {
		if client {
			b = masked(rapid.Uint32().Draw(t, "key"), b)
		}
		list = append(list, b)
	}
	add(frame(0x82, []byte(connect)))
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			add(frame(0x82, []byte("\x40\x02\x00\x07")))
		case 1:
			add(frame(rapid.SampledFrom([]byte{0x89, 0x8a}).Draw(t, "ping"), []byte("1234")))
		default:
			topic := rapid.SampledFrom([]string{"a", "a/b", "sensors/room/temp", strings.Repeat("t/", 100)}).Draw(t, "topic")
			body := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 700, 70_000}).Draw(t, "body"))
			add(frame(0x82, publish(topic, rapid.IntRange(0, 65535).Draw(t, "id"), body)))
		}
	}
	return list
}

// genText draws a stream without an inner protocol.
func genText(t *rapid.T) (list [][]byte) {
	list = append(list, request(""))
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		b := frame(rapid.SampledFrom([]byte{0x81, 0x82, 0xc1, 0x89}).Draw(t, "first"), []byte(strings.Repeat("ab", rapid.IntRange(1, 60).Draw(t, "size"))))
		if rapid.Bool().Draw(t, "masked") {
			b = masked(rapid.Uint32().Draw(t, "key"), b)
		}
		list = append(list, b)
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) {
	t.Run("inner", func(t *testing.T) { suite.AnySplit(t, newScanner, genStream) })
	t.Run("bare", func(t *testing.T) { bare.AnySplit(t, newBare, genText) })
}

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first message after that which begins a
// segment is found.
func TestLoss(t *testing.T) {
	found := func(_ []byte, sp parsers.Span) bool { return sp.Key != 0 }
	t.Run("inner", func(t *testing.T) { suite.Loss(t, newScanner, genStream, nil, found) })
	t.Run("bare", func(t *testing.T) { bare.Loss(t, newBare, genText, nil, found) })
}
