package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/keylog"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
	"sheaf/tools/replay"
)

// carrierOverhead is what a carrier packet costs beyond its payload, in bytes.
const carrierOverhead = 45

// A capture is one to take the size of.
type capture struct {
	name      string
	open      func() (io.ReadCloser, error)
	messages  int // that its bytes are divided by; 0 to count them
	delivered bool
	must, aim float64 // bytes for a message; 0 for none
	noise     bool    // its messages cannot be compared without parsers: masked, encrypted or random
}

// recorded are the captures of the repository that README's table is of, in its
// order. What is in them, package record says.
func recorded(dir string) []capture {
	simulated := filepath.Dir(dir)
	return []capture{
		{name: "fan-out to 10, QoS 0, 20 messages/s", open: file(dir, "mqtt-fanout-10")},
		{name: "fan-out to 100, QoS 0", open: file(dir, "mqtt-fanout-100")},
		{name: "fan-out to 100, QoS 1", open: file(dir, "mqtt-fanout-100-qos1")},
		{name: "fan-out to 500, QoS 0", open: file(dir, "mqtt-fanout-500")},
		{name: "telemetry of 200 devices, QoS 1", open: file(dir, "mqtt-telemetry-200-qos1")},
		{name: "commands to and status of 200 units", open: file(dir, "mqtt-control-200")},
		{name: "50 topics, 20 subscribers each, bodies to 2 kB", open: file(dir, "mqtt-mixed-50x20")},
		{name: "fan-out to 100, QoS 1, every packet id another", open: file(dir, "mqtt-fanoutskew-100-qos1"), delivered: true},
		{name: "NATS, fan-out to 100", open: file(dir, "nats-fanout-100")},
		{name: "the same, every subscription id another", open: file(dir, "nats-fanoutskew-100")},
		{name: "Redis, fan-out to 100", open: file(dir, "redis-fanout-100")},
		{name: "RabbitMQ, fan-out to 100", open: file(dir, "amqp-fanout-100")},
		{name: "one device, a message a second, QoS 1", open: file(dir, "mqtt-single-qos1")},
		{name: "50 devices, 64 random bytes every 2 s, QoS 1", open: file(dir, "mqtt-noise-50-qos1"), noise: true},
		{name: "fan-out to 20 over WebSocket, QoS 1 (simulated)", open: file(simulated, "fanout-20-qos1-ws"), delivered: true},
		{name: "telemetry of 40 devices over WebSocket, masked (simulated)", open: file(simulated, "telemetry-40-ws"), noise: true},
		{name: "fan-out to 100 inside TLS", open: file(dir, "mqtt-tls-fanout-100"), messages: 100 * 20, noise: true},
		{name: "fan-out to 20 over TLS 1.3, opened", open: opened(dir, "mqtt-tls13-fanout-20"), noise: true},
		{name: "fan-out to 20, QoS 1, over TLS 1.2, opened", open: opened(dir, "mqtt-tls12-fanout-20-qos1"), delivered: true, noise: true},
		{name: "telemetry of 20 devices with certificates over TLS 1.3, opened", open: opened(dir, "mqtt-mtls13-telemetry-20-qos1"), noise: true},
		{name: "NATS, fan-out to 20 over TLS 1.3, opened", open: opened(dir, "nats-tls13-fanout-20"), noise: true},
		{name: "5 devices that connect over TLS 1.3 for each message, opened", open: opened(dir, "mqtt-tls13-reconnect-5"), noise: true},
		{name: "a download of random bytes, for each kB", open: file(dir, "bulk"), messages: 300, noise: true},
	}
}

// file opens a capture of a folder.
func file(dir, name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(filepath.Join(dir, name+".pcap.gz")) }
}

// opened opens a capture of a folder that has the secrets of its TLS connections.
func opened(dir, name string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.Open(filepath.Join(dir, name+".pcapng.gz")) }
}

// realBrokers are the captures of real brokers, where there are any.
func realBrokers(o options) []capture {
	if o.captures == "" {
		return nil
	}
	all := []capture{
		{name: "full/mqtt-fanout-10-qos0.pcap.gz", messages: 5990, must: 16, aim: 12},
		{name: "full/mqtt-fanout-100-qos0.pcap.gz", messages: 60000, must: 2.7, aim: 1.8},
		{name: "full/mqtt-fanout-100-qos1.pcap.gz", messages: 60000, must: 4.8, aim: 3.3},
		{name: "full/mqtt-fanout-500-qos0.pcap.gz", messages: 200000, must: 3.2, aim: 1.6},
		{name: "full/mqtt-telemetry-200-qos1.pcap.gz", messages: 4001, must: 115, aim: 75},
		{name: "full/mqtt-control-200.pcap.gz", messages: 12001, must: 36, aim: 22},
		{name: "full/mqtt-mixed-50x20.pcap.gz", messages: 57520, must: 12.5, aim: 8},
		{name: "live/mqtt-fanoutskew-100-qos1.pcap", delivered: true, must: 10, aim: 6},
		{name: "full/nats-fanout-100.pcap.gz", messages: 60000, must: 3.1, aim: 2},
		{name: "live/nats-fanoutskew-100.pcap", delivered: true, must: 6.5, aim: 4},
		{name: "full/redis-fanout-100.pcap.gz", messages: 60000, must: 2.3, aim: 1.6},
		{name: "full/amqp-fanout-100.pcap.gz", messages: 60000, must: 7, aim: 4},
		inTLS("mqtt-tls13-fanout-100-qos0", 9866, 41_940, 100*fullHandshake),
		inTLS("mqtt-tls13cc-fanout-20-qos0", 3200, 27_009, 20*fullHandshake),
		inTLS("mqtt-mtls13-telemetry-100-qos1", 748, 99_679, 100*mutualHandshake),
		inTLS("nats-tls13-fanout-50", 3715, 33_214, 50*fullHandshake),
		inTLS("mqtt-tls12-fanout-100-qos1", 7511, 40_737, 100*handshake12),
		inTLS("mqtt-tls12cc-fanout-20-qos0", 3220, 27_229, 20*handshake12),
	}
	var some []capture
	for _, c := range all {
		if o.short && c.messages > 50_000 {
			continue
		}
		path := filepath.Join(o.captures, filepath.FromSlash(c.name))
		c.open = func() (io.ReadCloser, error) { return os.Open(path) }
		c.name, _, _ = strings.Cut(filepath.Base(path), ".pcap")
		some = append(some, c)
	}
	return some
}

// What a full handshake may take on the wire, in bytes: what nobody can predict of it is
// random numbers, key shares, signatures and tickets.
const (
	fullHandshake   = 2600 // TLS 1.3 with a key share of ML-KEM
	mutualHandshake = 3400 // with a client's certificate, too
	handshake12     = 800  // TLS 1.2

	insideTLS = 1.15 // times what the same messages take without TLS
)

// inTLS is a capture inside TLS that brings its secrets. plain are the bytes on the wire of
// what is in its records, without TLS, and handshakes those that they may take.
func inTLS(name string, messages int, plain, handshakes float64) capture {
	return capture{
		name: "tls/" + name + ".pcapng.gz", messages: messages, noise: true,
		must: (insideTLS*plain + handshakes) / float64(messages),
	}
}

// A Size is what a message costs on the wire, in bytes: of both directions,
// connection set-up included.
type Size struct {
	Name     string  `json:"name"`
	Packets  uint64  `json:"packets"`
	Messages int     `json:"messages"`
	Plain    float64 `json:"plain"`
	Headers  float64 `json:"header_compression"`
	Zstd3    float64 `json:"zstd_3"`
	Zstd19   float64 `json:"zstd_19"`
	Sheaf    float64 `json:"sheaf"`
	Steady   float64 `json:"steady"` // sheaf from the first pause of a second on: connection set-up aside
	Opaque   float64 `json:"opaque"` // sheaf without parsers: bodies compared by content alone
	Noise    bool    `json:"noise,omitempty"`
	Must     float64 `json:"must,omitempty"`
	Aim      float64 `json:"aim,omitempty"`
}

func measureSizes(captures []capture) ([]Size, error) {
	var all []Size
	for i := range captures {
		s, err := sizeOf(&captures[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", captures[i].name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// Kept returns what part of its savings beyond zstd -19 sheaf has left without
// its parsers.
func (s *Size) Kept() float64 { return (s.Zstd19 - s.Opaque) / (s.Zstd19 - s.Sheaf) }

// mustKeep is what part of them it has to be.
const mustKeep = 0.5

func sizeOf(c *capture) (Size, error) {
	s := Size{Name: c.name, Messages: c.messages, Must: c.must, Aim: c.aim, Noise: c.noise}
	report, err := replayed(c, builtin.Registry(), true)
	if err != nil {
		return s, err
	}
	if s.Messages == 0 {
		s.Messages = publishes(report, c.delivered)
	}
	if s.Messages == 0 {
		return s, fmt.Errorf("no message in %d packets", report.Packets)
	}
	s.Packets = report.Packets
	each := func(n uint64) float64 { return float64(n) / float64(s.Messages) }
	s.Sheaf = each(report.BytesWire)
	before, err := setUp(c)
	if err != nil {
		return s, fmt.Errorf("up to the pause: %w", err)
	}
	s.Steady = each(report.BytesWire - before)
	for _, v := range report.Compare {
		switch v.Name {
		case "plain":
			s.Plain = each(v.BytesWire)
		case "header-compression":
			s.Headers = each(v.BytesWire)
		case "zstd-3":
			s.Zstd3 = each(v.BytesWire)
		case "zstd-19":
			s.Zstd19 = each(v.BytesWire)
		}
	}
	if report, err = replayed(c, parsers.NewRegistry(), false); err != nil {
		return s, fmt.Errorf("without parsers: %w", err)
	}
	s.Opaque = each(report.BytesWire)
	return s, nil
}

// newReplay returns a replay of a capture as sizes are measured, of messages told apart by
// reg, with the secrets that the capture brings.
func newReplay(in *pcap.Reader, reg *parsers.Registry, compare bool) (*replay.Replay, error) {
	secrets := keylog.NewStore(0)
	in.KeyLog(secrets.Add)
	return replay.New(replay.Config{
		Secrets:  secrets,
		Lane:     aggregate.Config{Window: window, Registry: reg},
		Overhead: carrierOverhead,
		Compare:  compare,
	})
}

// replayed replays a capture whose messages are told apart by reg.
func replayed(c *capture, reg *parsers.Registry, compare bool) (*replay.Report, error) {
	f, err := c.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in, err := pcap.NewReader(f)
	if err != nil {
		return nil, err
	}
	r, err := newReplay(in, reg, compare)
	if err != nil {
		return nil, err
	}
	if _, _, err := r.Run(in); err != nil {
		return nil, err
	}
	report := r.Report(c.name, nil)
	if !report.Exact() {
		return nil, fmt.Errorf("%d of %d packets came out different: %s", report.Mismatched, report.Packets, report.Difference)
	}
	return report, nil
}

// pause is how long no packet comes between the set-up of connections and what
// they are there for, in all captures that have both.
const pause = 900 * time.Millisecond

// setUp returns the bytes on the wire of what comes before a capture's first
// pause; 0 if there is none.
func setUp(c *capture) (uint64, error) {
	f, err := c.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in, err := pcap.NewReader(f)
	if err != nil {
		return 0, err
	}
	r, err := newReplay(in, builtin.Registry(), false)
	if err != nil {
		return 0, err
	}
	var clock pcap.Clock
	var last time.Duration
	for n := 0; ; n++ {
		p, err := in.Next()
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if p.Skip != pcap.SkipNone {
			continue
		}
		at := clock.At(p.Time)
		if n > 0 && at-last > pause {
			break
		}
		last = at
		if err := r.Add(at, p.Data); err != nil {
			return 0, err
		}
	}
	if err := r.Finish(); err != nil {
		return 0, err
	}
	return r.Report(c.name, nil).BytesWire, nil
}

// events are the messages that bear an event, by the names that protocols have for
// them.
var events = []string{"PUBLISH", "MSG", "message", "basic.deliver"}

// publishes returns how many of them a replay saw, of those delivered to
// subscribers alone or of all.
func publishes(r *replay.Report, delivered bool) int {
	n := uint64(0)
	for i := range r.Rows {
		if row := &r.Rows[i]; slices.Contains(events, row.Name) && (!delivered || row.Direction == replay.Down) {
			n += row.Messages
		}
	}
	return int(n)
}

// sizeTable is the table of sizes; its first columns are README's.
func sizeTable(of string, all []Size) *table {
	t := &table{
		title: fmt.Sprintf("sizes of %s: bytes on the wire for a message, window %v, carrier %d B for each %d B or part of it",
			of, window, carrierOverhead, replay.CarrierPayload),
		heading: []string{
			"capture", "plain", "zstd -3", "zstd -19", "sheaf", "set-up aside",
			"messages", "headers", "zstd -19 / sheaf", "opaque", "kept", "must", "aim", "",
		},
		notes: []string{
			"both directions with connection set-up; set-up aside: sheaf from the first pause of a second on;",
			"zstd: one stream each way, flushed at sheaf's frames, same carrier;",
			"headers: a model of header compression alone; opaque: sheaf without parsers;",
			fmt.Sprintf("kept: what is left then of the savings beyond zstd -19, at least %.2g but for what nobody can compare", mustKeep),
		},
	}
	for i := range all {
		s := &all[i]
		must, aim, state := "", "", ""
		if s.Must > 0 {
			must, state = fmt.Sprintf("%.4g", s.Must), verdict(s.Sheaf <= s.Must)
		}
		if s.Aim > 0 {
			aim = fmt.Sprintf("%.4g", s.Aim)
			if s.Sheaf <= s.Aim {
				state = "aim reached"
			}
		}
		kept := "-"
		if !s.Noise {
			kept = fmt.Sprintf("%.2f", s.Kept())
		}
		row := append([]string{s.Name}, s.figures()...)
		t.add(append(row, grouped(s.Messages), figure(s.Headers), fmt.Sprintf("%.1f", s.Zstd19/s.Sheaf), figure(s.Opaque), kept, must, aim, state)...)
	}
	return t
}

// figures are what README shows of a size.
func (s *Size) figures() []string {
	return []string{figure(s.Plain), figure(s.Zstd3), figure(s.Zstd19), figure(s.Sheaf), figure(s.Steady)}
}

// figure writes bytes with a digit after the point, if there are fewer than a
// hundred.
func figure(v float64) string {
	if v < 99.95 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
