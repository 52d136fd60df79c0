package pcap

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/pcap/pcaptest"
)

// captureRecords is the number of records in captures recorded elsewhere, which
// lie beside the repository where they are at hand.
var captureRecords = map[string]int{
	"amqp091-deepflow-pub-consume.pcap":              62,
	"amqp091-deepflow-publish.pcap":                  22,
	"amqp091-deepflow-return-errors.pcap":            87,
	"amqp091-ndpi-celery.pcap":                       160,
	"amqp10-qpid-hello.pcapng":                       58,
	"coap-lwm2m-observe.pcapng":                      10000,
	"coap-ndpi-plus-mqtt.pcap":                       1082,
	"full/amqp-fanout-100.pcap.gz":                   122955,
	"full/mqtt-control-200.pcap.gz":                  26107,
	"full/mqtt-fanout-10-qos0.pcap.gz":               12110,
	"full/mqtt-fanout-100-qos0.pcap.gz":              121300,
	"full/mqtt-fanout-100-qos1.pcap.gz":              181326,
	"full/mqtt-fanout-500-qos0.pcap.gz":              406500,
	"full/mqtt-mixed-50x20.pcap.gz":                  121938,
	"full/mqtt-telemetry-200-qos1.pcap.gz":           14003,
	"full/nats-fanout-100.pcap.gz":                   121920,
	"full/redis-fanout-100.pcap.gz":                  121300,
	"kafka-deepflow-api-versions.pcap":               2,
	"kafka-deepflow-fetch-v12.pcap":                  2,
	"kafka-deepflow-join-group.pcap":                 2,
	"kafka-deepflow-mixed.pcap":                      9,
	"kafka-deepflow-produce-v2.pcap":                 2,
	"kafka-deepflow-produce-v7.pcap":                 9,
	"kafka-ndpi-produce-v3.pcapng":                   41,
	"live/amqp-fanout-100.pcap":                      7129,
	"live/mqtt-control-200.pcap":                     14395,
	"live/mqtt-fanout-1-qos0.pcap":                   813,
	"live/mqtt-fanout-10-qos0.pcap":                  6733,
	"live/mqtt-fanout-100-qos0-offload.pcap":         3092,
	"live/mqtt-fanout-100-qos0-rtt40-gwA.pcap":       7094,
	"live/mqtt-fanout-100-qos0-rtt40.pcap":           7082,
	"live/mqtt-fanout-100-qos0.pcap":                 17183,
	"live/mqtt-fanout-100-qos1-rtt40-loss1-gwA.pcap": 5087,
	"live/mqtt-fanout-100-qos1-rtt40-loss1.pcap":     5042,
	"live/mqtt-fanout-100-qos1.pcap":                 11959,
	"live/mqtt-fanout-500-qos0.pcap":                 22149,
	"live/mqtt-fanout4h-100-qos0.pcap":               7111,
	"live/mqtt-fanoutskew-100-qos1.pcap":             15525,
	"live/mqtt-mixed-50x20-offload.pcap":             5149,
	"live/mqtt-mixed-50x20-rtt40-gwA.pcap":           5194,
	"live/mqtt-mixed-50x20-rtt40.pcap":               5147,
	"live/mqtt-mixed-50x20.pcap":                     9836,
	"live/mqtt-telemetry-200-qos1-rtt40-gwA.pcap":    5541,
	"live/mqtt-telemetry-200-qos1-rtt40.pcap":        5544,
	"live/mqtt-telemetry-200-qos1.pcap":              11291,
	"live/nats-fanout-100.pcap":                      6910,
	"live/nats-fanoutskew-100.pcap":                  9204,
	"live/redis-fanout-100.pcap":                     6482,
	"mqtt-arkime-big-payloads.pcap":                  51,
	"mqtt-arkime-synthetic-8k-topic.pcap":            63,
	"mqtt-deepflow-connect-only.pcap":                2,
	"mqtt-deepflow-multi-publish-segment.pcap":       11,
	"mqtt-deepflow-pub-256.pcap":                     16,
	"mqtt-deepflow-roundtrip-gaps.pcap":              18,
	"mqtt-deepflow-subscribe-only.pcap":              2,
	"mqtt-distsys-repeat.pcap":                       96,
	"mqtt-matlab-sensor-pubsub.pcap":                 406,
	"mqtt-mqttset-benign-train.pcap":                 31809,
	"mqtt-mqttset-bruteforce-train.pcapng":           8918,
	"mqtt-mqttset-flood-train.pcap":                  58,
	"mqtt-mqttset-malaria-qos1-train.pcap":           1866,
	"mqtt-mqttset-malformed-train.pcap":              7315,
	"mqtt-mqttset-slowite-train.pcap":                6447,
	"mqtt-ndpi-vlan-v31-v311.pcap":                   9,
	"mqtt-port1337-null.pcap":                        48,
	"mqtt-suricata-100k-payloads.pcap":               37,
	"mqtt-suricata-invalid-qos3.pcap":                12,
	"mqtt-suricata-midstream-split.pcap":             16,
	"mqtt-suricata-missing-connect.pcap":             115,
	"mqtt-suricata-ping-only.pcap":                   2,
	"mqtt-suricata-truncated-frame.pcap":             7,
	"mqtt-suricata-v31-pub-qos1.pcap":                13,
	"mqtt-suricata-v31-pub-qos2.pcap":                15,
	"mqtt-suricata-v31-sub.pcap":                     14,
	"mqtt-suricata-v31-unsub.pcap":                   18,
	"mqtt-suricata-v311-pub-noclientid.pcap":         12,
	"mqtt-suricata-v311-pub-qos1.pcap":               13,
	"mqtt-suricata-v311-pub-qos2.pcap":               15,
	"mqtt-suricata-v311-pub.pcap":                    12,
	"mqtt-suricata-v311-sub.pcap":                    14,
	"mqtt-suricata-v5-pub-jpeg.pcap":                 14,
	"mqtt-suricata-v5-pub-props.pcap":                13,
	"mqtt-suricata-v5-pub-qos1.pcap":                 13,
	"mqtt-suricata-v5-pub-qos2.pcap":                 15,
	"mqtt-suricata-v5-sub-auth.pcap":                 10,
	"mqtt-suricata-v5-sub-props.pcap":                14,
	"mqtt-suricata-v5-unsub-2conn.pcap":              20,
	"mqtt-zeek-paho-v31.pcap":                        19,
	"nasty-80211.pcap":                               26,
	"nasty-absurd-length.pcap":                       1, // the second claims 1,409,179,648 bytes
	"nasty-bigendian.pcap":                           2,
	"nasty-empty.pcap":                               0,
	"nasty-fuzz-2006-06.pcap":                        691,
	"nasty-gre-erspan-vxlan.pcap":                    7,
	"nasty-ipv4-fragments-3.pcap":                    5,
	"nasty-ipv4-fragments.pcap":                      18,
	"nasty-ipv6-bad-fragments.pcap":                  13,
	"nasty-pcapng-be-3if-spb.pcapng":                 5, // five packet blocks, three of them cut short
	"nasty-pcapng-multi-if.pcapng":                   6,
	"nasty-raw-ip-syn-data.pcap":                     6,
	"nasty-sll2.pcap":                                6,
	"nasty-snaplen-8.pcap":                           1,
	"nasty-tcp-fastopen.pcap":                        16,
	"nasty-tcp-overlap.pcap":                         7,
	"nasty-tcp-retrans-snaplen.pcap":                 39,
	"nasty-tcp-retransmissions.pcap":                 108,
	"nasty-vlan-mpls.pcap":                           47,
	"nasty-wlanmon.pcap":                             3,
	"nats-deepflow-err.pcap":                         21,
	"nats-deepflow-headers.pcap":                     47,
	"nats-deepflow-otel.pcap":                        21,
	"nats-deepflow-rpc1-modpcap.pcap":                22,
	"nats-deepflow-rpc3-modpcap.pcap":                11,
	"nats-deepflow-skywalking.pcap":                  23,
	"nats-spicy-jetstream-kv.pcap":                   84,
	"nats-spicy-simple.pcap":                         88,
	"other-openwire-deepflow-producer.pcap":          35,
	"other-openwire-ndpi.pcapng":                     43,
	"other-pulsar-consumer.pcap":                     46,
	"other-pulsar-producer.pcap":                     69,
	"redis-deepflow-get-500k.pcap":                   50,
	"redis-deepflow-lrange.pcap":                     10,
	"redis-ndpi-resp.pcap":                           39,
	"redis-zeek-attributes.pcap":                     28,
	"redis-zeek-bulk-loading.pcap":                   32,
	"redis-zeek-django-cache.pcap":                   1270,
	"redis-zeek-django-cloud.pcapng":                 474,
	"redis-zeek-inline-almost-resp.pcap":             12,
	"redis-zeek-large.pcap":                          58,
	"redis-zeek-pubsub-resp2.pcap":                   60,
	"redis-zeek-stream.pcap":                         16,
	"rtps-ndpi-discovery.pcap":                       29,
	"someip-ndpi-sd-call.pcapng":                     3,
	"someip-ndpi-tp.pcap":                            9,
	"stomp-ndpi-queue.pcapng":                        19,
	"ws-suricata-compressed.pcap":                    27,
	"ws-suricata-control-frag.pcap":                  15,
	"ws-zeek-broker-pubsub.pcap":                     22,
	"ws-zeek-two-fragments.pcap":                     18,
	"xmpp-ndpi-pubsub.pcap":                          376,
	"zmtp-deepflow-pubsub-all.pcap":                  86,
	"zmtp-deepflow-pubsub-one.pcap":                  26,
	"zmtp-deepflow-reqrep-null.pcap":                 21,
	"zmtp-deepflow-reqrep-plain.pcap":                24,
	"zmtp-distsys-pushpull.pcap":                     23,
}

// captureSkips is what those captures hold besides whole IP packets.
var captureSkips = map[string]map[SkipReason]int{
	"amqp10-qpid-hello.pcapng":              {SkipNotIP: 2},
	"coap-ndpi-plus-mqtt.pcap":              {SkipNotIP: 2},
	"faults/panic-65537-ipv4-tso.pcap.gz":   {SkipTooLong: 1},
	"faults/panic-65576-ipv6-jumbo.pcap.gz": {SkipTooLong: 1},
	"mqtt-distsys-repeat.pcap":              {SkipNotIP: 2},
	"nasty-fuzz-2006-06.pcap":               {SkipBadIP: 5, SkipTruncated: 27, SkipNotIP: 78},
	"nasty-pcapng-be-3if-spb.pcapng":        {SkipTruncated: 3},
	"nasty-sll2.pcap":                       {SkipNotIP: 2},
	"nasty-snaplen-8.pcap":                  {SkipTruncated: 1},
	"nasty-tcp-retrans-snaplen.pcap":        {SkipTruncated: 21},
	"xmpp-ndpi-pubsub.pcap":                 {SkipNotIP: 18},
	"zmtp-distsys-pushpull.pcap":            {SkipNotIP: 2},
}

// captureErrors is where they end in an error: in which record, or 0 for a link
// type that is not supported.
var captureErrors = map[string]int{
	"nasty-absurd-length.pcap":       2,
	"rtps-decoder-exported-pdu.pcap": 0,
}

func TestCaptures(t *testing.T) {
	root := pcaptest.Others(t)
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		if testing.Short() && filepath.Ext(path) == ".gz" {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		t.Run(name, func(t *testing.T) { checkCapture(t, path, filepath.ToSlash(name)) })
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func checkCapture(t *testing.T, path, name string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	failAt, fails := captureErrors[name]
	r, err := NewReader(f)
	if err != nil {
		var le *LinkTypeError
		if !errors.As(err, &le) || !fails || failAt != 0 {
			t.Error(err)
		}
		return
	}
	var skips map[SkipReason]int
	for {
		p, err := r.Next()
		if err == io.EOF {
			if fails {
				t.Errorf("no error, want one in record %d", failAt)
			}
			break
		}
		if err != nil {
			var fe *FileError
			if !errors.As(err, &fe) || !fails || fe.Packet != failAt {
				t.Error(err)
			}
			break
		}
		if p.Skip != SkipNone {
			if skips == nil {
				skips = make(map[SkipReason]int)
			}
			skips[p.Skip]++
		}
	}
	if want, ok := captureRecords[name]; ok && r.Records() != want {
		t.Errorf("got %d records, want %d", r.Records(), want)
	}
	if diff := cmp.Diff(captureSkips[name], skips); diff != "" {
		t.Errorf("skipped records differ (-want +got):\n%s", diff)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		t.Fatal(err)
	}
	if !fails && r.InputOffset() != size {
		t.Errorf("consumed %d bytes of %d", r.InputOffset(), size)
	}
}
