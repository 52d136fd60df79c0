package amqp_test

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
	"sheaf/parsers/amqp"
	"sheaf/parsers/amqp10"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
)

// captures is where captures of other projects are, on machines that have them.
const captures = "../../../shared/captures"

func needCaptures(t *testing.T) {
	if _, err := os.Stat(captures); err != nil {
		t.Skipf("no captures to test against: %v", err)
	}
}

// decodeAll returns the segments of a capture file, as far as it can be read.
func decodeAll(t *testing.T, path string) (segs []parsers.Segment) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcap.NewReader(file)
	if err != nil {
		t.Skipf("%s: %v", path, err)
	}
	var d parsers.Decoder
	for {
		p, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Logf("%s: stopped reading: %v", path, err)
			}
			return segs
		}
		var seg parsers.Segment
		if p.Data != nil && d.Decode(slices.Clone(p.Data), &seg) == nil {
			segs = append(segs, seg)
		}
	}
}

// reassemble sorts each connection's segments by sequence number and takes out
// what was seen before. Connections begin anew at a SYN.
func reassemble(segs []parsers.Segment) (sorted []parsers.Segment) {
	type life struct {
		key parsers.FlowKey
		n   int
	}
	lives := map[life][]parsers.Segment{}
	newest := map[parsers.FlowKey]int{}
	var order []life
	for _, seg := range segs {
		if seg.Key.Proto != 6 || seg.TransportLen == 0 {
			continue
		}
		l := life{seg.Key, newest[seg.Key]}
		if old := lives[l]; len(old) > 0 && seg.Flags&2 != 0 && old[0].Seq != seg.Seq {
			newest[seg.Key]++
			l.n++
		}
		if lives[l] == nil {
			order = append(order, l)
		}
		lives[l] = append(lives[l], seg)
	}
	for _, l := range order {
		list := lives[l]
		slices.SortStableFunc(list, func(a, b parsers.Segment) int { return int(int32(a.Seq - b.Seq)) })
		var next seqnum.Value
		for i, seg := range list {
			seq := seqnum.Value(seg.Seq)
			if seg.Flags&2 != 0 {
				seq++
			}
			if end := seq.Add(seqnum.Size(len(seg.Payload()))); i == 0 || next.LessThan(end) {
				next = end
				sorted = append(sorted, seg)
			}
		}
	}
	return sorted
}

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
	streams := map[parsers.FlowKey]*parsers.Stream{}
	out := tally{map[string]int{}, map[string]int{}, map[string]int{}}
	for i := range segs {
		st := streams[segs[i].Key]
		if st == nil {
			st = new(parsers.Stream)
			streams[segs[i].Key] = st
		}
		sum := 0
		for _, sp := range st.Scan(reg, &segs[i], nil) {
			sum += sp.Len
			out.spans[reg.Name(sp.Protocol)]++
			out.bytes[reg.Name(sp.Protocol)] += sp.Len
			content := sp.Protocol == first && amqp.Name(sp.Name).HasContent() || sp.Protocol == second && amqp10.Name(sp.Name) == amqp10.Transfer
			if content && sp.At == 0 {
				out.events[reg.MessageName(sp.Protocol, sp.Name)+" "+string(sp.Event)]++
			}
		}
		if sum != len(segs[i].Payload()) {
			t.Fatalf("spans cover %d of %d bytes", sum, len(segs[i].Payload()))
		}
	}
	return out
}

// TestCapturesReassembled counts messages with segments in order.
func TestCapturesReassembled(t *testing.T) {
	needCaptures(t)
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
			got := count(t, reassemble(decodeAll(t, filepath.Join(captures, file))))
			if diff := cmp.Diff(want, got.events); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCapturesAsTheyCame scans all captures, each packet in its turn: what is not
// AMQP is not taken for it, and what is one of its versions not for the other.
func TestCapturesAsTheyCame(t *testing.T) {
	needCaptures(t)
	var files []string
	for _, pattern := range []string{"*.pcap*", "live/*.pcap", "full/amqp*"} {
		list, err := filepath.Glob(filepath.Join(captures, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := count(t, decodeAll(t, file))
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
