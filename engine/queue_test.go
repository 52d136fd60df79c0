package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func contents(p []packet) string {
	var out []string
	for i := range p {
		out = append(out, string(p[i].data))
	}
	return strings.Join(out, " ")
}

func TestQueueDropsTheOldest(t *testing.T) {
	q := newQueue(10, time.Second)
	q.put(0, []byte("aaaa"), []byte("bbbb"))
	q.put(0, []byte("cccc"))
	if got := contents(q.take(nil)); got != "bbbb cccc" {
		t.Errorf("past the limit of bytes: %q", got)
	}
	q.put(0, []byte("old"))
	q.put(1100*time.Millisecond, []byte("new"))
	if got := contents(q.take(nil)); got != "new" {
		t.Errorf("past the limit of time: %q", got)
	}
	q.put(0, make([]byte, 100))
	if got := len(q.take(nil)); got != 1 {
		t.Error("the newest does not stay")
	}
	if packets, bytes := q.drops(); packets != 2 || bytes != 7 {
		t.Errorf("%d packets, %d bytes dropped", packets, bytes)
	}
	q.put(0, []byte("x"))
	q.clear()
	if got := len(q.take(nil)); got != 0 {
		t.Error("something stays after clear")
	}
}

// What comes out went in, in order, and the buffers' owners never meet.
func TestQueueKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue(1<<20, time.Hour)
		var batch []packet
		in, out := 0, 0
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "put") {
				q.put(0, fmt.Appendf(nil, "%d", in))
				in++
			}
			if rapid.Bool().Draw(t, "take") {
				batch = q.take(batch)
				for _, p := range batch {
					if string(p.data) != fmt.Sprint(out) {
						t.Fatalf("%s, expected %d", p.data, out)
					}
					out++
				}
				q.recycle(batch)
			}
		}
	})
}

func TestQueueDoesNotAllocate(t *testing.T) {
	q := newQueue(1<<20, time.Hour)
	p := make([]byte, 200)
	packets := [][]byte{p, p, p}
	var batch []packet
	if n := testing.AllocsPerRun(100, func() {
		q.put(0, packets...)
		batch = q.take(batch)
		q.recycle(batch)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPut is what a packet takes on its way to the writer, one after the other
// and a read's together, while a writer takes.
func BenchmarkPut(b *testing.B) {
	packets := make([][]byte, 64)
	for i := range packets {
		packets[i] = make([]byte, 120)
	}
	for _, size := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(size, " together"), func(b *testing.B) {
			q := newQueue(1<<20, time.Hour)
			ctx, stop := context.WithCancel(b.Context())
			var writer sync.WaitGroup
			writer.Go(func() {
				var batch []packet
				for {
					select {
					case <-ctx.Done():
						return
					case <-q.ready:
					}
					batch = q.take(batch)
					q.recycle(batch)
				}
			})
			n := 0
			for b.Loop() {
				for at := 0; at < len(packets); at += size {
					q.put(0, packets[at:at+size]...)
				}
				n += len(packets)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/packet")
			stop()
			writer.Wait()
		})
	}
}
