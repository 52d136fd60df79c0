package replay

import (
	"strings"
	"testing"
	"time"

	"sheaf/parsers/ip"
)

// udp returns a packet of a flow to a port of the broker.
func udp(port byte, body string) []byte {
	p := make([]byte, 28, 28+len(body))
	p[0], p[3], p[8], p[9] = 0x45, byte(28+len(body)), 64, ip.UDP
	copy(p[12:], []byte{10, 1, 1, 1, 10, 2, 0, 10})
	p[20], p[23] = 0x90, port
	p[25] = byte(8 + len(body))
	return append(p, body...)
}

func TestLedger(t *testing.T) {
	one, two, other := udp(1, "one"), udp(1, "two"), udp(2, "one")
	for _, test := range []struct {
		name       string
		sent, back [][]byte
		identical  uint64
		mismatched uint64
		note       string
	}{
		{"the same", [][]byte{one, two, other}, [][]byte{one, two, other}, 3, 0, ""},
		{"flows in another order", [][]byte{one, two, other}, [][]byte{other, one, two}, 3, 0, ""},
		{"one flow in another order", [][]byte{one, two}, [][]byte{two, one}, 0, 2, "packet 1 up, 31 bytes long, came out with 0x74 for 0x6f in byte 28"},
		{"another length", [][]byte{one}, [][]byte{udp(1, "on")}, 0, 1, "packet 1 up, 31 bytes long, came out with 30"},
		{"lost", [][]byte{one, other}, [][]byte{other}, 1, 1, "packet 1 up was lost"},
		{"lost at the end", [][]byte{one, two}, [][]byte{one}, 1, 1, "packet 2 up was lost"},
		{"never sent", [][]byte{one}, [][]byte{one, other}, 1, 1, "frame 0 up held a packet of 31 bytes that was not sent"},
		{"twice", [][]byte{one}, [][]byte{one, one}, 1, 1, "that was not sent"},
		{"in another flow", [][]byte{one}, [][]byte{other}, 0, 1, "that was not sent"},
		{"nothing", [][]byte{one}, nil, 0, 1, "packet 1 up was lost"},
		{"rubbish", [][]byte{one}, [][]byte{{}, {0x45}}, 0, 2, "that was not sent"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := New(config(0))
			if err != nil {
				t.Fatal(err)
			}
			for round := range 2 { // the second begins with what the first left
				w := &r.ways[Up]
				w.Counts = Counts{}
				for i, p := range test.sent {
					w.ledger.send(r.sides.flow(p), i+1, p)
				}
				if err := r.check(Up, test.back); err != nil {
					t.Fatal(err)
				}
				if w.Identical != test.identical || w.Mismatched != test.mismatched || w.Rebuilt != uint64(len(test.back)) {
					t.Errorf("round %d: %+v", round, w.Counts)
				}
				if !w.ledger.empty() || !strings.Contains(r.Worst, test.note) || (test.note == "") != (r.Worst == "") {
					t.Errorf("round %d: note %q, want %q", round, r.Worst, test.note)
				}
			}
		})
	}
}

// TestExactness replays every capture in the repository with windows from none
// to a second.
func TestExactness(t *testing.T) {
	for _, name := range captures(t) {
		for _, window := range []time.Duration{0, 100 * time.Microsecond, 5 * time.Millisecond, 50 * time.Millisecond, time.Second} {
			p := replayFile(t, name, config(window))
			if n := p.Packets - p.Skipped; !p.Exact() || p.Identical != n || p.Rebuilt != n || n == 0 {
				t.Errorf("%s, window %v: %d packets, %d skipped, %+v: %s%s", name, window, p.Packets, p.Skipped, p.Counts, p.Difference, p.Fault)
			}
		}
	}
}
