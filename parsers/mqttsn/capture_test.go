package mqttsn_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/mqttsn"
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

// scan calls span with what each segment is found to hold by MQTT-SN alone.
func scan(t *testing.T, segs []parsers.Segment, span func(parsers.Span)) {
	t.Helper()
	reg := parsers.NewRegistry(mqttsn.Protocol())
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

// TestCapturesOfOthers holds that no traffic is taken for MQTT-SN. There is no
// capture of it among them.
func TestCapturesOfOthers(t *testing.T) {
	needCaptures(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no capture files: %v", err)
	}
	for _, file := range files {
		found := 0
		scan(t, segments(t, file), func(sp parsers.Span) {
			if sp.Protocol != parsers.Opaque {
				found++
			}
		})
		if found > 0 {
			t.Errorf("%s: %d MQTT-SN spans", filepath.Base(file), found)
		}
	}
}
