package virtiotest

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"sheaf/netstack/virtio"
)

func newTestDriver(t *testing.T, features uint64) *Driver {
	t.Helper()
	m, err := NewMemory(os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	d, err := NewDriver(m, 4, 32, features)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// finish is what a device does, right or wrong: it puts elements into the used ring.
func finish(d *Driver, elements ...[2]uint32) {
	index := d.UsedIndex()
	for _, e := range elements {
		b := d.Ring.used()[elemsAt+UsedElem*(int(index)%d.Config.Size):]
		binary.LittleEndian.PutUint32(b, e[0])
		binary.LittleEndian.PutUint32(b[4:], e[1])
		index++
	}
	d.SetUsedIndex(index)
}

// A driver tells each way in which a device can break the ring.
func TestDriverTellsOfADevice(t *testing.T) {
	for _, test := range []struct {
		name     string
		elements [][2]uint32 // of the two buffers 0 and 1, of 20 bytes each
		want     string
	}{
		{"as it should be", [][2]uint32{{0, 20}, {1, 3}}, ""},
		{"more than there are", [][2]uint32{{0, 0}, {1, 0}, {2, 0}}, "3 buffers finished of 2"},
		{"out of order", [][2]uint32{{1, 0}}, "buffer 1 finished instead of 0"},
		{"one of others", [][2]uint32{{0, 0}, {7, 0}}, "buffer 7 finished instead of 1"},
		{"too long", [][2]uint32{{0, 21}}, "1 more than the buffer has"},
	} {
		d := newTestDriver(t, 0)
		for range 2 {
			if !d.Post(20) {
				t.Fatal("no room")
			}
		}
		if d.Post(20, 1, 1) {
			t.Error("posted more than there is room for")
		}
		d.Kick()
		finish(d, test.elements...)
		var err error
		for ok := true; ok && err == nil; {
			_, ok, err = d.Reap()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		if err == nil && d.Free() != 4 {
			t.Errorf("%s: %d descriptors are free", test.name, d.Free())
		}
	}
}

// It does not take a frame whose header is wrong, or a part of one.
func TestDriverTellsOfFrames(t *testing.T) {
	for _, test := range []struct {
		name     string
		features uint64
		buffers  uint16
		elements [][2]uint32
		want     string
	}{
		{"one buffer", 0, 1, [][2]uint32{{0, 14}}, ""},
		{"two buffers", virtio.FeatureMergeable, 2, [][2]uint32{{0, 20}, {1, 3}}, ""},
		{"two buffers that are not merged", 0, 2, [][2]uint32{{0, 20}, {1, 3}}, "a frame of 2 buffers"},
		{"no buffer", virtio.FeatureMergeable, 0, [][2]uint32{{0, 20}}, "a frame of 0 buffers"},
		{"half a header", 0, 1, [][2]uint32{{0, 11}}, "a header of 11 bytes"},
		{"half a frame", virtio.FeatureMergeable, 2, [][2]uint32{{0, 20}}, "1 buffers of a frame are missing"},
	} {
		d := newTestDriver(t, test.features)
		for range 2 {
			d.Post(20)
		}
		d.Kick()
		var header [virtio.NetHeaderLen]byte
		binary.LittleEndian.PutUint16(header[10:], test.buffers)
		d.Memory.Write(d.slotAt(0), header[:])
		finish(d, test.elements...)
		frame, ok, err := d.ReapFrame()
		if ok != (test.want == "") || (err == nil) != ok || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %d bytes, %v", test.name, len(frame), err)
		}
	}
}

// A byte before or behind a region cannot be touched.
func TestMemoryIsGuarded(t *testing.T) {
	m, err := NewMemory(os.Getpagesize(), os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	faults := func(p unsafe.Pointer) (fault bool) {
		defer func() { fault = recover() != nil }()
		*(*byte)(p)++
		return false
	}
	for _, r := range m.Regions() {
		first := unsafe.Pointer(&r.Data[0])
		for offset, want := range map[int]bool{-1: true, 0: false, len(r.Data) - 1: false, len(r.Data): true} {
			if got := faults(unsafe.Add(first, offset)); got != want {
				t.Errorf("byte %d: a fault: %v", offset, got)
			}
		}
	}
}

// The memory can be mapped by others, who see the same, and not be made shorter under them.
func TestMemoryIsShared(t *testing.T) {
	m, err := NewMemory(os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	copy(m.Regions()[0].Data, "shared")
	var b [6]byte
	if _, err := m.Files()[0].ReadAt(b[:], 0); err != nil || string(b[:]) != "shared" {
		t.Errorf("%q, %v", b, err)
	}
	if err := m.Files()[0].Truncate(0); !errors.Is(err, os.ErrPermission) {
		t.Error("truncated:", err)
	}
}

// Memory is pages, and what is allocated is in it.
func TestMemoryBounds(t *testing.T) {
	for _, size := range []int{0, -1, 1, os.Getpagesize() + 1} {
		if _, err := NewMemory(size); err == nil {
			t.Errorf("a region of %d bytes", size)
		}
	}
	m, err := NewMemory(os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if at, err := m.Alloc(1, 1); at != Origin || err != nil {
		t.Error(at, err)
	}
	if at, err := m.Alloc(16, 16); at != Origin+16 || err != nil {
		t.Error(at, err)
	}
	if _, err := m.Alloc(os.Getpagesize()-31, 1); err == nil {
		t.Error("allocated more than there is")
	}
	if _, err := m.Alloc(os.Getpagesize()-32, 1); err != nil {
		t.Error(err)
	}
	copy(m.Regions()[0].Data, "x")
	m.Reset()
	if at, err := m.Alloc(1, 1); at != Origin || err != nil || m.Regions()[0].Data[0] != 0 {
		t.Error("after a reset:", at, err)
	}
}
