package virtio

import (
	"errors"
	"fmt"
	"unsafe"
)

// MaxRegions is the most regions of one Memory: as many as the table of vhost-user holds
// ("Memory regions description" in the protocol's specification).
const MaxRegions = 8

// regionAlign is what a region's places and length are multiples of: the alignment of a
// descriptor table, the greatest that virtio 1.2 section 2.7 asks for. So what is aligned
// in the guest is aligned here, and the 32-bit word around a 16-bit field of a ring is in
// the region that the field is in.
const regionAlign = 16

// ErrRegions says that a table of regions makes no memory. The hypervisor sent it, not the guest.
var ErrRegions = errors.New("virtio: not a table of memory regions")

// A Region is a piece of a guest's memory that is mapped here.
type Region struct {
	Guest uint64 // physical address in the guest
	User  uint64 // address in the process of the hypervisor, by which vhost-user names rings
	Data  []byte // the mapping; borrowed for as long as the Memory or a Queue of it is in use
}

// A Memory is the memory of one guest. It does not change and may be used from several
// goroutines; a new table is a new Memory with new Queues.
type Memory struct {
	regions []Region
}

// NewMemory returns the memory that consists of these regions, in any order. Guest, User,
// the address and the length of Data are multiples of 16. It is an error, ErrRegions, if
// there are none or more than MaxRegions, if one is empty or reaches the end of an address
// space, or if two overlap in the guest. In the hypervisor they may overlap: a board can
// have the same memory at two places.
func NewMemory(regions []Region) (*Memory, error) {
	if len(regions) == 0 || len(regions) > MaxRegions {
		return nil, fmt.Errorf("%w: %d regions", ErrRegions, len(regions))
	}
	for i, r := range regions {
		size := uint64(len(r.Data))
		here := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(r.Data))))
		switch {
		case size == 0:
			return nil, fmt.Errorf("%w: region %d is empty", ErrRegions, i)
		case (r.Guest|r.User|size|here)%regionAlign != 0:
			return nil, fmt.Errorf("%w: region %d is not aligned to %d bytes", ErrRegions, i, regionAlign)
		case r.Guest+size < size || r.User+size < size:
			return nil, fmt.Errorf("%w: region %d passes the end of the address space", ErrRegions, i)
		}
		for j, other := range regions[:i] {
			if r.Guest < other.Guest+uint64(len(other.Data)) && other.Guest < r.Guest+size {
				return nil, fmt.Errorf("%w: regions %d and %d overlap", ErrRegions, j, i)
			}
		}
	}
	return &Memory{regions: append([]Region(nil), regions...)}, nil
}

// UserToGuest returns the guest's address of n bytes that the hypervisor has at user.
// They must lie in one region, or the error is ErrAddress.
func (m *Memory) UserToGuest(user, n uint64) (guest uint64, err error) {
	for i := range m.regions {
		r := &m.regions[i]
		size := uint64(len(r.Data))
		if offset := user - r.User; offset < size && n <= size-offset {
			return r.Guest + offset, nil
		}
	}
	return 0, fmt.Errorf("%w: %d bytes at %#x of the hypervisor", ErrAddress, n, user)
}

// span returns the bytes from guest on that are in one region, at most n, and none if there are none.
// Since no region reaches the end of the address space, guest plus their number never
// wraps.
func (m *Memory) span(guest, n uint64) []byte {
	for i := range m.regions {
		r := &m.regions[i]
		if offset := guest - r.Guest; offset < uint64(len(r.Data)) {
			return r.Data[offset:][:min(n, uint64(len(r.Data))-offset)]
		}
	}
	return nil
}

// part returns the n bytes at guest, a part of a ring, which lies in one region.
func (m *Memory) part(guest uint64, n int) ([]byte, error) {
	b := m.span(guest, uint64(n))
	if len(b) < n {
		return nil, fmt.Errorf("%w: %d bytes of a ring at %#x", ErrAddress, n, guest)
	}
	return b[:n:n], nil
}

// read fills dst from guest on, across regions that adjoin.
func (m *Memory) read(dst []byte, guest uint64) error {
	for len(dst) > 0 {
		b := m.span(guest, uint64(len(dst)))
		if len(b) == 0 {
			return outside(guest)
		}
		dst = dst[copy(dst, b):]
		guest += uint64(len(b))
	}
	return nil
}

// write copies src to guest, across regions that adjoin.
func (m *Memory) write(guest uint64, src []byte) error {
	for len(src) > 0 {
		b := m.span(guest, uint64(len(src)))
		if len(b) == 0 {
			return outside(guest)
		}
		src = src[copy(b, src):]
		guest += uint64(len(b))
	}
	return nil
}

// check returns an error unless n bytes from guest on are all there.
func (m *Memory) check(guest, n uint64) error {
	for n > 0 {
		b := m.span(guest, n)
		if len(b) == 0 {
			return outside(guest)
		}
		guest += uint64(len(b))
		n -= uint64(len(b))
	}
	return nil
}

func outside(guest uint64) error { return fmt.Errorf("%w: %#x", ErrAddress, guest) }
