package record

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A body makes the next message at a time.
type body func(now time.Time) []byte

// An alarm is the body of a fan-out's messages: values that drift.
type alarm struct {
	seq    int
	values [4]float64
}

func newAlarm() *alarm { return &alarm{values: [4]float64{61.2, 4.15, 1480, 0.82}} }

// next returns the next message, about 116 bytes.
func (a *alarm) next(now time.Time) []byte {
	a.seq++
	for i := range a.values {
		a.values[i] *= 1 + (rand.Float64()-0.5)/500
	}
	return fmt.Appendf(nil, `{"seq":%d,"ts":%d,"temperature":%.2f,"pressure":%.3f,"speed":%.0f,"load":%.3f,"state":"RUN"}`,
		a.seq, now.UnixMilli(), a.values[0], a.values[1], a.values[2], a.values[3])
}

// A reading is the body of a device's messages: values that walk at random.
type reading struct {
	id, seq int
	values  [8]float64
}

func newReading(id int) *reading {
	r := &reading{id: id}
	for i := range r.values {
		r.values[i] = 100 * rand.Float64()
	}
	return r
}

// next returns the next message, about 137 bytes.
func (r *reading) next(now time.Time) []byte {
	r.seq++
	b := fmt.Appendf(nil, `{"id":"dev-%04d","ts":%d,"seq":%d,"v":[`, r.id, now.UnixMilli(), r.seq)
	for i := range r.values {
		r.values[i] += rand.Float64() - 0.5
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "%.3f", r.values[i])
	}
	return append(b, "]}"...)
}

// A state is a body of a certain size: many values, of which each message has some
// anew.
type state struct {
	seq    int
	values []int
}

// newState returns a state whose messages have about size bytes.
func newState(size int) *state {
	s := &state{values: make([]int, max(1, (size-40)/12))}
	for i := range s.values {
		s.values[i] = rand.IntN(10_000)
	}
	return s
}

func (s *state) next(now time.Time) []byte {
	s.seq++
	for range 1 + len(s.values)/10 {
		s.values[rand.IntN(len(s.values))] += rand.IntN(21) - 10
	}
	b := fmt.Appendf(nil, `{"seq":%d,"ts":%d`, s.seq, now.UnixMilli())
	for i, v := range s.values {
		b = fmt.Appendf(b, `,"p%02d":%d`, i, v)
	}
	return append(b, '}')
}
