package virtio_test

import (
	"errors"
	"testing"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

const (
	next     = virtiotest.Next
	write    = virtiotest.Write
	indirect = virtiotest.Indirect
)

const page = 4096

// newRing returns a ring in the first of two regions that adjoin, and the address of memory
// of a page's length behind it.
func newRing(t testing.TB, size int, features uint64) (r virtiotest.Ring, data uint64) {
	t.Helper()
	ring := (26*size/page + 1) * page // 16 bytes of table, 2 and 8 of rings for each, and a few more
	r, err := virtiotest.NewRing(newMemory(t, ring+2*page, 4*page), size, features)
	if err != nil {
		t.Fatal(err)
	}
	data, err = r.Memory.Alloc(page, page)
	if err != nil {
		t.Fatal(err)
	}
	return r, data
}

// chainOf returns a chain of one buffer of n bytes, cut in so many equal parts.
func chainOf(flags uint16, addr uint64, parts ...int) (c []virtiotest.Descriptor) {
	for i, n := range parts {
		d := virtiotest.Descriptor{Addr: addr, Len: uint32(n), Flags: flags}
		if i < len(parts)-1 {
			d.Flags |= next
			d.Next = uint16(i + 1)
		}
		c = append(c, d)
		addr += uint64(n)
	}
	return c
}

// give writes the chain to the begin of the table and makes one more buffer available.
func give(r virtiotest.Ring, chain []virtiotest.Descriptor) {
	for i, d := range chain {
		r.SetDescriptor(i, d)
	}
	offer(r, 0)
}

// offer makes these heads available.
func offer(r virtiotest.Ring, heads ...uint16) {
	index := r.AvailIndex()
	for i, head := range heads {
		r.SetAvail(index+uint16(i), head)
	}
	r.SetAvailIndex(index + uint16(len(heads)))
}

// Each rule of a ring's place, at its bound and past it.
func TestRingPlaces(t *testing.T) {
	whole := uint64(virtiotest.Origin + 16*page)
	for _, test := range []struct {
		name   string
		change func(c *virtio.QueueConfig)
		want   error
	}{
		{"as it should be", func(c *virtio.QueueConfig) {}, nil},
		{"size 0", func(c *virtio.QueueConfig) { c.Size = 0 }, virtio.ErrRing},
		{"size -1", func(c *virtio.QueueConfig) { c.Size = -1 }, virtio.ErrRing},
		{"size 1", func(c *virtio.QueueConfig) { c.Size = 1 }, nil},
		{"size 3", func(c *virtio.QueueConfig) { c.Size = 3 }, virtio.ErrRing},
		{"size 65536", func(c *virtio.QueueConfig) { c.Size = 65536 }, virtio.ErrRing},
		{"a table aligned to 8", func(c *virtio.QueueConfig) { c.Desc += 8 }, virtio.ErrRing},
		{"an available ring aligned to 2", func(c *virtio.QueueConfig) { c.Avail += 2 }, nil},
		{"an available ring aligned to 1", func(c *virtio.QueueConfig) { c.Avail++ }, virtio.ErrRing},
		{"a used ring aligned to 2", func(c *virtio.QueueConfig) { c.Used += 2 }, virtio.ErrRing},
		{"a table up to the end", func(c *virtio.QueueConfig) { c.Desc = whole - 16*4 }, nil},
		{"a table past the end", func(c *virtio.QueueConfig) { c.Desc = whole - 16*3 }, virtio.ErrAddress},
		{"an available ring up to the end", func(c *virtio.QueueConfig) { c.Avail = whole - (6 + 2*4) }, nil},
		{"an available ring past the end", func(c *virtio.QueueConfig) { c.Avail = whole - (4 + 2*4) }, virtio.ErrAddress},
		{"a used ring up to the end", func(c *virtio.QueueConfig) { c.Used = whole - (8 + 8*4) }, nil},
		{"a used ring past the end", func(c *virtio.QueueConfig) { c.Used = whole - (4 + 8*4) }, virtio.ErrAddress},
		{"a table across regions", func(c *virtio.QueueConfig) { c.Desc = virtiotest.Origin + 8*page - 16 }, virtio.ErrAddress},
		{"an available ring nowhere", func(c *virtio.QueueConfig) { c.Avail = 0 }, virtio.ErrAddress},
		{"packed", func(c *virtio.QueueConfig) { c.Features = virtio.FeaturePacked }, virtio.ErrRing},
		{"behind an IOMMU", func(c *virtio.QueueConfig) { c.Features = virtio.FeatureAccess }, virtio.ErrRing},
		{"features of others", func(c *virtio.QueueConfig) {
			c.Features = ^uint64(virtio.FeaturePacked | virtio.FeatureAccess)
		}, nil},
	} {
		r, err := virtiotest.NewRing(newMemory(t, 8*page, 8*page), 4, 0)
		if err != nil {
			t.Fatal(err)
		}
		test.change(&r.Config)
		m, err := r.Memory.Device()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := virtio.NewQueue(m, r.Config); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// The greatest ring works, at each of its places.
func TestGreatestRing(t *testing.T) {
	r, data := newRing(t, virtio.MaxSize, 0)
	q := newQueue(t, r)
	last := uint16(virtio.MaxSize - 1)
	r.SetDescriptor(int(last), virtiotest.Descriptor{Addr: data, Len: 7})
	for range virtio.MaxSize {
		offer(r, last)
	}
	for i := range virtio.MaxSize {
		if n, ok, err := q.Take(nil, nil); n != 7 || !ok || err != nil {
			t.Fatal(i, n, ok, err)
		}
	}
	q.Publish()
	if _, ok, err := q.Take(nil, nil); ok || err != nil {
		t.Error("more than there was:", ok, err)
	}
	if r.UsedIndex() != virtio.MaxSize {
		t.Error("used index", r.UsedIndex())
	}
	if id, n := r.Used(last); id != uint32(last) || n != 0 {
		t.Errorf("used element %d, %d", id, n)
	}
}

// The index of the available ring is at most the ring's size ahead of what the driver has
// seen to be finished, and does not go back.
func TestAvailableIndexIsBounded(t *testing.T) {
	const start = 0xfffd // so that the index wraps
	for _, test := range []struct {
		name                string
		take, publish, then int // chains taken of 4; of them published; the index after that, from start on
		want                error
	}{
		{"full", 0, 0, 4, nil},
		{"one more", 0, 0, 5, virtio.ErrIndex},
		{"one back", 0, 0, -1, virtio.ErrIndex},
		{"halfway round", 0, 0, 32768, virtio.ErrIndex},
		{"as it was", 4, 4, 4, nil},
		{"full again", 4, 4, 8, nil},
		{"full again and one more", 4, 4, 9, virtio.ErrIndex},
		{"more than is published", 4, 3, 8, virtio.ErrIndex},
		{"as much as is published", 4, 3, 7, nil},
		{"back, but not before what is published", 4, 2, 3, virtio.ErrIndex},
	} {
		r, data := newRing(t, 4, 0)
		r.SetUsedIndex(start)
		q := newQueue(t, r)
		r.SetDescriptor(0, chainOf(0, data, 1)[0])
		r.SetAvailIndex(start)
		if test.take > 0 {
			offer(r, 0, 0, 0, 0)
		}
		for i := range test.take {
			if _, ok, err := q.Take(nil, nil); !ok || err != nil {
				t.Fatal(test.name, ok, err)
			}
			if i < test.publish {
				q.Publish()
			}
		}
		r.SetAvailIndex(uint16(start + test.then))
		_, ok, err := q.Take(nil, nil)
		if !errors.Is(err, test.want) || err == nil && ok != (test.then > test.take) {
			t.Errorf("%s: %v, %v", test.name, ok, err)
		}
	}
}

// A device that is there again begins at the used index, finishes what the driver has not
// got back, and asks for an interrupt, though the driver wants none for long.
func TestNewQueueGoesOnAtTheUsedIndex(t *testing.T) {
	for _, features := range []uint64{0, virtio.FeatureEventIndex} {
		r, data := newRing(t, 4, features)
		r.SetUsedIndex(65535)
		r.SetAvailIndex(65535)
		for i := range 4 {
			r.SetDescriptor(i, chainOf(0, data, i+1)[0])
		}
		offer(r, 2, 0, 3)
		r.SetNoInterrupt(true)
		r.SetUsedEvent(1000)

		q := newQueue(t, r)
		if q.Base() != 65535 {
			t.Error("begins at", q.Base())
		}
		for _, want := range []int{3, 1} {
			if n, ok, err := q.Take(nil, nil); n != want || !ok || err != nil {
				t.Fatal(n, ok, err)
			}
		}
		if !q.Publish() {
			t.Error("no interrupt for the first")
		}
		// This one goes without having shown that it is through with the third.
		if _, ok, err := q.Take(nil, nil); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if q.Base() != 2 || r.UsedIndex() != 1 {
			t.Error("at", q.Base(), "and", r.UsedIndex())
		}

		q = newQueue(t, r)
		if n, ok, err := q.Take(nil, nil); n != 4 || !ok || err != nil {
			t.Fatal(n, ok, err)
		}
		if !q.Publish() {
			t.Error("no interrupt for the first after the restart")
		}
		for at, want := range map[uint16]uint32{65535: 2, 0: 0, 1: 3} {
			if id, _ := r.Used(at); id != want {
				t.Errorf("used element %d is of %d instead of %d", at, id, want)
			}
		}
	}
}

// Nothing is shown to the driver before Publish, and then all of it.
func TestPublishShowsABatch(t *testing.T) {
	r, data := newRing(t, 4, 0)
	q := newQueue(t, r)
	r.SetDescriptor(0, chainOf(0, data, 1)[0])
	offer(r, 0, 0, 0)
	for range 3 {
		if _, ok, err := q.Take(nil, nil); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if r.UsedIndex() != 0 {
			t.Fatal("shown before Publish")
		}
	}
	if !q.Publish() || r.UsedIndex() != 3 {
		t.Error("index", r.UsedIndex())
	}
	if q.Publish() {
		t.Error("an interrupt for nothing")
	}
}

// After a fault each call says so again and changes nothing.
func TestFaultStays(t *testing.T) {
	r, data := newRing(t, 4, 0)
	q := newQueue(t, r)
	r.SetDescriptor(0, chainOf(0, data, 1)[0])
	offer(r, 9)
	_, _, fault := q.Take(nil, nil)
	if !errors.Is(fault, virtio.ErrDescriptor) {
		t.Fatal(fault)
	}
	r.SetAvail(0, 0) // the guest mends it
	_, ok1, err1 := q.Take(nil, nil)
	_, ok2, err2 := q.Room()
	ok3, err3 := q.Give(nil, nil)
	ok4, err4 := q.GiveMerged(new([virtio.NetHeaderLen]byte), nil)
	if ok1 || ok2 || ok3 || ok4 || err1 != fault || err2 != fault || err3 != fault || err4 != fault {
		t.Error(ok1, ok2, ok3, ok4, err1, err2, err3, err4)
	}
	if !q.Arm() {
		t.Error("waits for a guest at fault")
	}
	if q.Publish() || r.UsedIndex() != 0 {
		t.Error("published", r.UsedIndex())
	}
}
