package codec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A queue gives back what came first, whatever was pushed and popped before.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int]
		var model []int
		for i := range rapid.IntRange(0, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				q.push(i, i+1)
				model = append(model, i, i+1)
			} else if n := rapid.IntRange(0, len(model)).Draw(t, "n"); n > 0 {
				if got := q.first(n); !slices.Equal(got, model[:n]) {
					t.Fatalf("%v, expected %v", got, model[:n])
				}
				q.pop(n)
				model = model[n:]
			}
			if q.len() != len(model) {
				t.Fatalf("length %d, expected %d", q.len(), len(model))
			}
		}
	})
}

// A queue that is as long as it was keeps its array: what was popped makes room.
func TestQueueKeepsItsArray(t *testing.T) {
	var q queue[int]
	q.push(make([]int, 64)...)
	for i := range 10_000 {
		q.pop(1)
		q.push(i)
	}
	if q.len() != 64 || cap(q.all) > 256 {
		t.Errorf("%d elements in an array of %d", q.len(), cap(q.all))
	}
	q.pop(64)
	if q.head != 0 || len(q.all) != 0 {
		t.Errorf("an empty queue begins at %d of %d", q.head, len(q.all))
	}
}

// What was popped is not held any more, also once the rest has moved to the front.
func TestQueueLetsGo(t *testing.T) {
	var q queue[*int]
	one := new(int)
	for range 8 {
		q.push(one, one, one)
		q.pop(2)
		all := q.all[:cap(q.all)]
		held := 0
		for _, p := range all {
			if p != nil {
				held++
			}
		}
		if held != q.len() {
			t.Fatalf("%d pointers are held for %d elements", held, q.len())
		}
	}
}
