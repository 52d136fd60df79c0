package kafka_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
	"sheaf/parsers/kafka"
	"sheaf/pcap"
)

// captures is where captures of other projects are, on machines that have them.
const captures = "../../../shared/captures"

func needCaptures(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(captures); err != nil {
		t.Skipf("no captures to test against: %v", err)
	}
}

// segments returns the segments of a capture file, as they came.
func segments(t *testing.T, path string) (segs []parsers.Segment) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcap.NewReader(file)
	if err != nil {
		t.Logf("%s: %v", path, err)
		return nil
	}
	var d parsers.Decoder
	for {
		p, err := r.Next()
		if err != nil {
			return segs
		}
		var seg parsers.Segment
		if p.Data != nil && d.Decode(slices.Clone(p.Data), &seg) == nil && seg.TransportLen > 0 {
			segs = append(segs, seg)
		}
	}
}

// scan calls span with what each segment is found to hold by Kafka alone.
func scan(t *testing.T, segs []parsers.Segment, span func(*parsers.Segment, parsers.Span)) {
	t.Helper()
	reg := parsers.NewRegistry(kafka.Protocol())
	streams := map[parsers.FlowKey]*parsers.Stream{}
	for i := range segs {
		st := streams[segs[i].Key]
		if st == nil {
			st = new(parsers.Stream)
			streams[segs[i].Key] = st
		}
		sum := 0
		for _, sp := range st.Scan(reg, &segs[i], nil) {
			sum += sp.Len
			span(&segs[i], sp)
		}
		if sum != len(segs[i].Payload()) {
			t.Fatalf("spans cover %d of %d bytes", sum, len(segs[i].Payload()))
		}
	}
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for Kafka.
func TestCapturesOfOthers(t *testing.T) {
	needCaptures(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no capture files: %v", err)
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "kafka-") {
			continue
		}
		found := 0
		scan(t, segments(t, file), func(_ *parsers.Segment, sp parsers.Span) {
			if sp.Protocol != parsers.Opaque {
				found++
			}
		})
		if found > 0 {
			t.Errorf("%s: %d Kafka spans", filepath.Base(file), found)
		}
	}
}

// reassemble sorts each flow's segments by sequence number and takes out what was
// seen before.
func reassemble(segs []parsers.Segment) (sorted []parsers.Segment) {
	flows := map[parsers.FlowKey][]parsers.Segment{}
	var keys []parsers.FlowKey
	for _, seg := range segs {
		if flows[seg.Key] == nil {
			keys = append(keys, seg.Key)
		}
		flows[seg.Key] = append(flows[seg.Key], seg)
	}
	for _, key := range keys {
		flow := flows[key]
		slices.SortStableFunc(flow, func(a, b parsers.Segment) int { return int(int32(a.Seq - b.Seq)) })
		var next seqnum.Value
		for i, seg := range flow {
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

// TestCaptures counts requests. On ports other than 9092 the responses are left
// opaque.
func TestCaptures(t *testing.T) {
	needCaptures(t)
	for file, want := range map[string]map[string]int{
		"kafka-ndpi-produce-v3.pcapng":     {"Produce": 3},
		"kafka-deepflow-produce-v2.pcap":   {"Produce": 1},
		"kafka-deepflow-produce-v7.pcap":   {"Produce": 1},
		"kafka-deepflow-fetch-v12.pcap":    {"Fetch": 1},
		"kafka-deepflow-api-versions.pcap": {"ApiVersions": 1},
		"kafka-deepflow-mixed.pcap":        {"Fetch": 1, "OffsetCommit": 1, "Heartbeat": 1},
		"kafka-deepflow-join-group.pcap":   {"JoinGroup": 1},
	} {
		found := map[string]int{}
		events := map[string]int{}
		scan(t, reassemble(segments(t, filepath.Join(captures, file))), func(seg *parsers.Segment, sp parsers.Span) {
			switch {
			case sp.Protocol == parsers.Opaque:
				if seg.Key.SrcPort == 9092 || seg.Key.DstPort == 9092 {
					t.Errorf("%s: %d bytes are opaque", file, sp.Len)
				}
			case sp.At == 0:
				found[kafka.Name(sp.Name).String()]++
				events[string(sp.Event)]++
			}
		})
		for name, n := range want {
			if found[name] != n {
				t.Errorf("%s: %d %s, want %d", file, found[name], name, n)
			}
		}
		t.Logf("%s: %v, events %v", file, found, events)
	}
}
