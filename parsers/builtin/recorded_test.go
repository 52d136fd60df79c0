package builtin_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/parsertest"
	"sheaf/pcap/pcaptest"
)

// messages are what the recorded captures hold, in which each client and each
// delivery is known: 100 clients connect once, and so on.
var messages = map[string]map[string]int{
	"amqp-fanout-100": {
		"amqp protocol-header": 100, "amqp connection.start": 100, "amqp connection.start-ok": 100, "amqp connection.tune": 100,
		"amqp connection.tune-ok": 100, "amqp connection.open": 100, "amqp connection.open-ok": 100, "amqp channel.open": 100,
		"amqp channel.open-ok": 100, "amqp queue.declare": 100, "amqp queue.declare-ok": 100, "amqp queue.bind": 100,
		"amqp queue.bind-ok": 100, "amqp basic.consume": 100, "amqp basic.consume-ok": 100, "amqp basic.deliver": 8000,
	},
	"mqtt-control-200":         {"mqtt CONNECT": 200, "mqtt CONNACK": 200, "mqtt SUBSCRIBE": 200, "mqtt SUBACK": 200, "mqtt PUBLISH": 3200},
	"mqtt-fanout-10":           {"mqtt CONNECT": 10, "mqtt CONNACK": 10, "mqtt SUBSCRIBE": 10, "mqtt SUBACK": 10, "mqtt PUBLISH": 4000},
	"mqtt-fanout-100":          {"mqtt CONNECT": 100, "mqtt CONNACK": 100, "mqtt SUBSCRIBE": 100, "mqtt SUBACK": 100, "mqtt PUBLISH": 10000},
	"mqtt-fanout-100-qos1":     {"mqtt CONNECT": 100, "mqtt CONNACK": 100, "mqtt SUBSCRIBE": 100, "mqtt SUBACK": 100, "mqtt PUBLISH": 6000, "mqtt PUBACK": 6000},
	"mqtt-fanout-500":          {"mqtt CONNECT": 500, "mqtt CONNACK": 500, "mqtt SUBSCRIBE": 500, "mqtt SUBACK": 500, "mqtt PUBLISH": 10000},
	"mqtt-fanoutskew-100-qos1": {"mqtt PUBLISH": 4000, "mqtt PUBACK": 4000},
	"mqtt-mixed-50x20":         {"mqtt CONNECT": 200, "mqtt CONNACK": 200, "mqtt SUBSCRIBE": 200, "mqtt SUBACK": 200, "mqtt PUBLISH": 4500},
	"mqtt-noise-50-qos1":       {"mqtt CONNECT": 50, "mqtt CONNACK": 50, "mqtt PUBLISH": 500, "mqtt PUBACK": 500},
	"mqtt-single-qos1":         {"mqtt CONNECT": 1, "mqtt CONNACK": 1, "mqtt PUBLISH": 30, "mqtt PUBACK": 30},
	"mqtt-telemetry-200-qos1":  {"mqtt CONNECT": 200, "mqtt CONNACK": 200, "mqtt PUBLISH": 1000, "mqtt PUBACK": 1000},
	"mqtt-tls-fanout-100":      {"tls handshake": 200, "tls change_cipher_spec": 200, "tls application_data": 2900},
	"nats-fanout-100":          {"nats INFO": 200, "nats CONNECT": 100, "nats PING": 297, "nats PONG": 297, "nats SUB": 100, "nats MSG": 8000},
	"nats-fanoutskew-100":      {"nats INFO": 200, "nats CONNECT": 100, "nats PING": 300, "nats PONG": 300, "nats SUB": 7600, "nats MSG": 8000},
	"redis-fanout-100": {
		"redis HELLO": 100, "redis COMMAND": 400, "redis Map": 100, "redis Error": 300, "redis +OK": 100,
		"redis SUBSCRIBE": 100, "redis subscribe": 100, "redis message": 8000,
	},
	"mqtt-mtls13-telemetry-20-qos1": {"tls handshake": 40, "tls change_cipher_spec": 40, "tls application_data": 480},
	"mqtt-tls12-fanout-20-qos1":     {"tls handshake": 160, "tls change_cipher_spec": 40, "tls application_data": 880},
	"mqtt-tls13-fanout-20":          {"tls handshake": 40, "tls change_cipher_spec": 40, "tls application_data": 580},
	"mqtt-tls13-keyupdate-6-qos1":   {"tls handshake": 12, "tls change_cipher_spec": 12, "tls application_data": 664},
	"mqtt-tls13-large-3-lossy":      {"tls handshake": 6, "tls change_cipher_spec": 6, "tls application_data": 62},
	"mqtt-tls13-reconnect-5":        {"tls handshake": 100, "tls change_cipher_spec": 100, "tls application_data": 473},
	"nats-tls13-fanout-20":          {"nats INFO": 20, "tls handshake": 20, "tls change_cipher_spec": 20, "tls application_data": 80},
	"bulk":                          {},
}

// notTold are the captures with bytes that no protocol is told of: of the download, of what
// nats-server sends behind its INFO, where TLS begins, and of what comes again.
var notTold = []string{"bulk", "nats-tls13-fanout-20", "mqtt-tls13-large-3-lossy"}

// TestRecorded holds that all of these messages are found, each once and whole, and
// nothing else: no other bytes are opaque, and no protocol's messages are taken for
// another's.
func TestRecorded(t *testing.T) {
	for _, path := range pcaptest.Recorded(t) {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		t.Run(name, func(t *testing.T) {
			want, known := messages[name]
			if !known {
				t.Fatal("nobody says what is in it")
			}
			reg := builtin.Registry()
			found, opaque := map[string]int{}, 0
			parsertest.Scan(t, reg, parsertest.Segments(t, path), func(_ *parsers.Segment, sp parsers.Span) {
				if sp.Protocol == parsers.Opaque {
					opaque += sp.Len
				} else if sp.At == 0 {
					found[reg.Name(sp.Protocol)+" "+reg.MessageName(sp.Protocol, sp.Name)]++
				}
			})
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
			if !slices.Contains(notTold, name) && opaque > 0 {
				t.Errorf("%d bytes are opaque", opaque)
			}
		})
	}
}
