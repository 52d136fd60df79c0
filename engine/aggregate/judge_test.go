package aggregate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

func TestLikeness(t *testing.T) {
	long := strings.Repeat("0123456789", 200)
	for _, tt := range []struct {
		name, a, b string
		want       int
	}{
		{"nothing remembered", "", "abc", 0},
		{"the same", "abcdef", "abcdef", 6},
		{"nothing in common", "abc", "xyz", 0},
		{"a field that differs", `{"a":17,"b":2}`, `{"a":23,"b":2}`, 12},
		{"a field that grew", `{"a":9,"b":2}`, `{"a":10,"b":2}`, 12},
		{"a field that shrank", `{"a":10,"b":2}`, `{"a":9,"b":2}`, 12},
		{"fields that differ on both sides of one that grew", `1,9,"x":1}`, `2,10,"x":2}`, 7},
		{"long and the same", long, long, len(long) - len(long)%512},
		{"long and unlike", long, strings.Repeat("abcdefghij", 200), 0},
	} {
		if got := likeness([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("%s: %d bytes alike, expected %d", tt.name, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 1500).Draw(t, "a")
		b := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 1500).Draw(t, "b")
		if got := likeness(a, b); got < 0 || got > len(b) {
			t.Fatalf("%d of %d bytes alike", got, len(b))
		}
	})
}

// What nobody knows the protocol of is compared by content: sensors each with
// what they sent before, and the copies of a message with one another, also where
// each has a number of its own.
func TestJudge(t *testing.T) {
	const flows, rounds = 20, 12
	for _, tt := range []struct {
		name    string
		payload func(flow, round int) string
		most    float64 // bytes for a segment, at the end
	}{
		{"sensors", func(flow, round int) string {
			id := uint32(flow+1) * 2654435761
			return fmt.Sprintf("VALUE %010d at %08x,%08x: %d.%02d %s", id, id^0x5bd1e995, id*40503, 20+round%3, (round*37+flow*11)%100, strings.Repeat(fmt.Sprint(id%97), 20))
		}, 4.5},
		{"copies", func(flow, round int) string {
			return fmt.Sprintf("NOTE %d %08x %s", 5000+flow*31, uint32(round+1)*2654435761, strings.Repeat(fmt.Sprint(round*7919%1000), 20))
		}, 4.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, Config{Registry: parsers.NewRegistry()})
			all := make([]segment, flows)
			for i := range all {
				all[i] = segment{client: i, port: i, down: true, flags: 0x18, window: 64, seq: uint32(i) * 7919, ack: 5, id: uint16(i), tsval: 1}
			}
			now, before := time.Duration(0), 0
			for round := range rounds {
				if round == rounds/2 {
					before = p.bytes[1]
				}
				now += 50 * ms
				for i := range all {
					s := &all[i]
					s.payload = []byte(tt.payload(i, round))
					s.tsval += 50
					s.id++
					p.run(1, now, s.packet())
					s.seq += uint32(len(s.payload))
				}
				p.due(now + 40*ms)
			}
			got := float64(p.bytes[1]-before) / flows / (rounds - rounds/2)
			t.Logf("%.2f bytes for a segment", got)
			if got > tt.most {
				t.Errorf("%.2f bytes for a segment, expected %.2f at most", got, tt.most)
			}
		})
	}
}
