package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sheaf/engine/aggregate"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
	"sheaf/tools/mkcapture/capgen"
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
	masked    bool    // its messages are noise to who does not know the masks
}

// captures returns those of the directory, or made ones.
func captures(o options) []capture {
	if o.captures == "" {
		return made(o.short)
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
	for _, c := range made(o.short) { // others have none of MQTT over WebSocket
		if strings.HasSuffix(c.name, "-ws") {
			some = append(some, c)
		}
	}
	return some
}

// made are the regular captures of testdata.
func made(short bool) []capture {
	var all []capture
	for _, f := range capgen.Standard() {
		if f.Workload == capgen.Odd || short && f.Workload == capgen.Mixed {
			continue
		}
		name, _, _ := strings.Cut(f.Name, ".pcap")
		all = append(all, capture{name: name, masked: f.Config.WebSocket, open: func() (io.ReadCloser, error) {
			var b bytes.Buffer
			_, err := f.WritePcap(&b)
			return io.NopCloser(&b), err
		}})
	}
	return all
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
	Opaque   float64 `json:"opaque"` // sheaf without parsers: bodies compared by content alone
	Masked   bool    `json:"masked,omitempty"`
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
	s := Size{Name: c.name, Messages: c.messages, Must: c.must, Aim: c.aim, Masked: c.masked}
	report, err := replayed(c, builtin.Registry(), true)
	if err != nil {
		return s, err
	}
	if s.Messages == 0 {
		s.Messages = publishes(report, c.delivered)
	}
	if s.Messages == 0 {
		return s, fmt.Errorf("no PUBLISH in %d packets", report.Packets)
	}
	s.Packets = report.Packets
	each := func(n uint64) float64 { return float64(n) / float64(s.Messages) }
	s.Sheaf = each(report.BytesWire)
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
	r, err := replay.New(replay.Config{
		Lane:     aggregate.Config{Window: window, Registry: reg},
		Overhead: carrierOverhead,
		Compare:  compare,
	})
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

// publishes returns how many PUBLISH or MSG messages a replay saw, of those delivered
// to subscribers alone or of all.
func publishes(r *replay.Report, delivered bool) int {
	n := uint64(0)
	for i := range r.Rows {
		if row := &r.Rows[i]; (row.Name == "PUBLISH" || row.Name == "MSG") && (!delivered || row.Direction == replay.Down) {
			n += row.Messages
		}
	}
	return int(n)
}

func sizeTable(all []Size) *table {
	t := &table{
		title: fmt.Sprintf("sizes: bytes on the wire for a message, window %v, carrier %d B for each %d B or part of it",
			window, carrierOverhead, replay.CarrierPayload),
		heading: []string{
			"capture", "messages", "plain B", "headers B", "zstd -3 B", "zstd -19 B", "sheaf B",
			"zstd -19 / sheaf", "opaque B", "kept", "must B", "aim B", "",
		},
		notes: []string{
			"both directions with connection set-up; zstd: one stream each way, flushed at sheaf's frames, same carrier;",
			"headers: a model of header compression alone; opaque: sheaf without parsers;",
			fmt.Sprintf("kept: what is left then of the savings beyond zstd -19, at least %.2g but for masked messages", mustKeep),
		},
	}
	for _, s := range all {
		must, aim, state := "", "", ""
		if s.Must > 0 {
			must, aim = fmt.Sprintf("%.4g", s.Must), fmt.Sprintf("%.4g", s.Aim)
			switch {
			case s.Sheaf <= s.Aim:
				state = "aim reached"
			default:
				state = verdict(s.Sheaf <= s.Must)
			}
		}
		t.add(s.Name, grouped(s.Messages), fmt.Sprintf("%.1f", s.Plain), fmt.Sprintf("%.1f", s.Headers),
			fmt.Sprintf("%.2f", s.Zstd3), fmt.Sprintf("%.2f", s.Zstd19), fmt.Sprintf("%.2f", s.Sheaf),
			fmt.Sprintf("%.1f", s.Zstd19/s.Sheaf),
			fmt.Sprintf("%.2f", s.Opaque), fmt.Sprintf("%.2f", s.Kept()), must, aim, state)
	}
	return t
}
