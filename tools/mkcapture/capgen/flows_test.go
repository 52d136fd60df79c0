package capgen

import (
	"testing"
)

func TestFlowStreamIsContiguous(t *testing.T) {
	for _, acks := range []bool{false, true} {
		const n, rounds = 300, 5
		s := NewFlows(n, 1)
		s.Acks = acks
		w, want := newWatcher(t, false), n
		if acks {
			want *= 2
		}
		for range want * rounds {
			if err := w.see(s.Next()); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.flows) != want {
			t.Errorf("%d flows, want %d", len(w.flows), want)
		}
	}
}

func TestFlowsAreDistinct(t *testing.T) {
	const n = 150_000
	s := NewFlows(n, 1)
	seen := make(map[[12]byte]bool, n)
	for range n {
		_, p := s.Next()
		seen[[12]byte(p[12:24])] = true
	}
	if len(seen) != n {
		t.Errorf("%d different flows, want %d", len(seen), n)
	}
}

func TestFlowStreamAllocatesNothing(t *testing.T) {
	s := NewFlows(1000, 1)
	s.Acks = true
	s.Next()
	if n := testing.AllocsPerRun(5000, func() { s.Next() }); n != 0 {
		t.Errorf("%v allocations a packet, want none", n)
	}
}

func BenchmarkFlowStream(b *testing.B) {
	s := NewFlows(100_000, 1)
	b.ReportAllocs()
	for b.Loop() {
		s.Next()
	}
}
