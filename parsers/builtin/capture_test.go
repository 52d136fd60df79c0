package builtin_test

import (
	"path/filepath"
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/mqtt"
	"sheaf/parsers/parsertest"
)

// published is how many PUBLISH messages a capture of other projects has, which is
// what their README says where nothing else is said.
var published = map[string]int{
	"mqtt-mqttset-benign-train.pcap":           19498,
	"mqtt-mqttset-malaria-qos1-train.pcap":     3120,
	"mqtt-mqttset-malformed-train.pcap":        2956,
	"mqtt-mqttset-flood-train.pcap":            39452,
	"mqtt-mqttset-slowite-train.pcap":          0,
	"mqtt-mqttset-bruteforce-train.pcapng":     0,
	"mqtt-zeek-paho-v31.pcap":                  3,
	"mqtt-ndpi-vlan-v31-v311.pcap":             2,
	"mqtt-arkime-big-payloads.pcap":            8,
	"mqtt-arkime-synthetic-8k-topic.pcap":      8,
	"mqtt-matlab-sensor-pubsub.pcap":           200,
	"mqtt-port1337-null.pcap":                  18,
	"mqtt-distsys-repeat.pcap":                 41,
	"mqtt-suricata-v31-pub-qos1.pcap":          1,
	"mqtt-suricata-v31-pub-qos2.pcap":          1,
	"mqtt-suricata-v31-sub.pcap":               0,
	"mqtt-suricata-v31-unsub.pcap":             0,
	"mqtt-suricata-v311-pub-qos1.pcap":         1,
	"mqtt-suricata-v311-pub-qos2.pcap":         1,
	"mqtt-suricata-v311-pub-noclientid.pcap":   1,
	"mqtt-suricata-v311-sub.pcap":              0,
	"mqtt-suricata-v5-pub-qos1.pcap":           1,
	"mqtt-suricata-v5-pub-qos2.pcap":           1,
	"mqtt-suricata-v5-pub-props.pcap":          1,
	"mqtt-suricata-v5-sub-props.pcap":          0,
	"mqtt-suricata-v5-pub-jpeg.pcap":           1,
	"mqtt-suricata-100k-payloads.pcap":         4,
	"mqtt-suricata-midstream-split.pcap":       1,
	"mqtt-suricata-ping-only.pcap":             0,
	"mqtt-suricata-missing-connect.pcap":       3,
	"mqtt-suricata-truncated-frame.pcap":       0,
	"mqtt-suricata-v311-pub.pcap":              1,
	"mqtt-deepflow-pub-256.pcap":               2,
	"mqtt-deepflow-roundtrip-gaps.pcap":        3,
	"mqtt-deepflow-multi-publish-segment.pcap": 10,
	"mqtt-suricata-v5-sub-auth.pcap":           0,
	"mqtt-suricata-v5-unsub-2conn.pcap":        0,
	"mqtt-suricata-invalid-qos3.pcap":          0, // the README's one has QoS 3, which is no PUBLISH
	"mqtt-deepflow-subscribe-only.pcap":        0,
	"mqtt-deepflow-connect-only.pcap":          0,
	"coap-ndpi-plus-mqtt.pcap":                 75,
}

// TestCapturesReassembled counts PUBLISH messages with segments in order, and holds
// that each has its topic. What the captures of other protocols hold, the tests of
// those count.
func TestCapturesReassembled(t *testing.T) {
	for file, want := range published {
		t.Run(file, func(t *testing.T) {
			reg := builtin.Registry()
			id, _ := reg.Lookup("mqtt")
			got := 0
			segs := parsertest.Reassemble(parsertest.Segments(t, parsertest.Capture(t, file)))
			parsertest.Scan(t, reg, segs, func(_ *parsers.Segment, sp parsers.Span) {
				if sp.Protocol != id || sp.At != 0 || sp.Name != uint8(mqtt.PUBLISH) {
					return
				}
				// Where there is no body, the topic may end in the next segment.
				if got++; len(sp.Event) == 0 && sp.Body < sp.Len {
					t.Errorf("no topic: %+v", sp)
				}
			})
			if got != want {
				t.Errorf("%d PUBLISH, want %d", got, want)
			}
		})
	}
}

// TestTable holds that no capture of MQTT is left out.
func TestCapturesCounted(t *testing.T) {
	for _, file := range parsertest.Captures(t, "mqtt-*") {
		if _, counted := published[filepath.Base(file)]; !counted {
			t.Errorf("%s is not counted", file)
		}
	}
}

// TestCapturesAsTheyCame scans all captures, each packet in its turn: spans
// cover the payload, and what is not MQTT is not taken for it.
func TestCapturesAsTheyCame(t *testing.T) {
	reg := builtin.Registry()
	id, _ := reg.Lookup("mqtt")
	for _, file := range parsertest.Captures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			found, opaque := 0, 0
			parsertest.Scan(t, reg, parsertest.Segments(t, file), func(seg *parsers.Segment, sp parsers.Span) {
				switch {
				case sp.Protocol == id:
					found++
				case seg.Key.Proto == 6:
					opaque += sp.Len
				}
			})
			if isMQTT := strings.Contains(filepath.Base(file), "mqtt"); isMQTT != (found > 0) {
				t.Errorf("%d MQTT spans", found)
			}
			if strings.Contains(file, "/live/mqtt") && !strings.Contains(file, "offload") && opaque > 0 {
				t.Errorf("%d bytes are opaque", opaque)
			}
		})
	}
}
