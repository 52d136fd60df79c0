package record

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
)

// counts are what a capture holds.
type counts struct {
	packets, again int // again: with bytes that an earlier one of the flow had
	messages       map[string]int
}

// count reads a capture, whose packets have to be whole and in the order of their
// times.
func count(t *testing.T, capture []byte) counts {
	t.Helper()
	r, err := pcap.NewReader(bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	c := counts{messages: map[string]int{}}
	reg := builtin.Registry()
	streams, sent := map[parsers.FlowKey]*parsers.Stream{}, map[parsers.FlowKey]uint32{}
	var d parsers.Decoder
	var last time.Time
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		var seg parsers.Segment
		if p.Skip != pcap.SkipNone || d.Decode(bytes.Clone(p.Data), &seg) != nil {
			t.Fatalf("packet %d cannot be read", p.Number)
		}
		if !p.Time.After(last) {
			t.Errorf("packet %d is at %v, the one before at %v", p.Number, p.Time, last)
		}
		last = p.Time
		c.packets++
		n := uint32(len(seg.Payload()))
		if end, seen := sent[seg.Key]; seen && n > 0 && int32(seg.Seq-end) < 0 {
			c.again++
		}
		if n > 0 {
			sent[seg.Key] = seg.Seq + n
		}
		if streams[seg.Key] == nil {
			streams[seg.Key] = new(parsers.Stream)
		}
		for _, sp := range streams[seg.Key].Scan(reg, &seg, nil) {
			if sp.At == 0 && sp.Protocol != parsers.Opaque {
				c.messages[reg.MessageName(sp.Protocol, sp.Name)]++
			}
		}
	}
}

// TestRecord records half a second of workloads of each kind, and holds that every
// delivery is in the capture once.
func TestRecord(t *testing.T) {
	const length = 500 * time.Millisecond // ten messages of a fan-out
	for name, want := range map[string]map[string]int{
		"mqtt-fanout-10":     {"CONNECT": 10, "PUBLISH": 10 * 10},
		"nats-fanout-100":    {"CONNECT": 100, "MSG": 100 * 10},
		"redis-fanout-100":   {"SUBSCRIBE": 100, "message": 100 * 10},
		"mqtt-control-200":   {"CONNECT": 200, "SUBSCRIBE": 200},
		"mqtt-noise-50-qos1": {"CONNECT": 50},
		"bulk":               {},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			packets, err := workload(t, name).Record(Config{Length: length}, &b)
			if err != nil {
				t.Fatal(err)
			}
			got := count(t, b.Bytes())
			if got.packets != packets || packets == 0 || got.again > 0 {
				t.Errorf("%d packets of %d, %d of them repeat bytes", got.packets, packets, got.again)
			}
			for message, n := range want {
				if got.messages[message] != n {
					t.Errorf("%d %s, want %d", got.messages[message], message, n)
				}
			}
		})
	}
}

func workload(t *testing.T, name string) Workload {
	t.Helper()
	for _, w := range Workloads() {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("no workload %s", name)
	return Workload{}
}

// A broker that cannot be embedded has to be named.
func TestNoBroker(t *testing.T) {
	_, err := workload(t, "amqp-fanout-100").Record(Config{}, io.Discard)
	if !errors.Is(err, ErrNoBroker) {
		t.Error(err)
	}
}

// The clock stands still but for packets, and goes on when told, and never back.
func TestClock(t *testing.T) {
	c := newClock()
	start := c.Now()
	if at := c.tick(); at.Sub(start) != perPacket {
		t.Errorf("a packet takes %v", at.Sub(start))
	}
	fired := make(chan time.Time, 1)
	c.AfterFunc(time.Second, func() { fired <- c.Now() })
	c.until(start)
	if got := c.Now().Sub(start); got != perPacket {
		t.Errorf("it went to %v", got)
	}
	c.until(start.Add(2 * time.Second))
	if got := c.Now().Sub(start); got != 2*time.Second {
		t.Errorf("after 2 s it shows %v", got)
	}
	select {
	case <-fired:
	default:
		t.Error("a timer did not go off on the way")
	}
}

// recordTLS records a workload over TLS, and returns the capture. It needs brokers that
// are not embedded.
func recordTLS(t *testing.T, name string, length time.Duration) []byte {
	t.Helper()
	var b bytes.Buffer
	packets, err := workload(t, name).Record(Config{Length: length}, &b)
	if errors.Is(err, ErrNoBroker) {
		t.Skipf("%v: apt-get install mosquitto openssl", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := count(t, b.Bytes()); got.packets != packets || packets == 0 {
		t.Errorf("%d packets of %d", got.packets, packets)
	}
	return b.Bytes()
}

// keyLog returns the key log that a capture has before its first packet.
func keyLog(t *testing.T, capture []byte) string {
	t.Helper()
	r, err := pcap.NewReader(bytes.NewReader(capture))
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	r.KeyLog(func(b []byte) { lines.Write(b) })
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	return lines.String()
}

// A capture of TLS has the secrets of each of its connections, and of no other: what is
// beside the broker is not recorded.
func TestRecordTLS(t *testing.T) {
	for _, tt := range []struct {
		name        string
		length      time.Duration
		label       string // of a line that each connection has one of
		connections int
	}{
		{"mqtt-tls13-fanout-20", 200 * time.Millisecond, "CLIENT_TRAFFIC_SECRET_0", 20},
		{"mqtt-tls12-fanout-20-qos1", 200 * time.Millisecond, "CLIENT_RANDOM", 20},
		{"mqtt-mtls13-telemetry-20-qos1", 2 * time.Second, "SERVER_HANDSHAKE_TRAFFIC_SECRET", 20},
		{"nats-tls13-fanout-20", 200 * time.Millisecond, "SERVER_TRAFFIC_SECRET_0", 20},
		{"mqtt-tls13-reconnect-5", 6 * time.Second, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 5 * 3},
		{"mqtt-tls13-keyupdate-6-qos1", 500 * time.Millisecond, "CLIENT_TRAFFIC_SECRET_0", 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			capture := recordTLS(t, tt.name, tt.length)
			if got := count(t, capture); got.again > 0 || got.messages["application_data"] < tt.connections {
				t.Errorf("%d packets repeat bytes; messages %v", got.again, got.messages)
			}
			if got := strings.Count(keyLog(t, capture), tt.label+" "); got != tt.connections {
				t.Errorf("%d lines of %s, want %d", got, tt.label, tt.connections)
			}
		})
	}
}

// What is lost behind the tap is sent again, and all messages come.
func TestRecordLoss(t *testing.T) {
	if got := count(t, recordTLS(t, "mqtt-tls13-large-3-lossy", 0)); got.again == 0 {
		t.Errorf("of %d packets none repeats bytes", got.packets)
	}
}

// A broker for TLS has to have a certificate that the clients know.
func TestNoOtherBrokerForTLS(t *testing.T) {
	if _, err := workload(t, "nats-tls13-fanout-20").Record(Config{Broker: "127.0.0.1:4222"}, io.Discard); err == nil {
		t.Error("another broker was taken")
	}
}
