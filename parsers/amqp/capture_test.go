package amqp_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/amqp"
	"sheaf/parsers/amqp10"
	"sheaf/parsers/builtin"
	"sheaf/parsers/parsertest"
)

// A tally is what was found in a capture.
type tally struct {
	spans  map[string]int // by protocol
	bytes  map[string]int
	events map[string]int // messages of AMQP with a content, by name and event
}

func count(t *testing.T, segs []parsers.Segment) tally {
	t.Helper()
	reg := builtin.Registry()
	first, _ := reg.Lookup("amqp")
	second, _ := reg.Lookup("amqp10")
	out := tally{map[string]int{}, map[string]int{}, map[string]int{}}
	parsertest.Scan(t, reg, segs, func(_ *parsers.Segment, sp parsers.Span) {
		out.spans[reg.Name(sp.Protocol)]++
		out.bytes[reg.Name(sp.Protocol)] += sp.Len
		content := sp.Protocol == first && amqp.Name(sp.Name).HasContent() || sp.Protocol == second && amqp10.Name(sp.Name) == amqp10.Transfer
		if content && sp.At == 0 {
			out.events[reg.MessageName(sp.Protocol, sp.Name)+" "+string(sp.Event)]++
		}
	})
	return out
}

// TestCapturesReassembled counts messages with segments in order.
func TestCapturesReassembled(t *testing.T) {
	for file, want := range map[string]map[string]int{
		"amqp091-ndpi-celery.pcap": {
			"basic.deliver celeryev/worker.heartbeat": 3,
			"basic.deliver default/tasks.#":           5,
			"basic.publish celeryev/task.received":    5,
			"basic.publish celeryev/task.started":     5,
			"basic.publish celeryev/task.succeeded":   5,
			"basic.publish celeryev/worker.heartbeat": 3,
			"basic.publish default/tasks.#":           5,
		},
		"amqp091-deepflow-pub-consume.pcap":   {"basic.deliver exchange-1/rk-1": 1, "basic.publish exchange-1/rk-1": 1},
		"amqp091-deepflow-return-errors.pcap": {"basic.publish return_test/nowhere": 1, "basic.return return_test/nowhere": 1},
		"amqp091-deepflow-publish.pcap":       {"basic.publish logs/": 1},
		"amqp10-qpid-hello.pcapng":            {"transfer amq.topic": 2},
		"live/amqp-fanout-100.pcap":           {"basic.deliver plant.alarms/": 2400},
	} {
		t.Run(file, func(t *testing.T) {
			got := count(t, parsertest.Reassemble(parsertest.Segments(t, parsertest.Capture(t, file))))
			if diff := cmp.Diff(want, got.events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCapturesAsTheyCame scans all captures, each packet in its turn: what is not
// AMQP is not taken for it, and what is one of its versions not for the other.
func TestCapturesAsTheyCame(t *testing.T) {
	for _, file := range parsertest.Captures(t, "*.pcap*", "live/*.pcap", "full/amqp*") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := count(t, parsertest.Segments(t, file))
			want := ""
			switch name := filepath.Base(file); {
			case strings.HasPrefix(name, "amqp10-"):
				want = "amqp10"
			case strings.HasPrefix(name, "amqp"):
				want = "amqp"
			}
			for _, protocol := range []string{"amqp", "amqp10"} {
				if n := got.spans[protocol]; (n > 0) != (protocol == want) {
					t.Errorf("%d spans of %s", n, protocol)
				}
			}
			if want != "" {
				t.Logf("bytes: %v, events: %v", got.bytes, slices.Sorted(maps.Keys(got.events)))
			}
		})
	}
}
