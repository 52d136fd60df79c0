package linktest

import (
	"testing"

	"sheaf/netstack/link"
)

// frameSize is that of a short message in TCP over IPv4, as most of a gateway's are.
const frameSize = 160

// testAllocations holds that a frame each way costs no allocation, once all is warm.
func testAllocations(t *testing.T, k Kind) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const frames = 8 // fewer than any socket or ring holds
	path := socketPath(t)
	l, err := k.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, err := k.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Kill()
	bufs, sizes := buffers(l.BatchSize())
	buf := make([]byte, link.MaxFrame)
	var out [][]byte
	for i := range frames {
		out = append(out, numbered(i, frameSize))
	}
	round := func() {
		for _, f := range out {
			err = firstOf(err, g.Send(f))
		}
		for got := 0; got < frames; {
			n, e := l.Read(bufs, sizes)
			err = firstOf(err, e)
			got += n
		}
		err = firstOf(err, l.Write(out))
		for range frames {
			_, e := g.Receive(buf)
			err = firstOf(err, e)
		}
	}
	go func() { _ = g.Send(out[0]) }() // waits for Read, where the gateway comes to the guest
	within(t, "Read", func() { _, err = l.Read(bufs, sizes) })
	for range 100 {
		round()
	}
	n := testing.AllocsPerRun(1000, round)
	if err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		t.Errorf("%g allocations for %d frames each way", n, frames)
	}
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// BenchmarkUp measures frames from the guest, a hypervisor that writes one at a time.
func BenchmarkUp(b *testing.B, k Kind) {
	path := socketPath(b)
	l, err := k.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	g, err := k.Start(path)
	if err != nil {
		b.Fatal(err)
	}
	defer g.Kill()
	frame := numbered(1, frameSize)
	go func() {
		for g.Send(frame) == nil {
		}
	}()
	bufs, sizes := buffers(l.BatchSize())
	b.ReportAllocs()
	reads := 0
	for got := 0; got < b.N; reads++ {
		n, err := l.Read(bufs, sizes)
		if err != nil {
			b.Fatal(err)
		}
		got += n
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
	b.ReportMetric(float64(b.N)/float64(reads), "frames/Read")
}

// BenchmarkDown measures frames to the guest, in batches.
func BenchmarkDown(b *testing.B, k Kind) {
	r := newRig(b, k)
	p := r.guest()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, link.MaxFrame)
		for range b.N {
			if _, err := p.Receive(buf); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	var frames [][]byte
	for i := range r.link.BatchSize() {
		frames = append(frames, numbered(i, frameSize))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; left -= len(frames) {
		if err := r.link.Write(frames[:min(left, len(frames))]); err != nil {
			b.Fatal(err)
		}
	}
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}
