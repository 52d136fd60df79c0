package resp

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws messages that one side sends.
func genStream(t *rapid.T) (list []string) {
	from := rapid.SampledFrom([]side{client, server}).Draw(t, "side")
	list = append(list, map[side]string{client: arrayOf("HELLO", "3"), server: "+OK\r\n"}[from])
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		channel := rapid.SampledFrom([]string{"a", "plant:4:alarms", strings.Repeat("long:", 60), strings.Repeat("long:", 200)}).Draw(t, "channel")
		body := strings.Repeat("\r\n*1", rapid.SampledFrom([]int{0, 1, 5, 120, 700}).Draw(t, "body"))
		if from == client {
			list = append(list, rapid.SampledFrom([]string{
				arrayOf("PUBLISH", channel, body), arrayOf("XADD", channel, "*", "k", body), arrayOf("GET", channel),
				arrayOf("XREADGROUP", "GROUP", "g", "me", "STREAMS", channel, ">"), arrayOf("SUBSCRIBE", channel),
				"PUBLISH " + channel + " x\r\n", "PING\r\n", "\r\n", arrayOf("json.x", channel),
			}).Draw(t, "message"))
			continue
		}
		list = append(list, rapid.SampledFrom([]string{
			arrayOf("message", channel, body), ">" + arrayOf("pmessage", "p*", channel, body)[1:],
			"*3\r\n$9\r\nsubscribe\r\n" + arrayOf(channel)[4:] + ":17\r\n", ":1\r\n", "+OK\r\n", "+PONG\r\n", "-ERR x\r\n",
			arrayOf(channel, body), arrayOf("x")[4:], "*-1\r\n", "%1\r\n+a\r\n,1.5\r\n", "|1\r\n+a\r\n:1\r\n#t\r\n",
			"*1\r\n*2\r\n" + arrayOf(channel)[4:] + "*1\r\n*2\r\n$3\r\n1-0\r\n" + arrayOf("k", body),
		}).Draw(t, "message"))
	}
	return list
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) { suite.AnySplit(t, newScanner, genStream) }

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first message after that which begins a
// segment is found.
func TestLoss(t *testing.T) {
	evidence := func(s parsers.Scanner, m string) bool {
		return (!inline(m[0]) || s.(*Scanner).side != server) && !strings.Contains(m, "json.x")
	}
	suite.Loss(t, newScanner, genStream, evidence, func(_ string, sp parsers.Span) bool { return sp.Name != 0 })
}
