package nats_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/nats"
	"sheaf/pcap"
)

// captures is where captures of other projects are, on machines that have them.
const captures = "../../../shared/captures"

// segments returns the TCP segments of a capture file.
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
		if p.Data != nil && d.Decode(slices.Clone(p.Data), &seg) == nil && seg.Key.Proto == 6 && seg.TransportLen > 0 {
			segs = append(segs, seg)
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

// scan calls span with what each segment is found to hold.
func scan(t *testing.T, reg *parsers.Registry, segs []parsers.Segment, span func(parsers.Span)) {
	t.Helper()
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
			span(sp)
		}
		if sum != len(segs[i].Payload()) {
			t.Fatalf("spans cover %d of %d bytes", sum, len(segs[i].Payload()))
		}
	}
}

func needCaptures(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(captures); err != nil {
		t.Skipf("no captures to test against: %v", err)
	}
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for NATS.
func TestCapturesOfOthers(t *testing.T) {
	needCaptures(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no capture files: %v", err)
	}
	live, err := filepath.Glob(filepath.Join(captures, "live", "*.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	reg := builtin.Registry()
	id, _ := reg.Lookup("nats")
	for _, file := range append(files, live...) {
		if strings.HasPrefix(filepath.Base(file), "nats") {
			continue
		}
		n := 0
		scan(t, reg, segments(t, file), func(sp parsers.Span) {
			if sp.Protocol == id {
				n++
			}
		})
		if n > 0 {
			t.Errorf("%s: %d spans", filepath.Base(file), n)
		}
	}
}

// TestCaptures counts messages with segments in order, and the distinct events.
func TestCaptures(t *testing.T) {
	needCaptures(t)
	for file, want := range map[string][2]int{
		"nats-spicy-simple.pcap":          {4, 1},
		"nats-spicy-jetstream-kv.pcap":    {28, 8},
		"nats-deepflow-headers.pcap":      {9, 2},
		"nats-deepflow-otel.pcap":         {4, 1},
		"nats-deepflow-skywalking.pcap":   {1, 1},
		"nats-deepflow-err.pcap":          {0, 0},
		"nats-deepflow-rpc1-modpcap.pcap": {4, 2},
		"nats-deepflow-rpc3-modpcap.pcap": {1, 1},
		"live/nats-fanout-100.pcap":       {2646, 1},
		"live/nats-fanoutskew-100.pcap":   {3742, 1},
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			reg := builtin.Registry()
			id, _ := reg.Lookup("nats")
			n, opaque := 0, 0
			events := map[string]bool{}
			scan(t, reg, reassemble(segments(t, filepath.Join(captures, file))), func(sp parsers.Span) {
				switch {
				case sp.Protocol != id:
					opaque += sp.Len
				case sp.At == 0 && (sp.Name == uint8(nats.PUB) || sp.Name == uint8(nats.HPUB) || sp.Name == uint8(nats.MSG) || sp.Name == uint8(nats.HMSG)):
					n++
					if len(sp.Event) == 0 {
						t.Errorf("%s without an event", nats.Name(sp.Name))
					}
					events[string(sp.Event)] = true
				}
			})
			if n != want[0] || len(events) != want[1] {
				t.Errorf("%d messages, %d events, want %v: %v", n, len(events), want, events)
			}
			if opaque > 10 { // DEADBEEF
				t.Errorf("%d bytes are opaque", opaque)
			}
		})
	}
}
