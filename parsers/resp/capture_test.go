package resp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/resp"
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

// TestCapturesOfOthers holds that no other protocol's traffic is taken for RESP.
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
	id, _ := reg.Lookup("redis")
	for _, file := range append(files, live...) {
		if strings.HasPrefix(filepath.Base(file), "redis") {
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

// TestCaptures counts what is published and delivered, and all other messages,
// with segments in order.
func TestCaptures(t *testing.T) {
	needCaptures(t)
	for file, want := range map[string]struct{ published, others, events, opaque int }{
		"redis-zeek-pubsub-resp2.pcap":       {5, 12, 2, 0},
		"redis-zeek-inline-almost-resp.pcap": {0, 2, 0, 42}, // neither RESP nor far from it
		"redis-zeek-attributes.pcap":         {0, 0, 0, 146},
		"redis-zeek-bulk-loading.pcap":       {0, 2003, 0, 0},
		"redis-zeek-large.pcap":              {0, 10, 0, 0},
		"redis-zeek-django-cloud.pcapng":     {0, 158, 0, 928}, // short replies on a port of its own
		"redis-zeek-stream.pcap":             {3, 5, 1, 0},
		"redis-ndpi-resp.pcap":               {0, 8, 0, 0},
		"redis-deepflow-get-500k.pcap":       {0, 20, 0, 0},
		"redis-zeek-django-cache.pcap":       {0, 632, 0, 0},
		"redis-deepflow-lrange.pcap":         {0, 2, 0, 0},
		"live/redis-fanout-100.pcap":         {2747, 400, 1, 0},
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			reg := builtin.Registry()
			id, _ := reg.Lookup("redis")
			published, others, opaque := 0, 0, 0
			events := map[string]bool{}
			scan(t, reg, reassemble(segments(t, filepath.Join(captures, file))), func(sp parsers.Span) {
				if sp.Protocol != id {
					opaque += sp.Len
					return
				}
				if sp.At != 0 {
					return
				}
				switch resp.Name(sp.Name) {
				case resp.PUBLISH, resp.SPUBLISH, resp.XADD, resp.Msg, resp.PMsg, resp.SMsg:
					published++
					if len(sp.Event) == 0 {
						t.Errorf("%s without an event", resp.Name(sp.Name))
					}
					events[string(sp.Event)] = true
				default:
					others++
				}
			})
			if published != want.published || others != want.others || len(events) != want.events || opaque != want.opaque {
				t.Errorf("%d published, %d others, %d opaque bytes, want %+v: %v", published, others, opaque, want, events)
			}
		})
	}
}
