package main

import (
	"fmt"
	"runtime"

	"sheaf/engine/aggregate"
)

// The targets of scaling.
const (
	targetGrowth = 2    // times what a packet takes with the fewest flows
	targetMemory = 1024 // bytes that a gateway remembers of a flow and its acknowledgements
)

// flowNumbers are the numbers of flows to measure with.
func flowNumbers(short bool) []int {
	n := []int{100, 1_000, 10_000, 100_000}
	if short {
		n = n[:3]
	}
	return n
}

// A Flows is what packets and flows take while so many flows are remembered.
type Flows struct {
	Flows   int     `json:"flows"` // each with the flow of its acknowledgements
	Packets int     `json:"packets"`
	Encode  float64 `json:"encode_ns"` // the least of the passes
	Decode  float64 `json:"decode_ns"`
	Growth  float64 `json:"growth"` // of both together, against the first
	// Heap is what a gateway has on the heap for a flow with that of its
	// acknowledgements, in bytes: the end beside the clients, and the one beside
	// the broker. An empty lane's is taken off.
	Heap [2]float64 `json:"heap_bytes"`
	// Lane is what an empty lane has on the heap, in bytes.
	Lane int `json:"lane_bytes"`
}

const (
	flowPasses = 3
	flowAgain  = 3       // times that few flows run in each pass
	flowFew    = 10_000  // flows are few
	flowRounds = 2       // of warm-up, and of measurement, at least; a flow has two packets in each
	flowLeast  = 100_000 // packets of the measurement, at least
)

// flowSource returns a source of n flows, and how many of its packets are warm-up.
func flowSource(n int) (src source, warm int) {
	warm = max(2*n*flowRounds, flowLeast/5)
	return flowPackets(n, warm+max(2*n*flowRounds, flowLeast)), warm
}

// measureFlows measures with each number of flows, in turn, so that what else
// the machine does meets all of them alike. It calls full, if it is not nil,
// while lanes with the last number are in memory.
func measureFlows(numbers []int, full func() error) ([]Flows, error) {
	all := make([]Flows, len(numbers))
	schedules := make([]*schedule, len(numbers))
	for i, n := range numbers {
		src, _ := flowSource(n)
		var err error
		if schedules[i], err = newSchedule(src, nil); err != nil {
			return nil, fmt.Errorf("%d flows: %w", n, err)
		}
		all[i].Flows = n
	}
	for pass := range flowPasses {
		for i, n := range numbers {
			var hook func() error
			if pass == flowPasses-1 && i == len(numbers)-1 {
				hook = full
			}
			if err := all[i].pass(schedules[i], hook); err != nil {
				return nil, fmt.Errorf("%d flows: %w", n, err)
			}
		}
	}
	for i := range all {
		all[i].Growth = (all[i].Encode + all[i].Decode) / (all[0].Encode + all[0].Decode)
	}
	return all, nil
}

// pass runs the flows through new lanes, and keeps the least of the times. It
// calls full, if it is not nil, while the lanes are in memory.
func (f *Flows) pass(s *schedule, full func() error) error {
	src, warm := flowSource(f.Flows)
	again := 1
	if f.Flows <= flowFew {
		again = flowAgain
	}
	var ends [2]*aggregate.Lane
	var before, empty int
	for range again {
		ends = [2]*aggregate.Lane{}
		before = heapBytes()
		var err error
		if ends, err = s.lanes(); err != nil {
			return err
		}
		empty = (heapBytes() - before) / 2
		c, err := s.runLanes(ends, src, warm, clock())
		if err != nil {
			return err
		}
		if e := c.each(c.encode); f.Packets == 0 || e < f.Encode {
			f.Encode = e
		}
		if d := c.each(c.decode); f.Packets == 0 || d < f.Decode {
			f.Decode = d
		}
		f.Packets = c.packets
	}
	if full != nil {
		if err := full(); err != nil {
			return err
		}
	}
	both := heapBytes()
	ends[down] = nil
	one := heapBytes()
	runtime.KeepAlive(ends[up])
	f.Lane = empty
	f.Heap[up] = float64(one-before-empty) / float64(f.Flows)
	f.Heap[down] = float64(both-one-empty) / float64(f.Flows)
	return nil
}

// heapBytes returns what is in use on the heap.
func heapBytes() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held goes with the second
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func (f *Flows) heap() float64 { return max(f.Heap[up], f.Heap[down]) }

func flowTable(all []Flows) *table {
	t := &table{
		title: fmt.Sprintf("flows: each gets a PUBLISH of some 60 bytes in turn and acknowledges it, one core, least of %d or more passes", flowPasses),
		heading: []string{
			"flows", "packets", "encode ns/packet", "decode ns/packet", "growth", "target", "",
			"clients' end B/flow", "broker's end B/flow", "target", "",
		},
	}
	for i := range all {
		f := &all[i]
		growth, memory := "", ""
		if i > 0 {
			growth = verdict(f.Growth <= targetGrowth)
		}
		target := ""
		if i == len(all)-1 {
			target, memory = fmt.Sprintf("%d B", targetMemory), verdict(f.heap() <= targetMemory)
		}
		t.add(grouped(f.Flows), grouped(f.Packets), fmt.Sprintf("%.0f", f.Encode), fmt.Sprintf("%.0f", f.Decode),
			fmt.Sprintf("%.2f", f.Growth), fmt.Sprintf("%d", targetGrowth), growth,
			fmt.Sprintf("%.0f", f.Heap[up]), fmt.Sprintf("%.0f", f.Heap[down]), target, memory)
	}
	if len(all) > 0 {
		t.notes = []string{
			"B/flow: heap of one gateway (Merger and Expander) for a flow with that of its acknowledgements,",
			fmt.Sprintf("over an empty lane's %s B; with few flows, buffers weigh most", grouped(all[0].Lane)),
		}
	}
	return t
}

// missedFlows returns the targets missed: that of memory, which counts with the
// most flows, and those of time.
func missedFlows(all []Flows) (hard, soft []string) {
	for i := range all {
		f := &all[i]
		if f.Growth > targetGrowth {
			soft = append(soft, fmt.Sprintf("with %s flows a packet takes %.2f times what it takes with %s, target %d",
				grouped(f.Flows), f.Growth, grouped(all[0].Flows), targetGrowth))
		}
		if i == len(all)-1 && f.heap() > targetMemory {
			hard = append(hard, fmt.Sprintf("with %s flows a gateway remembers %.0f B of each, target %d B",
				grouped(f.Flows), f.heap(), targetMemory))
		}
	}
	return hard, soft
}
