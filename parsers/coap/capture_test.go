package coap_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/coap"
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

// scan calls span with what each segment is found to hold by CoAP alone.
func scan(t *testing.T, segs []parsers.Segment, span func(*parsers.Segment, parsers.Span)) {
	t.Helper()
	reg := parsers.NewRegistry(coap.Protocol())
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

func TestCaptures(t *testing.T) {
	needCaptures(t)
	notifications, opaque := 0, 0
	scan(t, segments(t, filepath.Join(captures, "coap-lwm2m-observe.pcapng")), func(_ *parsers.Segment, sp parsers.Span) {
		switch {
		case sp.Protocol == parsers.Opaque:
			opaque++
		case coap.Name(sp.Name) == coap.Notification:
			notifications++
		}
	})
	if notifications != 8543 || opaque != 0 {
		t.Errorf("%d notifications, want 8543, and %d opaque spans", notifications, opaque)
	}

	port, others := 0, 0
	scan(t, segments(t, filepath.Join(captures, "coap-ndpi-plus-mqtt.pcap")), func(seg *parsers.Segment, sp parsers.Span) {
		switch {
		case sp.Protocol == parsers.Opaque:
		case seg.Key.SrcPort == 5683 || seg.Key.DstPort == 5683:
			port++
		case seg.Key.SrcPort == 17500 || seg.Key.DstPort == 17500:
			others++
		default:
			t.Errorf("CoAP on %v", seg.Key)
		}
	})
	// On port 17500 it is found by its content.
	if port != 19 || others == 0 {
		t.Errorf("%d messages on port 5683, want 19, and %d elsewhere", port, others)
	}
	t.Logf("%d messages on port 17500", others)
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for CoAP.
func TestCapturesOfOthers(t *testing.T) {
	needCaptures(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no capture files: %v", err)
	}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "coap-") {
			continue
		}
		found := 0
		scan(t, segments(t, file), func(_ *parsers.Segment, sp parsers.Span) {
			if sp.Protocol != parsers.Opaque {
				found++
			}
		})
		if found > 0 {
			t.Errorf("%s: %d CoAP spans", filepath.Base(file), found)
		}
	}
}
