package vhostuser

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"sheaf/netstack/virtio"
)

// A regionInfo is one region of a memory table, as the front end tells it.
type regionInfo struct {
	guest, size, user, offset uint64
}

// A memory is the guest's memory as one table of the front end has it, mapped here.
type memory struct {
	table *virtio.Memory
	maps  [][]byte // what to unmap
}

// mapMemory maps a table. fds has the file of each region; they stay the caller's.
func mapMemory(regions []regionInfo, fds []int) (m *memory, err error) {
	m = &memory{}
	defer func() {
		if err != nil {
			m.unmap()
			m = nil
		}
	}()
	all := make([]virtio.Region, len(regions))
	for i, r := range regions {
		data, err := m.mapRegion(r, fds[i])
		if err != nil {
			return m, fmt.Errorf("region %d: %w", i, err)
		}
		all[i] = virtio.Region{Guest: r.guest, User: r.user, Data: data}
	}
	m.table, err = virtio.NewMemory(all)
	return m, err
}

// mapRegion maps what a region has of a file and returns its bytes. The mapping begins and
// ends at whole blocks, which of hugetlbfs are its pages.
func (m *memory) mapRegion(r regionInfo, fd int) ([]byte, error) {
	block, err := blockOf(fd, r)
	if err != nil {
		return nil, err
	}
	start := r.offset &^ (block - 1)
	length := (r.offset + r.size - start + block - 1) &^ (block - 1)
	data, err := unix.Mmap(fd, int64(start), int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	m.maps = append(m.maps, data)
	return data[r.offset-start:][:r.size:r.size], nil
}

// maxRegion is the most bytes of one region, and its greatest offset: a quarter of the
// 47 bits of address space that a process has on amd64 with four levels of page tables.
const maxRegion = 1 << 45

// blockOf checks that a file has a region, and returns the size of its blocks: a power of two, at least a page.
// Only memory will do: to touch a page of another file system may wait for a disk, a
// server or, with FUSE, for the front end itself.
func blockOf(fd int, r regionInfo) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return 0, fmt.Errorf("fstatfs: %w", err)
	}
	if t := int64(fs.Type); t != unix.TMPFS_MAGIC && t != unix.HUGETLBFS_MAGIC {
		return 0, fmt.Errorf("its file is of a file system of type %#x, neither tmpfs nor hugetlbfs: share the guest's memory by memfd", t)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("fstat: %w", err)
	}
	if r.size == 0 || r.size > maxRegion || r.offset > maxRegion {
		return 0, fmt.Errorf("size %#x, offset %#x: nothing, or more than %#x", r.size, r.offset, uint64(maxRegion))
	}
	if end := r.offset + r.size; st.Size < 0 || end > uint64(st.Size) {
		return 0, fmt.Errorf("it ends at %#x, its file at %#x", end, st.Size)
	}
	block := uint64(st.Blksize)
	if page := uint64(os.Getpagesize()); block < page || block&(block-1) != 0 {
		block = page
	}
	return block, nil
}

// unmap gives the memory back; nobody may use it any more. Of a nil memory it does nothing.
func (m *memory) unmap() {
	if m == nil {
		return
	}
	for _, data := range m.maps {
		unix.Munmap(data)
	}
	m.maps = nil
}

// A memoryFault is an access to guest memory that the front end has taken away meanwhile,
// by truncating its file.
type memoryFault struct{ address uintptr }

func (f *memoryFault) Error() string {
	return "guest memory is not there any more: its file was truncated"
}

// caught is deferred by whoever has debug.SetPanicOnFault on and uses the memory: a fault
// in it becomes *err, and any other panic goes on.
func (m *memory) caught(err *error) {
	p := recover()
	if p == nil {
		return
	}
	if fault, ok := p.(interface {
		runtime.Error
		Addr() uintptr
	}); ok && m.has(fault.Addr()) {
		*err = &memoryFault{fault.Addr()}
		return
	}
	panic(p)
}

// has reports whether an address of this process is in the memory.
func (m *memory) has(address uintptr) bool {
	for _, data := range m.maps {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
		if address-start < uintptr(len(data)) {
			return true
		}
	}
	return false
}

// newQueue is virtio.NewQueue, which looks into the memory.
func (m *memory) newQueue(c virtio.QueueConfig) (q *virtio.Queue, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer m.caught(&err)
	return virtio.NewQueue(m.table, c)
}
