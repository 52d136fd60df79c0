package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/tools/mkcapture/capgen"
)

func TestProbe(t *testing.T) {
	if os.Getenv("PROBE") == "" {
		t.Skip()
	}
	defer oneCore()()
	which := os.Getenv("PROBE")
	lanes := func() [2]*aggregate.Lane {
		e, err := newLanes()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	flush := func(e [2]*aggregate.Lane, dir int, now time.Duration) (n int, enc, dec time.Duration) {
		s := time.Now()
		f := e[dir].Merger.Flush(nil, now, aggregate.FlushEnd)
		enc = time.Since(s)
		s = time.Now()
		if len(f) == 0 {
			return 0, enc, 0
		}
		p, _, err := e[1-dir].Expander.Expand(f)
		dec = time.Since(s)
		if err != nil {
			t.Fatal(err)
		}
		return len(p), enc, dec
	}
	switch which {
	case "newflows": // k new flows in the first frame
		for _, k := range []int{500, 1000, 2000, 4000, 8000} {
			e := lanes()
			s := capgen.NewFlows(100000, 1)
			st := time.Now()
			var last time.Duration
			for range k {
				at, d := s.Next()
				e[down].Merger.Add(at, d)
				last = at
			}
			add := time.Since(st)
			_, enc, dec := flush(e, down, last)
			fmt.Printf("first frame of %d new flows: add %v flush %v expand %v (%.0f ns/packet flush)\n", k, add, enc, dec, float64(enc)/float64(k))
		}
	case "newlater": // k new flows in a frame that also has all old ones
		for _, k := range []int{1000, 4000} {
			e := lanes()
			s := capgen.NewFlows(k, 1)
			s2 := capgen.NewFlows(100000, 7)
			var last time.Duration
			for range k {
				at, d := s.Next()
				e[down].Merger.Add(at, d)
				last = at
			}
			flush(e, down, last)
			for range k {
				at, d := s.Next()
				e[down].Merger.Add(at, d)
				last = at
			}
			for i := range 2 * k {
				_, d := s2.Next()
				if i >= k {
					e[down].Merger.Add(last, d)
				}
			}
			_, enc, dec := flush(e, down, last)
			fmt.Printf("%d old and %d new flows in a frame: flush %v expand %v\n", k, k, enc, dec)
		}
	case "clear": // small frames after a frame with many groups
		for _, k := range []int{0, 1000, 8000} {
			e := lanes()
			s := capgen.NewFlows(100, 1)
			var last time.Duration
			if k > 0 {
				for i := range k {
					at, d := s.Next()
					d = append([]byte(nil), d...)
					binary.BigEndian.PutUint32(d[len(d)-8:], uint32(i)*2654435761)
					e[down].Merger.Add(at, d)
					last = at
				}
				n, enc, dec := flush(e, down, last)
				fmt.Println("big", n, enc, dec)
			}
			var te, td time.Duration
			frames := 5000
			for i := range frames {
				at, d := s.Next()
				e[down].Merger.Add(at, d)
				_, enc, dec := flush(e, down, at)
				if i > 1000 {
					te += enc
					td += dec
				}
			}
			fmt.Printf("after a frame of %d different payloads: flush %v, expand %v per frame of 1 packet\n", k, te/time.Duration(frames-1001), td/time.Duration(frames-1001))
		}
	case "owing": // k flows never acknowledge; 3 flows get a message and acknowledge, in turn
		for _, k := range []int{0, 1000, 8000, 50000} {
			e := lanes()
			s := capgen.NewFlows(max(k, 10)+10, 1)
			s.Acks = true
			var at time.Duration
			n := max(k, 10) + 10
			// round 1: all data and acks so that pairs are known
			for r := range 2 {
				for f := range n {
					var d []byte
					at, d = s.Next()
					e[down].Merger.Add(at, d)
					at, d = s.Next()
					if r == 0 || f >= n-10 {
						e[up].Merger.Add(at, d)
					}
					if f%500 == 499 || f == n-1 {
						flush(e, down, at)
						flush(e, up, at)
					}
				}
			}
			fmt.Println("owing set up", k)
			// now: groups of 3 acks of the last 10 flows: regenerate from rounds
			var te, td time.Duration
			frames := 0
			for r := range 20 {
				_ = r
				for f := range n {
					at2, d := s.Next()
					at = at2
					if f >= n-10 {
						e[down].Merger.Add(at, d)
					}
					at2, d = s.Next()
					at = at2
					if f >= n-10 {
						e[up].Merger.Add(at, d)
					}
					if f == n-7 || f == n-4 || f == n-1 {
						flush(e, down, at)
						_, enc, dec := flush(e, up, at)
						te += enc
						td += dec
						frames++
					}
				}
			}
			fmt.Printf("%d flows owe acks for ever: flush %v expand %v per frame of 3-4 acks\n", k, te/time.Duration(frames), td/time.Duration(frames))
		}
	case "time":
		tr, err := makeTrace(capgen.Fanout, capgen.Config{Clients: 100, Messages: 6000})
		if err != nil {
			t.Fatal(err)
		}
		long(t, tr.packets, len(tr.entries))
		tr, err = makeTrace(capgen.Mixed, capgen.Config{Clients: 50, Messages: 40000})
		if err != nil {
			t.Fatal(err)
		}
		long(t, tr.packets, len(tr.entries))
	case "churn":
		// connections that come and go: SYN-less new flows for ever
		e := lanes()
		s := capgen.NewFlows(1<<24, 1)
		s.Acks = true
		var te, td time.Duration
		for i := range 3_000_000 {
			at, d := s.Next()
			dir := down
			if i%2 == 1 {
				dir = up
			}
			st := time.Now()
			e[dir].Merger.Add(at, d)
			te += time.Since(st)
			if i%200 == 199 {
				for dd := range 2 {
					_, enc, dec := flush(e, dd, at)
					te += enc
					td += dec
				}
			}
			if i%300000 == 299999 {
				fmt.Printf("%d flows seen: enc %d dec %d ns/packet, heap %d MB, evicted %d\n", (i+1)/2, te/300000, td/300000, heapBytes()>>20, e[down].Merger.Stats().Evicted)
				te, td = 0, 0
			}
		}
	}
}

func long(t *testing.T, src source, n int) {
	s, err := newSchedule(src)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := newLanes()
	cl := clock()
	var enc, dec uint64
	k, part := 0, 0
	var frame []byte
	s.frames(src, func(st *step, b *batch) error {
		a := cl()
		from := 0
		for i, to := range b.ends {
			e[st.dir].Merger.Add(b.at[i], b.bytes[from:to])
			from = to
		}
		frame = e[st.dir].Merger.Flush(frame[:0], st.now, st.why)
		m := cl()
		_, _, err := e[1-st.dir].Expander.Expand(frame)
		enc += m - a
		dec += cl() - m
		k += len(b.ends)
		if k >= n/10 {
			part++
			fmt.Printf("decile %d: encode %d decode %d ns/packet heap %d kB\n", part, enc/uint64(k), dec/uint64(k), heapBytes()>>10)
			k, enc, dec = 0, 0, 0
		}
		return err
	})
}
