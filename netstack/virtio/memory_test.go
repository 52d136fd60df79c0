package virtio_test

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"unsafe"

	"sheaf/netstack/virtio"
)

// aligned returns n bytes at a multiple of 16, and plus bytes further.
func aligned(n, plus int) []byte {
	b := make([]byte, n+plus+16)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & 15
	return b[skip+plus:][:n:n]
}

// Each rule of a table of regions, at its bound and past it.
func TestRegions(t *testing.T) {
	region := func(guest, user uint64, n int) virtio.Region {
		return virtio.Region{Guest: guest, User: user, Data: aligned(n, 0)}
	}
	many := func(n int) (r []virtio.Region) {
		for i := range n {
			r = append(r, region(uint64(i)*32, 0, 32))
		}
		return r
	}
	last := uint64(math.MaxUint64 - 31) // the last 32 bytes of an address space
	tests := []struct {
		name    string
		regions []virtio.Region
		ok      bool
	}{
		{"none", nil, false},
		{"as many as there may be", many(virtio.MaxRegions), true},
		{"one more", many(virtio.MaxRegions + 1), false},
		{"an empty one", []virtio.Region{{Guest: 16, User: 16}}, false},
		{"16 bytes", []virtio.Region{region(0, 0, 16)}, true},
		{"15 bytes", []virtio.Region{region(0, 0, 15)}, false},
		{"guest not aligned", []virtio.Region{region(8, 0, 16)}, false},
		{"hypervisor not aligned", []virtio.Region{region(0, 8, 16)}, false},
		{"mapping not aligned", []virtio.Region{{Data: aligned(16, 8)}}, false},
		{"before the end of the guest's addresses", []virtio.Region{region(last, 0, 16)}, true},
		{"at the end of the guest's addresses", []virtio.Region{region(last, 0, 32)}, false},
		{"past the end of the guest's addresses", []virtio.Region{region(last, 0, 48)}, false},
		{"before the end of the hypervisor's addresses", []virtio.Region{region(0, last, 16)}, true},
		{"at the end of the hypervisor's addresses", []virtio.Region{region(0, last, 32)}, false},
		{"adjoining", []virtio.Region{region(64, 0, 32), region(32, 0, 32), region(96, 0, 32)}, true},
		{"overlapping by their ends", []virtio.Region{region(32, 0, 32), region(0, 0, 48)}, false},
		{"overlapping by their begins", []virtio.Region{region(0, 0, 48), region(32, 0, 32)}, false},
		{"one in the other", []virtio.Region{region(0, 0, 96), region(32, 0, 32)}, false},
		{"the same memory at two places", []virtio.Region{region(0, 64, 32), region(32, 64, 32)}, true},
	}
	for _, test := range tests {
		m, err := virtio.NewMemory(test.regions)
		if (err == nil) != test.ok || (m == nil) != (err != nil) || err != nil && !errors.Is(err, virtio.ErrRegions) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// The caller's slice of regions is its own again after NewMemory.
func TestRegionsAreCopied(t *testing.T) {
	regions := []virtio.Region{{Guest: 32, User: 64, Data: aligned(32, 0)}}
	m, err := virtio.NewMemory(regions)
	if err != nil {
		t.Fatal(err)
	}
	regions[0] = virtio.Region{}
	if guest, err := m.UserToGuest(64, 32); guest != 32 || err != nil {
		t.Error(guest, err)
	}
}

// An address of the hypervisor is found if all its bytes are in one region.
func TestUserToGuest(t *testing.T) {
	m, err := virtio.NewMemory([]virtio.Region{
		{Guest: 0x1000, User: 0x50, Data: aligned(32, 0)},
		{Guest: 0x1020, User: 0x70, Data: aligned(32, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	const no = math.MaxUint64
	for _, test := range []struct{ user, n, guest uint64 }{
		{0x50, 32, 0x1000},
		{0x50, 33, no}, // into the next region
		{0x4f, 1, no},
		{0x60, 16, 0x1010},
		{0x6f, 1, 0x101f},
		{0x70, 1, 0x1020},
		{0x8f, 1, 0x103f},
		{0x8f, 2, no},
		{0x90, 0, no},
		{0x80, math.MaxUint64, no}, // address and length together pass 2^64
		{math.MaxUint64, 2, no},
	} {
		guest, err := m.UserToGuest(test.user, test.n)
		if test.guest == no {
			if !errors.Is(err, virtio.ErrAddress) {
				t.Errorf("%d bytes at %#x: %#x, %v", test.n, test.user, guest, err)
			}
		} else if guest != test.guest || err != nil {
			t.Errorf("%d bytes at %#x: %#x, %v instead of %#x", test.n, test.user, guest, err, test.guest)
		}
	}
}

// A buffer that crosses regions is copied whole, in both directions, and is a fault where
// the second region does not adjoin.
func TestBuffersAcrossRegions(t *testing.T) {
	sent := []byte("over the border")
	for _, hole := range []bool{false, true} {
		r, _ := newRing(t, 4, 0)
		regions := r.Memory.Regions()
		border := regions[1].Guest
		if hole {
			regions[1].Guest += 16
		}
		copy(r.Memory.At(border-4, 4), sent)
		copy(regions[1].Data, sent[4:])

		q := newQueue(t, r)
		give(r, chainOf(0, border-4, len(sent)))
		got := make([]byte, len(sent))
		n, ok, err := q.Take(nil, got)
		if hole {
			if !errors.Is(err, virtio.ErrAddress) {
				t.Error("read through a hole:", n, ok, err)
			}
		} else if n != len(sent) || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes %q, %v", n, got, err)
		}

		q = newQueue(t, r)
		r.SetDescriptor(0, chainOf(write, border-4, len(sent))[0])
		answer := bytes.ToUpper(sent)
		ok, err = q.Give(nil, answer)
		if hole {
			if !errors.Is(err, virtio.ErrAddress) {
				t.Error("written through a hole:", ok, err)
			}
		} else if got := r.Memory.AppendRead(nil, border-4, len(sent)); !ok || !bytes.Equal(got, answer) {
			t.Errorf("%q, %v", got, err)
		}
	}
}
