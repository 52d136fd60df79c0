package tls

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws the records of one direction of a connection.
func genStream(t *rapid.T) (list [][]byte) {
	list = append(list, rapid.SampledFrom([][]byte{clientHello, serverHello}).Draw(t, "hello"))
	if rapid.Bool().Draw(t, "change") {
		list = append(list, change, finished)
	}
	for range rapid.IntRange(0, 12).Draw(t, "records") {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			list = append(list, record(Handshake, message(4, rapid.SampledFrom([]int{3, 200, 3000}).Draw(t, "message"))))
		case 1:
			list = append(list, record(Alert, strings.Repeat("a", rapid.SampledFrom([]int{2, 17, 26}).Draw(t, "alert"))))
		default:
			list = append(list, data(rapid.SampledFrom([]int{0, 1, 30, 120, 1400, maxFragment}).Draw(t, "data")))
		}
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) { suite.AnySplit(t, newScanner, genStream) }

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first record after that which begins a segment
// is found.
func TestLoss(t *testing.T) {
	suite.Loss(t, newScanner, genStream, nil, func(m []byte, sp parsers.Span) bool {
		return Name(sp.Name) == Name(m[0]) && sp.Len == len(m)
	})
}
