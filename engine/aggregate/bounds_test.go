package aggregate

import (
	"errors"
	"fmt"
	"testing"

	"sheaf/engine/wire"
)

func TestFrameIsFullAtEachOfItsBounds(t *testing.T) {
	limits := wire.Limits{Flows: 40, Templates: 9, Bodies: 999, Packets: 50, Bytes: wire.MaxPacket + 1000}
	more := limits
	more.Flows = 60
	for _, tt := range []struct {
		name   string
		limits wire.Limits
		fill   func(m *Merger, n int)
		bound  int // the least n at which it is full
	}{
		{"flows", limits, func(m *Merger, n int) { m.schedule.packets = n }, 40},
		{"packets", more, func(m *Merger, n int) { m.schedule.packets = n }, 50},
		{"bytes, with another packet", limits, func(m *Merger, n int) { m.pending.bytes = n }, 1001},
		{"bodies", limits, func(m *Merger, n int) { m.pending.store = make([]byte, n) }, maxStore},
		{"beside bodies", limits, func(m *Merger, n int) { m.pending.beside = n }, maxContent},
		{"bodies and beside", limits, func(m *Merger, n int) {
			m.pending.store, m.pending.beside = make([]byte, 1000), n-1000
		}, maxContent},
	} {
		for n, full := range map[int]bool{tt.bound - 1: false, tt.bound: true, tt.bound + 1: true} {
			m := newMerger(t, Config{Limits: tt.limits})
			tt.fill(m, n)
			if m.fills() != full {
				t.Errorf("%s: %d, full %v", tt.name, n, !full)
			}
		}
	}
}

// What is full goes at once and takes no more; the next frame takes as much.
func TestFullFrameTakesNoMore(t *testing.T) {
	limits := wire.DefaultLimits
	limits.Packets = 3
	m := newMerger(t, Config{Limits: limits})
	for range 2 {
		for n := range 3 {
			if at, why, ok := m.Deadline(); ok && why == FlushFull {
				t.Fatalf("full with %d packets, at %v", n, at)
			}
			add(t, m, 0, data(n, "alike").Packet())
		}
		if _, why, _ := m.Deadline(); why != FlushFull {
			t.Fatalf("3 packets are due for %v", why)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it took another")
				}
			}()
			m.Add(0, data(4, "alike").Packet())
		}()
		if m.Pending() != 3 {
			t.Errorf("%d packets wait", m.Pending())
		}
		m.Flush(nil, 0, FlushFull)
	}
}

// What waits beside the bodies: headers, and so much for each packet.
func TestHeadersCountForABound(t *testing.T) {
	m := newMerger(t, Config{})
	s := data(1, "alike")
	headers := len(s.Packet()) - len(s.Payload)
	for n := 1; n < 4; n++ {
		s.Client = n
		add(t, m, 0, s.Packet())
		if want := n * (headers + packetOverhead); m.pending.beside != want {
			t.Errorf("%d bytes beside the bodies of %d packets, expected %d", m.pending.beside, n, want)
		}
		if want := n * len(s.Packet()); m.pending.bytes != want {
			t.Errorf("%d bytes in %d packets, expected %d", m.pending.bytes, n, want)
		}
	}
	beside, b := m.pending.beside, broken(s)
	add(t, m, 0, b)
	if m.pending.beside != beside+packetOverhead || len(m.pending.store) != len(s.Payload)+len(b) {
		t.Errorf("a packet as it is: %d bytes stored, %d beside", len(m.pending.store), m.pending.beside-beside)
	}
}

func TestOnlyWhatCanBeAPacketIsCarried(t *testing.T) {
	for n, ok := range map[int]bool{0: false, 1: true, wire.MaxPacket: true, wire.MaxPacket + 1: false} {
		m := newMerger(t, Config{})
		err := m.Add(0, make([]byte, n))
		if ok != (err == nil) || !ok && err != ErrLength { // bare, as Add says
			t.Errorf("%d bytes: %v", n, err)
		}
		s := m.Stats()
		if want := uint64(b2i(ok)); s.Packets != want || s.Refused != 1-want || m.Pending() != b2i(ok) || s.BytesIn != want*uint64(n) {
			t.Errorf("%d bytes: %d packets of %d bytes, %d refused, %d wait", n, s.Packets, s.BytesIn, s.Refused, m.Pending())
		}
	}
}

// A reader takes a frame of as many packets and bytes as its limits allow and none of
// more, whether they are a group, groups of one or go as they are.
func TestExpanderBoundsFrames(t *testing.T) {
	const n = 20
	for name, packet := range map[string]func(client int) []byte{
		"a group":     func(client int) []byte { return data(client, "alike").Packet() },
		"singletons":  func(client int) []byte { return data(client, fmt.Sprintf("unlike %02d", client)).Packet() },
		"as they are": func(client int) []byte { return broken(data(client, "alike")) },
	} {
		size := len(packet(0))
		for _, tt := range []struct {
			what           string
			packets, bytes int
			ok             bool
		}{
			{"at both limits", n, n * size, true},
			{"a packet too many", n - 1, n * size, false},
			{"one packet", 1, n * size, false},
			{"a byte too many", n, n*size - 1, false},
			{"room for less than one", n, size - 1, false},
		} {
			t.Run(name+", "+tt.what, func(t *testing.T) {
				limits := wire.DefaultLimits
				m := newMerger(t, Config{Limits: limits})
				limits.Packets, limits.Bytes = uint32(tt.packets), uint32(tt.bytes)
				x := newReader(limits)
				for client := range n {
					add(t, m, 0, packet(client))
				}
				packets, _, err := x.Expand(m.Flush(nil, 0, FlushEnd))
				if tt.ok && (err != nil || len(packets) != n) || !tt.ok && (!errors.Is(err, ErrFrame) || len(packets) != 0) {
					t.Errorf("%d packets, %v", len(packets), err)
				}
			})
		}
	}
}
