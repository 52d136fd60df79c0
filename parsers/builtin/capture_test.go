package builtin_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/mqtt"
)

// captures is where captures of other projects are, on machines that have them.
const captures = "../../../shared/captures"

func needCaptures(t *testing.T) {
	if _, err := os.Stat(captures); err != nil {
		t.Skipf("no captures to test against: %v", err)
	}
}

// readIP returns the IP packets of a capture file, as far as it can be read.
func readIP(t *testing.T, path string) (packets [][]byte) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := bufio.NewReader(file)
	type source interface {
		ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
		LinkType() layers.LinkType
	}
	var src source
	if magic, err := b.Peek(4); err == nil && string(magic) == "\n\r\r\n" {
		src, err = pcapgo.NewNgReader(b, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			t.Skipf("%s: %v", path, err)
		}
	} else if src, err = pcapgo.NewReader(b); err != nil {
		t.Skipf("%s: %v", path, err)
	}
	for {
		data, _, err := src.ReadPacketData()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Logf("%s: stopped reading: %v", path, err)
			}
			return packets
		}
		var first gopacket.Decoder = src.LinkType()
		switch src.LinkType() { // those that gopacket has no decoder for
		case 12, layers.LinkTypeRaw, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
			first = layers.LayerTypeIPv4
			if len(data) > 0 && data[0]>>4 == 6 {
				first = layers.LayerTypeIPv6
			}
		}
		p := gopacket.NewPacket(data, first, gopacket.DecodeOptions{Lazy: true, NoCopy: true})
		for _, typ := range []gopacket.LayerType{layers.LayerTypeIPv4, layers.LayerTypeIPv6} {
			if l := p.Layer(typ); l != nil {
				n := len(l.LayerContents()) + len(l.LayerPayload())
				head := l.LayerContents()
				packets = append(packets, slices.Clone(head[:min(n, cap(head))]))
				break
			}
		}
	}
}

// TestCapturesReassembled counts PUBLISH messages with segments in order.
func TestCapturesReassembled(t *testing.T) {
	needCaptures(t)
	for file, want := range map[string]int{
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
	} {
		t.Run(file, func(t *testing.T) {
			segs := reassemble(decodeAll(t, filepath.Join(captures, file)))
			if got := countPublish(segs); got != want {
				t.Errorf("%d PUBLISH, want %d", got, want)
			}
		})
	}
}

func decodeAll(t *testing.T, path string) (segs []parsers.Segment) {
	t.Helper()
	var d parsers.Decoder
	for _, p := range readIP(t, path) {
		var seg parsers.Segment
		if err := d.Decode(p, &seg); err == nil {
			segs = append(segs, seg)
		} else {
			t.Logf("%v: %x", err, p[:min(len(p), 60)])
		}
	}
	return segs
}

// reassemble sorts each connection's segments by sequence number and takes out
// what was seen before. Connections begin anew at a SYN.
func reassemble(segs []parsers.Segment) (sorted []parsers.Segment) {
	byFlow := map[parsers.FlowKey][][]parsers.Segment{}
	var keys []parsers.FlowKey
	for _, seg := range segs {
		if seg.Key.Proto != 6 || seg.TransportLen == 0 {
			continue
		}
		lives, known := byFlow[seg.Key]
		if !known {
			keys = append(keys, seg.Key)
		}
		if syn := seg.Flags&2 != 0; !known || syn && lives[len(lives)-1][0].Seq != seg.Seq {
			lives = append(lives, nil)
		}
		lives[len(lives)-1] = append(lives[len(lives)-1], seg)
		byFlow[seg.Key] = lives
	}
	for _, key := range keys {
		for _, life := range byFlow[key] {
			slices.SortStableFunc(life, func(a, b parsers.Segment) int { return int(int32(a.Seq - b.Seq)) })
			var next seqnum.Value
			for i, seg := range life {
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
	}
	return sorted
}

func countPublish(segs []parsers.Segment) (n int) {
	reg := builtin.Registry()
	streams := map[parsers.FlowKey]*parsers.Stream{}
	id, _ := reg.Lookup("mqtt")
	for i := range segs {
		st := streams[segs[i].Key]
		if st == nil {
			st = new(parsers.Stream)
			streams[segs[i].Key] = st
		}
		for _, sp := range st.Scan(reg, &segs[i], nil) {
			if sp.Protocol == id && sp.At == 0 && sp.Name == uint8(mqtt.PUBLISH) {
				n++
			}
		}
	}
	return n
}

// TestCapturesAsTheyCame scans all captures, each packet in its turn: spans
// cover the payload, and what is not MQTT is not taken for it.
func TestCapturesAsTheyCame(t *testing.T) {
	needCaptures(t)
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no capture files: %v", err)
	}
	live, err := filepath.Glob(filepath.Join(captures, "live", "*.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, live...)
	reg := builtin.Registry()
	id, _ := reg.Lookup("mqtt")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var d parsers.Decoder
			streams := map[parsers.FlowKey]*parsers.Stream{}
			found, foundBytes, bytes := 0, 0, 0
			for _, p := range readIP(t, file) {
				var seg parsers.Segment
				if d.Decode(p, &seg) != nil {
					continue
				}
				st := streams[seg.Key]
				if st == nil {
					st = new(parsers.Stream)
					streams[seg.Key] = st
				}
				sum := 0
				for _, sp := range st.Scan(reg, &seg, nil) {
					sum += sp.Len
					if sp.Protocol == id {
						found++
						foundBytes += sp.Len
					}
				}
				if seg.Key.Proto == 6 && !seg.Fragment {
					bytes += sum
				}
				if sum != len(seg.Payload()) {
					t.Fatalf("spans cover %d of %d bytes", sum, len(seg.Payload()))
				}
			}
			if isMQTT := strings.Contains(filepath.Base(file), "mqtt"); isMQTT != (found > 0) {
				t.Errorf("%d MQTT spans", found)
			}
			t.Logf("%d MQTT spans, %d of %d bytes of TCP payload", found, foundBytes, bytes)
			if strings.Contains(file, "/live/mqtt") && !strings.Contains(file, "offload") && foundBytes != bytes {
				t.Errorf("%d bytes are opaque", bytes-foundBytes)
			}
		})
	}
}
