package nats

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws messages.
func genStream(t *rapid.T) (list []string) {
	list = append(list, rapid.SampledFrom([]string{info, connect}).Draw(t, "hello"))
	subjects := []string{"a", "plant.4.alarms", "_INBOX.RC0CSH.17", "_INBOX.RC0CSH", strings.Repeat("long.", 60) + "x", ackTo}
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		subject := rapid.SampledFrom(subjects).Draw(t, "subject")
		reply := rapid.SampledFrom([]string{"", "b ", "_INBOX.RC0CSH.x8 ", ackTo + " "}).Draw(t, "reply")
		sid := rapid.SampledFrom([]string{"1", "145", "alice", "0"}).Draw(t, "sid")
		body := strings.Repeat("\r\nMSG", rapid.SampledFrom([]int{0, 1, 5, 120, 700}).Draw(t, "body"))
		head := "NATS/1.0\r\nA: b\r\n\r\n"
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1:
			list = append(list, fmt.Sprintf("MSG %s %s %s%d\r\n%s\r\n", subject, sid, reply, len(body), body))
		case 2:
			list = append(list, fmt.Sprintf("PUB %s %s%d\r\n%s\r\n", subject, reply, len(body), body))
		case 3:
			list = append(list, fmt.Sprintf("HMSG %s %s %s%d %d\r\n%s%s\r\n", subject, sid, reply, len(head), len(head)+len(body), head, body))
		case 4:
			list = append(list, fmt.Sprintf("SUB %s  %s\r\n", subject, sid))
		case 5:
			list = append(list, rapid.SampledFrom([]string{"PING\r\n", "PONG\r\n", "+OK\r\n", "-ERR 'x'\r\n"}).Draw(t, "light"))
		case 6:
			list = append(list, "UNSUB "+sid+"\r\n")
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
	suite.Loss(t, newScanner, genStream, nil, func(m string, sp parsers.Span) bool {
		name, _, _ := verb([]byte(m))
		return Name(sp.Name) == name
	})
}
