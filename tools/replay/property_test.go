package replay

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
)

// A mishap is what happens to a packet on its way to a gateway.
type mishap int

const (
	none mishap = iota
	dropped
	doubled
	delayed   // behind packets of any flow, also its own
	overtaken // by later packets of other flows only
	damaged
	cut
)

// TestMishaps holds that whatever happens to the packets of a capture before they
// reach the gateways, they leave identical, and in order per flow.
func TestMishaps(t *testing.T) {
	var all [][]capturedPacket
	for _, name := range captures(t) {
		all = append(all, load(t, name))
	}
	waits := []time.Duration{0, 50 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second}
	rapid.Check(t, func(t *rapid.T) {
		packets := rapid.SampledFrom(all).Draw(t, "capture")
		from := rapid.IntRange(0, len(packets)-1).Draw(t, "from")
		packets = packets[from:min(len(packets), from+rapid.IntRange(1, 250).Draw(t, "packets"))]
		wait := func(label string) time.Duration {
			if w := rapid.SampledFrom(waits).Draw(t, label); w > 0 {
				return w
			}
			return -1
		}
		cfg := Config{Overhead: 60, Lane: aggregate.Config{
			Window: wait("window"), Quiet: wait("quiet"), AckWait: wait("ack wait"),
			Similarity:  rapid.SampledFrom([]aggregate.Similarity{0, aggregate.ByEvent, aggregate.ByContent, aggregate.ByNothing}).Draw(t, "similarity"),
			Compression: rapid.SampledFrom([]int{-1, 1, 3}).Draw(t, "compression"),
			Registry:    builtin.Registry(),
		}}
		rate := rapid.SampledFrom([]int{0, 3, 20}).Draw(t, "mishaps in a hundred")
		sent := disturb(t, packets, rate)
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range sent {
			if err := r.Add(p.at, p.data); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Finish(); err != nil {
			t.Fatal(err)
		}
		if c := r.Total(); c.Identical != uint64(len(sent)) || c.Rebuilt != c.Identical || c.Mismatched != 0 {
			t.Fatalf("%d packets sent, %+v: %s", len(sent), c, r.Worst)
		}
	})
}

// disturb returns what becomes of packets. Times do not go back.
func disturb(t *rapid.T, packets []capturedPacket, rate int) []capturedPacket {
	mishaps := []mishap{none, dropped, doubled, delayed, overtaken, damaged, cut}
	sent := bytesOf(packets)
	for i := 0; i < len(sent); i++ {
		if rate == 0 || rapid.IntRange(0, 99).Draw(t, "luck") >= rate || len(sent[i]) == 0 {
			continue
		}
		p := sent[i]
		to := min(len(sent)-1, i+rapid.IntRange(1, 40).Draw(t, "by"))
		switch rapid.SampledFrom(mishaps).Draw(t, "mishap") {
		case dropped:
			sent[i] = nil
		case doubled:
			sent = append(sent[:i+1], append([][]byte{p}, sent[i+1:]...)...)
		case delayed:
			copy(sent[i:to], sent[i+1:to+1])
			sent[to] = p
		case overtaken:
			for j := i; j < to && flowOf(sent[j+1]) != flowOf(p); j++ {
				sent[j], sent[j+1] = sent[j+1], sent[j]
			}
		case damaged:
			p = bytes.Clone(p)
			p[rapid.IntRange(0, len(p)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			sent[i] = p
		case cut:
			sent[i] = p[:rapid.IntRange(1, len(p)).Draw(t, "length")]
		}
	}
	var out []capturedPacket
	for i, p := range sent {
		if len(p) > 0 {
			out = append(out, capturedPacket{packets[min(i, len(packets)-1)].at, p})
		}
	}
	return out
}

func bytesOf(packets []capturedPacket) [][]byte {
	out := make([][]byte, len(packets))
	for i, p := range packets {
		out[i] = p.data
	}
	return out
}

// TestCarriersCarry holds what CarrierPayload means.
func TestCarriersCarry(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 1350: 1, 1351: 2, 2700: 2, 2701: 3} {
		if got := carriers(n); got != want {
			t.Errorf("a frame of %d bytes takes %d carrier packets, want %d", n, got, want)
		}
	}
}

// TestInterleaved holds that captures of different traffic replayed into one lane
// do not disturb one another.
func TestInterleaved(t *testing.T) {
	a := load(t, filepath.Join("..", "..", "testdata", "control-50.pcap.gz"))
	b := load(t, filepath.Join("..", "..", "testdata", "odd.pcap"))
	r, err := New(config(2 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for len(a)+len(b) > 0 {
		next := &a
		if len(a) == 0 || len(b) > 0 && b[0].at < a[0].at {
			next = &b
		}
		if err := r.Add((*next)[0].at, (*next)[0].data); err != nil {
			t.Fatal(err)
		}
		*next = (*next)[1:]
		n++
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	if c := r.Total(); c.Identical != uint64(n) || c.Mismatched != 0 {
		t.Errorf("%d packets sent, %+v: %s", n, c, r.Worst)
	}
}
