// Package virtiotest is the guest's side of split virtqueues in memory: its memory, and a
// driver, by which devices are tested, fuzzed and measured without a guest.
package virtiotest

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sheaf/netstack/virtio"
)

// Origin is the guest's address of the first region: not 0, so that an address that was
// forgotten shows.
const Origin = 0x10_0000

// A Memory is the memory of a guest that is not there: files of shared memory, one a region,
// mapped here between pages that nobody may touch. Who reads or writes outside a region
// ends the program.
type Memory struct {
	regions []virtio.Region
	files   []*os.File
	maps    []mapping
	used    uint64 // bytes from Origin on that Alloc has given out
}

// A mapping is a reserved range of addresses: guard page, region, guard page.
type mapping struct {
	addr unsafe.Pointer
	size uintptr
}

// NewMemory returns zeroed memory of regions of these sizes in bytes, multiples of a page,
// which adjoin one another in the guest from Origin on.
func NewMemory(sizes ...int) (*Memory, error) {
	m := &Memory{}
	guest := uint64(Origin)
	for _, size := range sizes {
		if err := m.add(guest, size); err != nil {
			return nil, errors.Join(fmt.Errorf("virtiotest: region of %d bytes: %w", size, err), m.Close())
		}
		guest += uint64(size)
	}
	return m, nil
}

func (m *Memory) add(guest uint64, size int) error {
	page := os.Getpagesize()
	if size <= 0 || size%page != 0 {
		return fmt.Errorf("no multiple of a page of %d bytes", page)
	}
	// Front ends must not be able to take away what is mapped; QEMU seals its memory so, too.
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "guest")
	m.files = append(m.files, file)
	if err := file.Truncate(int64(size)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		return err
	}
	whole := uintptr(size + 2*page)
	addr, err := unix.MmapPtr(-1, 0, nil, whole, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	m.maps = append(m.maps, mapping{addr, whole})
	inside, err := unix.MmapPtr(fd, 0, unsafe.Add(addr, page), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		return err
	}
	m.regions = append(m.regions, virtio.Region{
		Guest: guest, User: uint64(uintptr(inside)), Data: unsafe.Slice((*byte)(inside), size),
	})
	return nil
}

// Regions returns the regions, mapped here; User is the address of the mapping.
func (m *Memory) Regions() []virtio.Region { return m.regions }

// Files returns the file of each region, which begins at offset 0. Close closes them.
func (m *Memory) Files() []*os.File { return m.files }

// Device returns the memory as a device sees it.
func (m *Memory) Device() (*virtio.Memory, error) { return virtio.NewMemory(m.regions) }

// Alloc returns the guest's address of n bytes, a multiple of align, that nobody has yet. They
// may lie in two regions.
func (m *Memory) Alloc(n, align int) (guest uint64, err error) {
	start := (m.used + uint64(align) - 1) / uint64(align) * uint64(align)
	if start+uint64(n) > m.size() {
		return 0, fmt.Errorf("virtiotest: no %d bytes left of the guest's %d", n, m.size())
	}
	m.used = start + uint64(n)
	return Origin + start, nil
}

// Reset zeroes the memory and takes back all that was allocated, as when a guest restarts.
func (m *Memory) Reset() {
	for _, r := range m.regions {
		clear(r.Data)
	}
	m.used = 0
}

func (m *Memory) size() (n uint64) {
	for _, r := range m.regions {
		n += uint64(len(r.Data))
	}
	return n
}

// At returns the bytes from guest on that lie in one region, at most n, and none where no memory is. They
// are the memory itself, valid until Close.
func (m *Memory) At(guest uint64, n int) []byte {
	for _, r := range m.regions {
		if offset := guest - r.Guest; offset < uint64(len(r.Data)) {
			return r.Data[offset:][:min(n, len(r.Data)-int(offset))]
		}
	}
	return nil
}

// Write copies p to guest, into regions that adjoin, as far as there is memory.
func (m *Memory) Write(guest uint64, p []byte) {
	for len(p) > 0 {
		n := copy(m.At(guest, len(p)), p)
		if n == 0 {
			return
		}
		p, guest = p[n:], guest+uint64(n)
	}
}

// AppendRead appends n bytes from guest on, as far as there is memory.
func (m *Memory) AppendRead(dst []byte, guest uint64, n int) []byte {
	for n > 0 {
		b := m.At(guest, n)
		if len(b) == 0 {
			break
		}
		dst = append(dst, b...)
		guest, n = guest+uint64(len(b)), n-len(b)
	}
	return dst
}

// Close unmaps the memory and closes the files.
func (m *Memory) Close() error {
	var errs []error
	for _, r := range m.maps {
		errs = append(errs, unix.MunmapPtr(r.addr, r.size))
	}
	for _, f := range m.files {
		errs = append(errs, f.Close())
	}
	m.regions, m.maps, m.files = nil, nil, nil
	return errors.Join(errs...)
}
