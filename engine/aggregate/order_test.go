package aggregate

import (
	"errors"
	"fmt"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
)

// broken returns the packet of a segment with an IPv4 header that cannot be built
// again, so that it rides as it is.
func broken(s segment) []byte {
	b := s.Packet()
	b[2] ^= 0x40 // its length
	return b
}

// Segments do not pass what rides as it is, those of its own flow and of others,
// though they would have joined a group before it.
func TestNothingPassesAVerbatimPacket(t *testing.T) {
	p := newPair(t, Config{})
	m := &p.ends[0].Merger
	for round := range 5 {
		for client := range 3 { // each joins the group that the first one begins
			s := data(client, fmt.Sprint("alike ", round))
			p.add(0, 0, s.Packet())
			p.add(0, 0, broken(s))
		}
		before := m.Stats().Verbatim
		p.flush(0, 0)
		if before != uint64(3*(round+1)) {
			t.Fatalf("%d packets rode as they are", before)
		}
	}
	// and without one in between they do join
	for client := range 3 {
		p.add(0, 0, data(client, "alike at last").Packet())
	}
	if got := len(m.pending.list); got != 1 {
		t.Errorf("%d groups of segments alike", got)
	}
	p.flush(0, 0)
}

// What overtakes on the way through the merger is found at the other end: a
// segment another of its flow, a segment a packet that rides as it is, and the
// other way round. Segments of several flows may pass one another.
func TestDigestFindsWhatOvertakes(t *testing.T) {
	one, other := data(1, "one"), data(2, "other")
	again := one
	again.Seq += uint32(len(one.Payload))
	again.Payload = codectest.Publish("t/again", "again", 0)
	for _, tt := range []struct {
		name   string
		a, b   []byte
		passes bool
	}{
		{"segments of a flow", one.Packet(), again.Packet(), false},
		{"a segment and what rides as it is", one.Packet(), broken(again), false},
		{"of different flows", one.Packet(), broken(other), false},
		{"two that ride as they are", broken(one), broken(other), false},
		{"segments of two flows", one.Packet(), other.Packet(), true},
	} {
		for _, known := range []bool{false, true} { // whether there were frames before
			for _, swapped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, known %v, swapped %v", tt.name, known, swapped), func(t *testing.T) {
					p := newPair(t, Config{})
					if known {
						p.add(0, 0, one.Packet())
						p.add(0, 0, other.Packet())
						p.flush(0, 0)
					}
					m := &p.ends[0].Merger
					p.add(0, 0, tt.a)
					p.add(0, 0, tt.b)
					if list := m.pending.list; len(list) != 2 {
						t.Fatalf("%d groups", len(list))
					} else if swapped {
						list[0], list[1] = list[1], list[0]
					}
					packets, _, err := p.ends[1].Expander.Expand(m.Flush(nil, 0, FlushEnd))
					if tt.passes || !swapped {
						if err != nil {
							t.Error(err)
						}
					} else if !errors.Is(err, ErrFrame) || len(packets) > 0 {
						t.Errorf("%v, and %d packets", err, len(packets))
					}
				})
			}
		}
	}
}
