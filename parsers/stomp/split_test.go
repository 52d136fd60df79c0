package stomp

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws frames.
func genStream(t *rapid.T) (list []string) {
	list = append(list, rapid.SampledFrom([]string{messages[0].text, messages[2].text}).Draw(t, "hello"))
	for range rapid.IntRange(0, 12).Draw(t, "frames") {
		destination := rapid.SampledFrom([]string{"a", "/topic/plant.4", strings.Repeat("/long", 60)}).Draw(t, "destination")
		id := rapid.SampledFrom([]string{"0", "17", "sub-3", rabbitID + "18"}).Draw(t, "id")
		body := strings.Repeat("x\n\nSEND", rapid.SampledFrom([]int{0, 1, 5, 120, 700}).Draw(t, "body"))
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		length := ""
		if rapid.Bool().Draw(t, "length") {
			body = strings.ReplaceAll(body, "x", "\x00")
			length = fmt.Sprintf("content-length:%d\n", len(body))
		}
		var m string
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0, 1:
			m = "MESSAGE\nsubscription:" + id + "\nmessage-id:" + rabbitID + "17\nack:" + id + "\ndestination:" + destination + "\n" + length + "\n"
		case 2:
			m = "SEND\ndestination:" + destination + "\n" + length + "\n"
		case 3:
			m = "ACK\nid:" + id + "\n" + length + "\n"
		case 4:
			m = "RECEIPT\nreceipt-id:" + id + "\n" + length + "\n"
		}
		list = append(list, strings.ReplaceAll(m, "\n", end)+body+"\x00")
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) { suite.AnySplit(t, newScanner, genStream) }

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first frame after that which begins a
// segment is found.
func TestLoss(t *testing.T) {
	suite.Loss(t, newScanner, genStream, nil, func(m string, sp parsers.Span) bool {
		name, _, _, _ := command([]byte(m))
		return Name(sp.Name) == name
	})
}
