package virtio_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"sheaf/netstack/virtio"
)

// Take splits a chain between header and payload, however the driver has cut it, says how
// long a chain is of which only a part fits, and leaves the rest of a buffer as it was.
func TestTakeSplits(t *testing.T) {
	message := []byte("headerpayload")
	for _, parts := range [][]int{{13}, {6, 7}, {1, 12}, {5, 2, 6}, {12, 1}, {3, 4, 5, 1}} {
		for _, test := range []struct {
			header, payload  int
			wantHeader, want string
		}{
			{6, 7, "header", "payload"},
			{6, 8, "header", "payload."},
			{6, 6, "header", "payloa"},
			{6, 0, "header", ""},
			{0, 13, "", "headerpayload"},
			{0, 0, "", ""},
			{13, 1, "headerpayload", "."},
			{14, 2, "headerpayload.", ".."},
			{5, 3, "heade", "rpa"},
		} {
			r, data := newRing(t, 4, 0)
			r.Memory.Write(data, message)
			give(r, chainOf(0, data, parts...))
			header, payload := bytes.Repeat([]byte("."), test.header), bytes.Repeat([]byte("."), test.payload)
			n, ok, err := newQueue(t, r).Take(header, payload)
			if n != len(message) || !ok || err != nil || string(header) != test.wantHeader || string(payload) != test.want {
				t.Errorf("%v, %d and %d: %d bytes %q and %q, %v", parts, test.header, test.payload, n, header, payload, err)
			}
		}
	}
}

// What does not fit must be in the guest's memory nevertheless.
func TestTakeChecksWhatItLeavesOut(t *testing.T) {
	for n, fine := range map[int]bool{4 * page: true, 4*page + 1: false} {
		r, _ := newRing(t, 4, 0)
		give(r, chainOf(0, r.Memory.Regions()[1].Guest, n))
		if got, ok, err := newQueue(t, r).Take(nil, make([]byte, 10)); ok != fine || (err == nil) != fine {
			t.Error(got, ok, err)
		}
	}
}

// Give fills a chain from its begin, however it is cut, tells the driver how much it wrote,
// and leaves the rest alone. A chain that is too small stays for a shorter message.
func TestGiveFits(t *testing.T) {
	message := []byte("headerpayload")
	for _, parts := range [][]int{{13}, {6, 7}, {1, 12}, {5, 2, 7}, {20}, {3, 4, 5, 2}} {
		r, data := newRing(t, 4, 0)
		q := newQueue(t, r)
		if ok, err := q.Give(message[:6], message[6:]); ok || err != nil {
			t.Error("no chain:", ok, err)
		}
		room := 0
		for _, n := range parts {
			room += n
		}
		around := bytes.Repeat([]byte("."), page)
		r.Memory.Write(data, around)
		give(r, chainOf(write, data+10, parts...))
		if n, ok, err := q.Room(); n != room || !ok || err != nil {
			t.Error("room", n, ok, err)
		}
		long := bytes.Repeat([]byte("x"), room+1)
		if ok, err := q.Give(long[:6], long[6:]); ok || err != virtio.ErrRoom {
			t.Error("too long:", ok, err)
		}
		if ok, err := q.Give(message[:6], message[6:]); !ok || err != nil {
			t.Error(parts, ok, err)
		}
		q.Publish()
		if id, n := r.Used(0); id != 0 || n != uint32(len(message)) {
			t.Errorf("used %d, %d bytes", id, n)
		}
		copy(around[10:], message)
		if got := r.Memory.AppendRead(nil, data, page); !bytes.Equal(got, around) {
			t.Errorf("%v: %q", parts, got[:40])
		}
	}
}

// An empty message takes a chain as any other.
func TestGiveNothing(t *testing.T) {
	r, data := newRing(t, 4, 0)
	q := newQueue(t, r)
	give(r, chainOf(write, data, 5))
	if ok, err := q.Give(nil, nil); !ok || err != nil {
		t.Error(ok, err)
	}
	if q.Base() != 1 {
		t.Error("no chain taken")
	}
}

// mergeTest is a frame of so many bytes for buffers of these sizes.
type mergeTest struct {
	buffers []int
	frame   int
	used    []int // what is written into each; nil: does not fit
	want    error
}

// A frame takes as many buffers as it needs, all but the last to the full, and none if
// there are too few. With the ring full of them it never fits.
func TestGiveMerged(t *testing.T) {
	for _, test := range []mergeTest{
		{[]int{100}, 88, []int{100}, nil},
		{[]int{100}, 89, nil, nil},
		{[]int{100, 50}, 88, []int{100}, nil},
		{[]int{100, 50}, 89, []int{100, 1}, nil},
		{[]int{100, 50, 7}, 138, []int{100, 50}, nil},
		{[]int{100, 50, 7}, 139, []int{100, 50, 1}, nil},
		{[]int{12, 1, 1, 1}, 3, []int{12, 1, 1, 1}, nil},
		{[]int{12, 1, 1, 1}, 4, nil, virtio.ErrRoom},
		{[]int{12, 1, 1}, 4, nil, nil},
		{[]int{1, 1, 9, 20}, 5, []int{1, 1, 9, 6}, nil}, // a header in pieces
		{[]int{12}, 0, []int{12}, nil},
		{[]int{11, 1}, 0, []int{11, 1}, nil},
		{nil, 10, nil, nil},
	} {
		r, data := newRing(t, 4, virtio.FeatureMergeable)
		q := newQueue(t, r)
		at := data
		for i, n := range test.buffers {
			r.SetDescriptor(i, desc(at, uint32(n), write, 0))
			at += uint64(n)
			offer(r, uint16(i))
		}
		frame := bytes.Repeat([]byte("frame."), 30)[:test.frame]
		header := [virtio.NetHeaderLen]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
		before := header
		ok, err := q.GiveMerged(&header, frame)
		if ok != (test.used != nil) || err != test.want || header != before {
			t.Errorf("%+v: %v, %v", test, ok, err)
		}
		q.Publish()
		if int(r.UsedIndex()) != len(test.used) {
			t.Errorf("%+v: %d used", test, r.UsedIndex())
		}
		for i, want := range test.used {
			if id, n := r.Used(uint16(i)); id != uint32(i) || n != uint32(want) {
				t.Errorf("%+v: used %d, %d bytes", test, id, n)
			}
		}
		if ok {
			binary.LittleEndian.PutUint16(before[10:], uint16(len(test.used)))
			want := append(before[:], frame...)
			if got := r.Memory.AppendRead(nil, data, len(want)); !bytes.Equal(got, want) {
				t.Errorf("%+v: % x", test, got)
			}
		}
	}
}

// A ring that is full of buffers, some of which are finished and not shown yet, may get
// more of them: no reason to drop a frame.
func TestGiveMergedWaitsForWhatIsNotPublished(t *testing.T) {
	r, data := newRing(t, 4, virtio.FeatureMergeable)
	q := newQueue(t, r)
	for i := range 4 {
		r.SetDescriptor(i, desc(data, 20, write, 0))
		offer(r, uint16(i))
	}
	var header [virtio.NetHeaderLen]byte
	if ok, err := q.GiveMerged(&header, nil); !ok || err != nil {
		t.Fatal(ok, err)
	}
	frame := make([]byte, 60)
	if ok, err := q.GiveMerged(&header, frame); ok || err != nil {
		t.Error(ok, err)
	}
	q.Publish()
	offer(r, 0)
	if ok, err := q.GiveMerged(&header, frame); !ok || err != nil {
		t.Error(ok, err)
	}
}

// A frame may take all buffers of the greatest ring, of one byte each.
func TestGiveMergedSmallest(t *testing.T) {
	r, data := newRing(t, virtio.MaxSize, virtio.FeatureMergeable)
	q := newQueue(t, r)
	r.SetDescriptor(0, desc(data, 1, write, 0))
	for range virtio.MaxSize {
		offer(r, 0)
	}
	var header [virtio.NetHeaderLen]byte
	frame := make([]byte, virtio.MaxSize-len(header))
	if ok, err := q.GiveMerged(&header, append(frame, 0)); ok || err != virtio.ErrRoom {
		t.Error(ok, err)
	}
	if ok, err := q.GiveMerged(&header, frame); !ok || err != nil {
		t.Error(ok, err)
	}
	if q.Base() != virtio.MaxSize {
		t.Error(q.Base())
	}
}

// A chain that lost room between the look and the copy is the guest's fault, and nothing is
// written outside of it. Here, of two buffers the second is in the memory of the first's
// descriptor: the copy itself makes it shorter.
func TestGiveMergedIntoItsOwnDescriptors(t *testing.T) {
	r, data := newRing(t, 4, virtio.FeatureMergeable)
	q := newQueue(t, r)
	r.SetDescriptor(0, desc(r.Config.Desc+16+8, 20, write, 0)) // over the length of descriptor 1
	r.SetDescriptor(1, desc(data, 20, write, 0))
	offer(r, 0, 1)
	frame := make([]byte, 28)
	if ok, err := q.GiveMerged(new([virtio.NetHeaderLen]byte), frame); ok || err == nil || err == virtio.ErrRoom {
		t.Error(ok, err)
	}
	if _, _, err := q.Room(); err == nil {
		t.Error("goes on")
	}
}
