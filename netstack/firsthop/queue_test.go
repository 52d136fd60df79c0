package firsthop

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

var testHead = headOf(macA, etherIPv4)

// One source gets half of the queue, n sources one part in n+1 each of what there is, to the
// frame.
func TestQueueBounds(t *testing.T) {
	q := newQueue()
	fill := func(payload []byte, from *share) (n int) {
		for q.put(&testHead, payload, from) {
			n++
		}
		return n
	}
	var first, second, third share
	short, full := make([]byte, 60), make([]byte, smallFrame-headLen)
	if n := fill(short, &first); n != queueFrames/2 {
		t.Errorf("one source: %d frames, want %d", n, queueFrames/2)
	}
	if n := fill(full, &second); n != queueFrames/4 {
		t.Errorf("then another: %d frames, want %d", n, queueFrames/4)
	}
	if n := fill(make([]byte, smallFrame-headLen+1), &third); n != (queueMemory/4/(smallFrame+1)+1)/2 {
		t.Errorf("then longer ones: %d frames, want %d", n, (queueMemory/4/(smallFrame+1)+1)/2)
	}
	free := q.free
	taken := q.take(make([]*frame, 0, 10))
	if q.free != free {
		t.Error("frames that are on their way cost nothing")
	}
	if q.giveBack(taken); q.free != free+10*smallFrame || first.held != (queueFrames/2-10)*smallFrame {
		t.Errorf("%d bytes free, %d held", q.free, first.held)
	}
	q.close()
	if q.put(&testHead, short, &share{}) || len(q.take(make([]*frame, 0, 1))) != 0 || !q.isClosed() {
		t.Error("not closed")
	}
}

// While nothing is taken, each new source finds half of what the last one left, so that
// eleven find room after one another. No number of them goes past the memory.
func TestQueueRoomForEachSource(t *testing.T) {
	q := newQueue()
	for i := range maxPorts {
		from := &share{}
		n := 0
		for q.put(&testHead, nil, from) {
			n++
		}
		if i < 11 && n != queueFrames>>(i+1) { // 2^12 frames halve so often
			t.Fatalf("source %d finds room for %d frames", i, n)
		}
	}
	if q.free < 0 || q.n > queueFrames {
		t.Errorf("%d bytes free, %d frames", q.free, q.n)
	}
}

// A queue hands out what was put into it, in order, and all memory comes back.
func TestQueueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		sources := make([]share, 4)
		var want [][]byte
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") || len(want) == 0 {
				payload := bytes.Repeat([]byte{byte(len(want))}, rapid.SampledFrom([]int{0, 60, smallFrame, 60000}).Draw(t, "length"))
				if q.put(&testHead, payload, &sources[rapid.IntRange(0, 3).Draw(t, "source")]) {
					want = append(want, payload)
				}
				continue
			}
			taken := q.take(make([]*frame, 0, rapid.IntRange(1, 5).Draw(t, "batch")))
			for _, f := range taken {
				if !bytes.Equal(f.buf[headLen:], want[0]) {
					t.Fatal("another frame")
				}
				want = want[1:]
			}
			q.giveBack(taken)
		}
		for len(want) > 0 {
			taken := q.take(make([]*frame, 0, 64))
			want = want[len(taken):]
			q.giveBack(taken)
		}
		if q.free != queueMemory || q.n != 0 || sources[0].held+sources[1].held+sources[2].held+sources[3].held != 0 {
			t.Fatalf("%d bytes of %d are back", q.free, queueMemory)
		}
	})
}
