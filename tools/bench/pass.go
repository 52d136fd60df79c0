package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"sheaf/engine/aggregate"
)

// A gauge is what is measured: its reading grows.
type gauge func() uint64

// clock reads nanoseconds.
func clock() gauge {
	start := time.Now()
	return func() uint64 { return uint64(time.Since(start)) }
}

// processor reads nanoseconds that the program has had of the processor, for what is small
// beside what a busy machine adds to the clock's.
func processor() gauge {
	return func() uint64 {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
			panic(err) // there is such a clock wherever this compiles
		}
		return uint64(t.Nano())
	}
}

// mallocs reads the objects allocated so far.
func mallocs() gauge {
	var m runtime.MemStats
	return func() uint64 {
		runtime.ReadMemStats(&m)
		return m.Mallocs
	}
}

// A cost is what a gauge showed for packets.
type cost struct {
	packets, frames int
	bytes           int // of the frames
	encode, decode  uint64
}

func (c *cost) each(v uint64) float64 { return float64(v) / float64(max(c.packets, 1)) }

// runLanes runs a source through lanes at the beginning of their lives. The
// frames after the first warm packets are measured.
func (s *schedule) runLanes(ends [2]*aggregate.Lane, src source, warm int, g gauge) (cost, error) {
	var c cost
	frame := make([]byte, 0, 1<<16)
	bytes := 0
	err := s.frames(src, func(st *step, b *batch) error {
		merger, expander := &ends[st.dir].Merger, &ends[1-st.dir].Expander
		start := g()
		from := 0
		for i, to := range b.ends {
			_ = merger.Add(b.at[i], b.bytes[from:to])
			from = to
		}
		frame = merger.Flush(frame[:0], st.now, st.why)
		middle := g()
		packets, _, err := expander.Expand(frame)
		end := g()
		if err != nil {
			return err
		}
		if len(packets) != len(b.ends) {
			return fmt.Errorf("a frame of %d packets gave %d", len(b.ends), len(packets))
		}
		bytes += len(frame)
		if st.after > warm {
			c.frames++
			c.bytes += len(frame)
			c.packets += len(packets)
			c.encode += middle - start
			c.decode += end - middle
		}
		return nil
	})
	if err == nil && bytes != s.bytes {
		err = fmt.Errorf("the frames have %d bytes, as planned %d", bytes, s.bytes)
	}
	return c, err
}

// runZstd compresses the packets of each direction as one stream, flushed at
// every frame.
func (s *schedule) runZstd(src source, warm int, g gauge) (cost, error) {
	var c cost
	var streams [2]*zstd.Encoder
	for i := range streams {
		var err error
		streams[i], err = zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(zstd.SpeedDefault),
			zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
		if err != nil {
			return c, err
		}
		defer streams[i].Close()
	}
	return c, s.frames(src, func(st *step, b *batch) error {
		z := streams[st.dir]
		start := g()
		_, err := z.Write(b.bytes)
		if err == nil {
			err = z.Flush()
		}
		if st.after > warm {
			c.encode += g() - start
			c.frames++
			c.packets += len(b.ends)
		}
		return err
	})
}

// A Spread sums up the same figure from several passes.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
}

func spread(v []float64) Spread {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return Spread{Median: (v[(n-1)/2] + v[n/2]) / 2, Min: v[0]}
}
