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

// warmUp is the part of a trace before the measurement.
const warmUp = 0.2

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

func measureSpeed(o options) (*Speed, error) {
	passes, messages := 9, 600
	if o.short {
		passes, messages = 3, 200
	}
	if o.captures == "" {
		t, err := makeTrace(capgen.Fanout, capgen.Config{Clients: 100, Messages: messages})
		if err != nil {
			return nil, err
		}
		return speedOf("fanout-100", t.packets, passes)
	}
	t, err := loadTrace(filepath.Join(o.captures, "full", "mqtt-fanout-100-qos0.pcap.gz"))
	if err != nil {
		return nil, err
	}
	return speedOf("mqtt-fanout-100-qos0", t.packets, passes)
}

func speedOf(name string, src source, passes int) (*Speed, error) {
	s, err := newSchedule(src)
	if err != nil {
		return nil, err
	}
	warm := int(warmUp * float64(s.packets))
	r := &Speed{Name: name, Passes: passes}
	var encode, decode, rival []float64
	for range passes {
		ends, err := newLanes()
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
	ends, err := newLanes()
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
