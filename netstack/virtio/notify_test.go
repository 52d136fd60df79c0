package virtio_test

import (
	"errors"
	"testing"

	"sheaf/netstack/virtio"
)

// An interrupt is due if the index that the driver waits for is among those published at
// once, also where the index wraps; without FeatureEventIndex, unless the flag is set.
func TestInterrupts(t *testing.T) {
	for _, test := range []struct {
		features  uint64
		quiet     bool // VIRTQ_AVAIL_F_NO_INTERRUPT
		start     uint16
		event     int // used_event, from start on
		n         int // chains published at once
		interrupt bool
	}{
		{0, false, 0, 0, 1, true},
		{0, true, 0, 0, 1, false},
		{0, true, 0, 0, 4, false},
		{0, false, 0, 1000, 1, true}, // used_event counts for nothing
		{virtio.FeatureEventIndex, true, 0, 0, 1, true},
		{virtio.FeatureEventIndex, false, 0, 1, 1, false},
		{virtio.FeatureEventIndex, false, 0, 1, 2, true},
		{virtio.FeatureEventIndex, false, 0, 3, 4, true},
		{virtio.FeatureEventIndex, false, 0, 4, 4, false},
		{virtio.FeatureEventIndex, false, 0, -1, 4, false},
		{virtio.FeatureEventIndex, false, 0xfffe, 0, 1, true},
		{virtio.FeatureEventIndex, false, 0xfffe, 1, 2, true},
		{virtio.FeatureEventIndex, false, 0xfffe, 2, 2, false},
		{virtio.FeatureEventIndex, false, 0xfffe, 3, 4, true},
		{virtio.FeatureEventIndex, false, 0xfffe, 4, 4, false},
	} {
		r, data := newRing(t, 4, test.features)
		r.SetDescriptor(0, chainOf(0, data, 1)[0])
		r.SetUsedIndex(test.start - 1)
		r.SetAvailIndex(test.start - 1)
		q := newQueue(t, r)
		take := func(n int) {
			for range n {
				offer(r, 0)
			}
			for range n {
				if _, ok, err := q.Take(nil, nil); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
		}
		take(1)
		q.Publish() // the first is an interrupt in any case
		r.SetNoInterrupt(test.quiet)
		r.SetUsedEvent(test.start + uint16(test.event))
		take(test.n)
		if got := q.Publish(); got != test.interrupt {
			t.Errorf("%+v: %v", test, got)
		}
		if got := r.UsedIndex(); got != test.start+uint16(test.n) {
			t.Errorf("%+v: used index %d", test, got)
		}
	}
}

// Arm says so if something came after the last look, and asks for a kick from there on.
func TestArm(t *testing.T) {
	for _, features := range []uint64{0, virtio.FeatureEventIndex} {
		r, data := newRing(t, 8, features)
		r.SetUsedIndex(0xffff)
		r.SetAvailIndex(0xffff)
		r.SetDescriptor(0, chainOf(0, data, 1)[0])
		q := newQueue(t, r)
		asked := func() bool {
			if features == 0 {
				return !r.NoNotify()
			}
			return r.AvailEvent() == r.AvailIndex()
		}
		take := func(want bool) {
			t.Helper()
			if _, ok, err := q.Take(nil, nil); ok != want || err != nil {
				t.Fatal(ok, err)
			}
		}
		q.Disarm()
		if features == 0 && asked() {
			t.Error("wants a kick though disarmed")
		}
		if !q.Arm() {
			t.Error("waits without having looked")
		}
		take(false)
		if q.Arm() || !asked() {
			t.Error("does not wait for the first")
		}
		offer(r, 0)
		if !q.Arm() {
			t.Error("waits though one came after the look")
		}
		take(true)
		if !q.Arm() {
			t.Error("waits without having looked again")
		}
		take(false)
		if q.Arm() || !asked() {
			t.Error("does not wait for the next")
		}
		if q.Base() != 0 {
			t.Error("at", q.Base())
		}
	}
}

// Arm and Disarm show nothing that is not published.
func TestArmDoesNotPublish(t *testing.T) {
	for _, features := range []uint64{0, virtio.FeatureEventIndex} {
		r, data := newRing(t, 4, features)
		q := newQueue(t, r)
		give(r, chainOf(0, data, 1))
		if _, ok, err := q.Take(nil, nil); !ok || err != nil {
			t.Fatal(ok, err)
		}
		q.Disarm()
		q.Arm()
		if r.UsedIndex() != 0 {
			t.Error("published")
		}
	}
}

// A device that needs more buffers than there are waits for more, not for those.
func TestArmAfterTooFew(t *testing.T) {
	r, data := newRing(t, 4, virtio.FeatureMergeable)
	q := newQueue(t, r)
	give(r, chainOf(write, data, 20))
	frame := make([]byte, 20)
	var header [virtio.NetHeaderLen]byte
	if ok, err := q.GiveMerged(&header, frame); ok || err != nil {
		t.Fatal(ok, err)
	}
	if q.Arm() {
		t.Error("does not wait for a second buffer")
	}
	offer(r, 0)
	if !q.Arm() {
		t.Error("waits though a second is there")
	}
	if ok, err := q.GiveMerged(&header, frame); !ok || err != nil {
		t.Fatal(ok, err)
	}
}

// What a device before this one told the driver is told anew: here, that it need not kick.
func TestArmAfterRestart(t *testing.T) {
	r, _ := newRing(t, 4, 0)
	newQueue(t, r).Disarm()
	q := newQueue(t, r)
	if _, ok, err := q.Take(nil, nil); ok || err != nil {
		t.Fatal(ok, err)
	}
	if q.Arm() || r.NoNotify() {
		t.Error("the driver may not kick")
	}
}

// The fields after a ring's end, which share a word with its last field, are left alone.
func TestArmKeepsItsNeighbour(t *testing.T) {
	r, _ := newRing(t, 4, virtio.FeatureEventIndex)
	behind := r.Memory.At(r.Config.Used+6+8*4, 2)
	copy(behind, "hi")
	r.SetUsedIndex(7)
	r.SetAvailIndex(7)
	q := newQueue(t, r)
	if _, ok, err := q.Take(nil, nil); ok || err != nil {
		t.Fatal(ok, err)
	}
	q.Arm()
	if r.AvailEvent() != 7 || string(behind) != "hi" {
		t.Errorf("event %d, then %q", r.AvailEvent(), behind)
	}
}

// Neither side sleeps while the other has something for it that it was not told of: both
// run at once, wait whenever they may, and notify only when they are to.
func TestNoWakeupIsLost(t *testing.T) {
	const messages = 20000
	for _, size := range []int{1, 2, 8, 256} {
		for _, features := range []uint64{0, virtio.FeatureEventIndex} {
			d, q := newPair(t, size, 16, features)
			w := &wakeups{kick: make(chan struct{}, 1), interrupt: make(chan struct{}, 1), failed: make(chan struct{})}
			done := make(chan error, 1)
			go func() { done <- w.device(q, messages) }()
			err := w.driver(d, messages)
			if err := errors.Join(err, <-done); err != nil {
				t.Fatalf("size %d, features %#x: %v", size, features, err)
			}
		}
	}
}
