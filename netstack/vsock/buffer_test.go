package vsock

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A buffer is a queue, also where it wraps, and holds no memory while it is empty.
func TestBuffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := buffer{size: rapid.SampledFrom([]int{window, lesserWindow}).Draw(t, "size")}
		var model bytes.Buffer
		next := byte(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			// In thirds, so that what is drawn passes the end of the ring soon.
			third := rapid.IntRange(0, 3)
			in := make([]byte, min(third.Draw(t, "in")*q.size/3, q.size-q.n))
			for i := range in {
				in[i] = next
				next = (next + 1) % 251 // no divisor of the sizes
			}
			q.write(in)
			model.Write(in)
			out := make([]byte, third.Draw(t, "out")*q.size/3)
			want := model.Next(len(out))
			if n := q.read(out); !bytes.Equal(out[:n], want) || q.n != model.Len() {
				t.Fatalf("%d bytes come out, %d are left; want %d and %d", n, q.n, len(want), model.Len())
			}
			if q.n == 0 && q.ring != nil {
				t.Fatal("memory is held for nothing")
			}
		}
		q.release()
		if q.ring != nil || q.n != 0 || q.size == 0 {
			t.Fatalf("released: %+v", q)
		}
	})
}
