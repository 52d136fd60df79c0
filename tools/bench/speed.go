package main

import (
	"fmt"
	"path/filepath"

	"sheaf/tools/mkcapture/capgen"
)

// The targets of speed. Times are for one core of a machine of 2020 or later.
const (
	targetEncode = 1500  // ns for a packet
	targetDecode = 1000  // ns for a packet
	targetAllocs = 0.001 // for a packet: none but those of tables that still grow
)

// A Speed is what packets take, in nanoseconds and allocations for each.
type Speed struct {
	Name         string  `json:"name"`
	Packets      int     `json:"packets"` // measured in a pass
	Frames       int     `json:"frames"`
	Passes       int     `json:"passes"`
	Encode       Spread  `json:"encode_ns"`
	Decode       Spread  `json:"decode_ns"`
	Zstd         Spread  `json:"zstd_ns"`
	EncodeAllocs float64 `json:"encode_allocs"`
	DecodeAllocs float64 `json:"decode_allocs"`
	Ratio        float64 `json:"encode_zstd_ratio"` // of the medians
}

// A speedTrace is traffic whose speed is measured.
type speedTrace struct {
	name string
	load func() (*trace, error)
}

// speedTraces returns the traffic to measure with, that with targets first.
func speedTraces(o options) []speedTrace {
	var all []speedTrace
	if o.captures == "" {
		messages := 600
		if o.short {
			messages = 200
		}
		for _, m := range []struct {
			name     string
			workload capgen.Workload
			config   capgen.Config
		}{
			{"fanout-100", capgen.Fanout, capgen.Config{Clients: 100, Messages: messages}},
			{"telemetry-200", capgen.Telemetry, capgen.Config{Clients: 200, Messages: 20}},
			{"control-200", capgen.Control, capgen.Config{Clients: 200, Messages: 30}},
			{"mixed-50", capgen.Mixed, capgen.Config{Clients: 50, Messages: messages * 4}},
		} {
			all = append(all, speedTrace{m.name, func() (*trace, error) { return makeTrace(m.workload, m.config) }})
		}
		return all
	}
	names := []string{
		"mqtt-fanout-100-qos0", "mqtt-telemetry-200-qos1", "mqtt-control-200", "mqtt-mixed-50x20",
		"mqtt-fanout-10-qos0", "mqtt-fanout-100-qos1", "mqtt-fanout-500-qos0",
	}
	if o.short {
		names = names[:3]
	}
	for _, name := range names {
		path := filepath.Join(o.captures, "full", name+".pcap.gz")
		all = append(all, speedTrace{name, func() (*trace, error) { return loadTrace(path) }})
	}
	return all
}

// measureSpeed measures the speed of the first trace, which has targets, and
// in fewer passes that of the others.
func measureSpeed(o options) ([]Speed, error) {
	passes, others := 9, 3
	if o.short {
		passes, others = 3, 1
	}
	if o.passes > 0 {
		passes, others = o.passes, o.passes
	}
	var all []Speed
	for i, st := range speedTraces(o) {
		t, err := st.load()
		if err != nil {
			return nil, err
		}
		n := passes
		if i > 0 {
			n = others
		}
		s, err := speedOf(st.name, t, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", st.name, err)
		}
		all = append(all, *s)
	}
	return all, nil
}

func speedOf(name string, t *trace, passes int) (*Speed, error) {
	src, warm := t.packets, t.warmUp()
	s, err := newSchedule(src, nil)
	if err != nil {
		return nil, err
	}
	r := &Speed{Name: name, Passes: passes}
	var encode, decode, rival []float64
	for range passes {
		ends, err := s.lanes()
		if err != nil {
			return nil, err
		}
		c, err := s.runLanes(ends, src, warm, clock())
		if err != nil {
			return nil, err
		}
		z, err := s.runZstd(src, warm, clock())
		if err != nil {
			return nil, err
		}
		r.Packets, r.Frames = c.packets, c.frames
		encode = append(encode, c.each(c.encode))
		decode = append(decode, c.each(c.decode))
		rival = append(rival, z.each(z.encode))
	}
	r.Encode, r.Decode, r.Zstd = spread(encode), spread(decode), spread(rival)
	r.Ratio = r.Encode.Median / r.Zstd.Median
	ends, err := s.lanes()
	if err != nil {
		return nil, err
	}
	c, err := s.runLanes(ends, src, warm, mallocs())
	r.EncodeAllocs, r.DecodeAllocs = c.each(c.encode), c.each(c.decode)
	return r, err
}

func (s *Speed) table() *table {
	t := &table{
		title: fmt.Sprintf("speed: one core, %s, %s packets in %s frames after the warm-up, %d passes",
			s.Name, grouped(s.Packets), grouped(s.Frames), s.Passes),
		heading: []string{"", "median ns/packet", "min ns/packet", "allocs/packet", "target", ""},
	}
	row := func(name string, v Spread, allocs, target string, met bool) {
		t.add(name, fmt.Sprintf("%.0f", v.Median), fmt.Sprintf("%.0f", v.Min), allocs, target, verdict(met))
	}
	row("encode (Add, Flush)", s.Encode, fmt.Sprintf("%.4f", s.EncodeAllocs),
		fmt.Sprintf("%d ns, 0 allocs", targetEncode), s.Encode.Median <= targetEncode && s.EncodeAllocs < targetAllocs)
	row("decode (Expand)", s.Decode, fmt.Sprintf("%.4f", s.DecodeAllocs),
		fmt.Sprintf("%d ns, 0 allocs", targetDecode), s.Decode.Median <= targetDecode && s.DecodeAllocs < targetAllocs)
	t.add("zstd SpeedDefault", fmt.Sprintf("%.0f", s.Zstd.Median), fmt.Sprintf("%.0f", s.Zstd.Min), "", "", "")
	t.add("encode / zstd", fmt.Sprintf("%.2f", s.Ratio), fmt.Sprintf("%.2f", s.Encode.Min/s.Zstd.Min), "", "below 1", verdict(s.Ratio < 1))
	return t
}

// otherSpeeds is the table of what has no targets.
func otherSpeeds(all []Speed) *table {
	t := &table{
		title: "speed of other traffic: one core, the least of some passes, no targets",
		heading: []string{
			"", "packets/frame", "encode ns/packet", "decode ns/packet", "zstd ns/packet", "encode / zstd",
			"encode allocs/packet", "decode allocs/packet",
		},
	}
	for i := range all {
		s := &all[i]
		t.add(s.Name, fmt.Sprintf("%.0f", float64(s.Packets)/float64(max(s.Frames, 1))),
			fmt.Sprintf("%.0f", s.Encode.Min), fmt.Sprintf("%.0f", s.Decode.Min), fmt.Sprintf("%.0f", s.Zstd.Min),
			fmt.Sprintf("%.2f", s.Encode.Min/s.Zstd.Min),
			fmt.Sprintf("%.4f", s.EncodeAllocs), fmt.Sprintf("%.4f", s.DecodeAllocs))
	}
	return t
}

// missed returns the targets missed: those that every machine has to meet, and
// the times.
func (s *Speed) missed() (hard, soft []string) {
	for _, a := range []struct {
		name string
		v    float64
	}{{"encode", s.EncodeAllocs}, {"decode", s.DecodeAllocs}} {
		if a.v >= targetAllocs {
			hard = append(hard, fmt.Sprintf("%s allocates %.4f objects a packet, target 0", a.name, a.v))
		}
	}
	if s.Encode.Median > targetEncode {
		soft = append(soft, fmt.Sprintf("encode takes %.0f ns a packet, target %d ns", s.Encode.Median, targetEncode))
	}
	if s.Decode.Median > targetDecode {
		soft = append(soft, fmt.Sprintf("decode takes %.0f ns a packet, target %d ns", s.Decode.Median, targetDecode))
	}
	if s.Ratio >= 1 {
		soft = append(soft, fmt.Sprintf("encode takes %.2f times as long as zstd, target below 1", s.Ratio))
	}
	return hard, soft
}
