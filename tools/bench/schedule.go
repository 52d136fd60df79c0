package main

import (
	"fmt"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/aggregate/seal"
	"sheaf/parsers/builtin"
)

// window is how long segments may wait in all that is measured.
const window = 5 * time.Millisecond

// newLanes returns the ends of a lane. Where there are secrets of TLS connections, the
// end beside the broker has them, and the other is told by it.
func newLanes(known secrets) (ends [2]*aggregate.Lane, err error) {
	for i := range ends {
		cfg := aggregate.Config{Window: window, Registry: builtin.Registry()}
		if known != nil {
			tls := seal.Config{Served: served}
			if i == down {
				tls.Secrets = known
			}
			cfg.TLS = seal.NewTable(tls, len(known))
		}
		ends[i], err = aggregate.NewLane(cfg)
		if err != nil {
			return ends, err
		}
	}
	return ends, nil
}

// A schedule says which packets of a source go into which frame.
type schedule struct {
	steps   []step
	packets int
	bytes   int // of all frames
	known   secrets
}

// lanes returns the ends of a lane like the one that the schedule was made with.
func (s *schedule) lanes() ([2]*aggregate.Lane, error) { return newLanes(s.known) }

// A step is a frame: all packets of a direction that came since its last one.
type step struct {
	after int // packets of both directions before it
	dir   int
	now   time.Duration
	why   aggregate.Reason
}

// newSchedule runs a source through a lane as gateways would, which know the secrets of its
// TLS connections; nil for none.
func newSchedule(src source, known secrets) (*schedule, error) {
	s := &schedule{known: known}
	ends, err := s.lanes()
	if err != nil {
		return nil, err
	}
	now := time.Duration(0)
	var frame []byte
	// advance flushes what is due before at, or at it too; what is due first
	// goes first.
	advance := func(at time.Duration, inclusive bool) error {
		for {
			next, dir, why := at, -1, aggregate.FlushEnd
			for d := range ends {
				due, reason, ok := ends[d].Merger.Deadline()
				if ok && (due < next || inclusive && due <= next && dir < 0) {
					next, dir, why = due, d, reason
				}
			}
			if dir < 0 {
				return nil
			}
			now = max(now, next)
			frame = ends[dir].Merger.Flush(frame[:0], now, why)
			if _, _, err := ends[1-dir].Expander.Expand(frame); err != nil {
				return fmt.Errorf("frame %d: %w", len(s.steps)+1, err)
			}
			s.bytes += len(frame)
			s.steps = append(s.steps, step{s.packets, dir, now, why})
		}
	}
	for p := range src {
		if err := advance(p.at, false); err != nil {
			return nil, err
		}
		if err := ends[p.dir].Merger.Add(p.at, p.data); err != nil {
			return nil, fmt.Errorf("packet %d: %w", s.packets+1, err)
		}
		s.packets++
		if err := advance(p.at, true); err != nil {
			return nil, err
		}
	}
	return s, advance(1<<62, true)
}

// A batch is the packets of a frame.
type batch struct {
	bytes []byte
	at    []time.Duration
	ends  []int
}

func (b *batch) add(p *packet) {
	b.bytes = append(b.bytes, p.data...)
	b.at = append(b.at, p.at)
	b.ends = append(b.ends, len(b.bytes))
}

func (b *batch) reset() { b.bytes, b.at, b.ends = b.bytes[:0], b.at[:0], b.ends[:0] }

// frames calls do for each frame with its packets, borrowed for the call.
func (s *schedule) frames(src source, do func(*step, *batch) error) error {
	var batches [2]batch
	next, n := 0, 0
	for p := range src {
		batches[p.dir].add(&p)
		n++
		for next < len(s.steps) && s.steps[next].after == n {
			st := &s.steps[next]
			next++
			if err := do(st, &batches[st.dir]); err != nil {
				return err
			}
			batches[st.dir].reset()
		}
	}
	if next != len(s.steps) || n != s.packets {
		return fmt.Errorf("the source had %d packets, the schedule %d", n, s.packets)
	}
	return nil
}
