package amqp10

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid frames, and the frames.
func genStream(t *rapid.T) (all [][]byte) {
	tags := []string{"", "1", "\x01\x00\x00\x00", strings.Repeat("u", 16), strings.Repeat("u", 200)}
	for range rapid.IntRange(0, 12).Draw(t, "frames") {
		channel := rapid.IntRange(0, 2).Draw(t, "channel")
		handle := rapid.SampledFrom([]int{0, 1, 300}).Draw(t, "handle")
		id := rapid.SampledFrom([]int{0, 9, 9000}).Draw(t, "id")
		address := rapid.SampledFrom([]string{"", "queue", strings.Repeat("q", 120)}).Draw(t, "address")
		var m []byte
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			text := strings.Repeat("\x00S", rapid.SampledFrom([]int{0, 1, 60, 1500}).Draw(t, "body"))
			m = transfer(channel, handle, id, rapid.SampledFrom(tags).Draw(t, "tag"), text)
		case 2:
			m = attach(channel, handle, rapid.SampledFrom([][]byte{yes, no}).Draw(t, "role"), address, "")
		case 3:
			m = disposition(channel, id, id)
		case 4:
			m = perform(channel, Attach, str("l"), num(handle), no, null, null, cat([]byte{codeBinary32}, u32(1200), make([]byte, 1200)))
		case 5:
			m = rapid.SampledFrom(frames).Draw(t, "frame").bytes
		}
		all = append(all, m)
	}
	return all
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
		func(_ parsers.Scanner, m []byte) bool { return name(m) != Performative },
		func(m []byte, sp parsers.Span) bool { return Name(sp.Name) == name(m) })
}
