package zmtp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/zmtp"
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

// scan calls span with what each segment is found to hold by ZMTP alone.
func scan(t *testing.T, segs []parsers.Segment, span func(*parsers.Segment, parsers.Span)) {
	t.Helper()
	reg := parsers.NewRegistry(zmtp.Protocol())
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

// TestCaptures counts messages, and holds that everything is recognised.
func TestCaptures(t *testing.T) {
	needCaptures(t)
	for file, want := range map[string]int{
		"zmtp-deepflow-pubsub-all.pcap":   35,
		"zmtp-deepflow-pubsub-one.pcap":   5,
		"zmtp-deepflow-reqrep-null.pcap":  2,
		"zmtp-deepflow-reqrep-plain.pcap": 2,
		"zmtp-distsys-pushpull.pcap":      1,
	} {
		found, opaque := 0, 0
		events := map[string]int{}
		scan(t, segments(t, filepath.Join(captures, file)), func(_ *parsers.Segment, sp parsers.Span) {
			switch {
			case sp.Protocol == parsers.Opaque:
				opaque++
			case zmtp.Name(sp.Name) == zmtp.Message && sp.At == 0:
				found++
				events[string(sp.Event)]++
			}
		})
		if found != want || opaque != 0 {
			t.Errorf("%s: %d messages, want %d, and %d opaque spans", file, found, want, opaque)
		}
		t.Logf("%s: %v", file, events)
	}
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for ZMTP.
func TestCapturesOfOthers(t *testing.T) {
	needCaptures(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no capture files: %v", err)
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "zmtp-") {
			continue
		}
		found := 0
		scan(t, segments(t, file), func(_ *parsers.Segment, sp parsers.Span) {
			if sp.Protocol != parsers.Opaque {
				found++
			}
		})
		if found > 0 {
			t.Errorf("%s: %d ZMTP spans", filepath.Base(file), found)
		}
	}
}
