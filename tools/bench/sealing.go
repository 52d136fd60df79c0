package main

import (
	"fmt"

	"sheaf/engine/aggregate/seal"
	"sheaf/parsers"
	"sheaf/tools/mkcapture/capgen"
)

// The targets of sealing.
const (
	targetSealing = 1500 // ns for a record of some 150 bytes beyond what its content takes without TLS

	// targetSealingAllocs is for a packet: none but those of a flow's ring of records,
	// which grows six times, and for clients that send little does so for long.
	targetSealingAllocs = 0.01
)

// A Sealing is what packets take whose payloads are TLS records, in nanoseconds for each,
// and how that compares with the same payloads without TLS.
type Sealing struct {
	Name    string  `json:"name"`
	Packets int     `json:"packets"` // measured in a pass
	Records int     `json:"records"` // in them
	Bytes   float64 `json:"record_bytes"`
	Encode  float64 `json:"encode_ns"` // the least of the passes
	Decode  float64 `json:"decode_ns"`
	Allocs  float64 `json:"allocs"`          // both together
	Beyond  float64 `json:"beyond_plain_ns"` // for a record, both together
	Wire    float64 `json:"frame_bytes"`     // for a record, without carrier
	Opened  bool    `json:"opened"`          // and sealed; else carried as they are
}

// A sealingRun is traffic whose Sealing is measured.
type sealingRun struct {
	Sealing
	trace    *trace
	schedule *schedule
	share    float64 // of its packets have a record
}

const (
	sealingMessages = 200 // to each of 100 subscribers
	sealingPasses   = 7
)

// sealed are the suites that are measured.
var sealed = []struct {
	name  string
	suite seal.Suite
}{
	{"TLS 1.3, AES-128-GCM", seal.AES128GCM13},
	{"TLS 1.3, ChaCha20-Poly1305", seal.ChaCha20Poly130513},
	{"TLS 1.2, AES-128-GCM", seal.ECDSAAES128GCM},
}

// measureSealing measures a fan-out to 100 with QoS 0, and with 1, without TLS and within.
func measureSealing(o options) ([]Sealing, error) {
	passes, messages := sealingPasses, sealingMessages
	if o.short {
		passes, messages = 2, sealingMessages/2
	}
	if o.passes > 0 {
		passes = o.passes
	}
	var all []Sealing
	for _, qos := range []int{-1, 1} {
		runs, err := sealingRuns(capgen.Config{Clients: 100, Messages: messages, QoS: qos})
		if err != nil {
			return nil, err
		}
		for pass := range passes {
			for _, r := range runs { // in turn, so that what else the machine does meets all of them alike
				if err := r.pass(pass == 0); err != nil {
					return nil, fmt.Errorf("%s: %w", r.Name, err)
				}
			}
		}
		plain := &runs[0].Sealing
		for i, r := range runs {
			r.Name += fmt.Sprintf(", QoS %d", max(qos, 0))
			if i > 0 {
				more := r.Encode + r.Decode - plain.Encode - plain.Decode
				r.Beyond = more * float64(r.Packets) / float64(max(r.Records, 1))
			}
			all = append(all, r.Sealing)
		}
	}
	return all, nil
}

// sealingRuns returns a fan-out without TLS, then within.
func sealingRuns(cfg capgen.Config) ([]*sealingRun, error) {
	plain, err := makeTrace(capgen.Fanout, cfg)
	if err != nil {
		return nil, err
	}
	run, err := newSealingRun("without TLS", plain, nil)
	runs := []*sealingRun{run}
	for i, s := range sealed {
		if err != nil {
			return nil, err
		}
		t, known, bad := secured(plain, s.suite)
		if bad != nil {
			return nil, bad
		}
		if i == 0 {
			if run, err = newSealingRun(s.name+", not opened", t, nil); err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
		run, err = newSealingRun(s.name, t, known)
		runs = append(runs, run)
	}
	return runs, err
}

func newSealingRun(name string, t *trace, known secrets) (*sealingRun, error) {
	r := &sealingRun{Sealing: Sealing{Name: name, Opened: known != nil}, trace: t}
	var err error
	if r.schedule, err = newSchedule(t.packets, known); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.share, r.Bytes = t.payloads()
	return r, nil
}

// payloads returns what part of a trace's packets behind the warm-up have a payload, and
// the mean length of those that come down.
func (t *trace) payloads() (share, length float64) {
	var decoder parsers.Decoder
	var seg parsers.Segment
	packets, some, fromBroker, bytes := 0, 0, 0, 0
	for p := range t.packets {
		if packets++; packets <= t.warmUp() || decoder.Decode(p.data, &seg) != nil || len(seg.Payload()) == 0 {
			continue
		}
		some++
		if p.dir == down {
			fromBroker++
			bytes += len(seg.Payload())
		}
	}
	return float64(some) / float64(max(packets-t.warmUp(), 1)), float64(bytes) / float64(max(fromBroker, 1))
}

// pass runs the traffic through new lanes, and keeps the least of the times. The first
// pass counts allocations too.
func (r *sealingRun) pass(first bool) error {
	run := func(g gauge) (cost, error) {
		ends, err := r.schedule.lanes()
		if err != nil {
			return cost{}, err
		}
		return r.schedule.runLanes(ends, r.trace.packets, r.trace.warmUp(), g)
	}
	if first {
		c, err := run(mallocs())
		if err != nil {
			return err
		}
		r.Allocs = c.each(c.encode + c.decode)
	}
	c, err := run(processor())
	if err != nil {
		return err
	}
	if e := c.each(c.encode); first || e < r.Encode {
		r.Encode = e
	}
	if d := c.each(c.decode); first || d < r.Decode {
		r.Decode = d
	}
	r.Packets = c.packets
	r.Records = int(r.share * float64(c.packets))
	r.Wire = float64(c.bytes) / float64(max(r.Records, 1))
	return nil
}

func sealingTable(all []Sealing) *table {
	t := &table{
		title: "sealing: fan-out to 100 in TLS records, opened at one end and sealed at the other; processor time, the least of some passes",
		heading: []string{
			"", "packets", "records", "B/record down", "frame B/record", "encode ns/packet", "decode ns/packet", "allocs/packet",
			"TLS us/record", "target", "",
		},
		notes: []string{"TLS us/record: encode and decode together, less those without TLS; where records are opened, what opening and sealing one takes"},
	}
	for i := range all {
		s := &all[i]
		beyond, target, met := "", "", ""
		if s.Beyond != 0 {
			beyond = fmt.Sprintf("%.2f", s.Beyond/1000)
		}
		if s.Opened {
			target, met = fmt.Sprintf("%.1f us", targetSealing/1000.0), verdict(s.Beyond <= targetSealing)
		}
		t.add(s.Name, grouped(s.Packets), grouped(s.Records), fmt.Sprintf("%.0f", s.Bytes), fmt.Sprintf("%.2f", s.Wire),
			fmt.Sprintf("%.0f", s.Encode), fmt.Sprintf("%.0f", s.Decode), fmt.Sprintf("%.4f", s.Allocs), beyond, target, met)
	}
	return t
}

// missedSealing returns the targets missed: allocations, which every machine has to meet,
// and times.
func missedSealing(all []Sealing) (hard, soft []string) {
	for i := range all {
		s := &all[i]
		if s.Opened && s.Allocs >= targetSealingAllocs {
			hard = append(hard, fmt.Sprintf("%s allocates %.4f objects a packet, target 0", s.Name, s.Allocs))
		}
		if s.Opened && s.Beyond > targetSealing {
			soft = append(soft, fmt.Sprintf("%s takes %.0f ns a record beyond what it takes without TLS, target %d ns", s.Name, s.Beyond, targetSealing))
		}
	}
	return hard, soft
}
