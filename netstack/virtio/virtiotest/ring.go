package virtiotest

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"sheaf/netstack/virtio"
)

// Flags of a Descriptor (virtio 1.2 section 2.7.5).
const (
	Next     = 1
	Write    = 2
	Indirect = 4
)

// Offsets and sizes in the rings, in bytes (virtio 1.2 sections 2.7.5 to 2.7.8).
const (
	DescLen   = 16
	AvailElem = 2
	UsedElem  = 8
	flagsAt   = 0
	indexAt   = 2
	elemsAt   = 4
	eventLen  = 2
)

// Lengths of a ring's parts, in bytes.
func availLen(size int) int { return elemsAt + AvailElem*size + eventLen }
func usedLen(size int) int  { return elemsAt + UsedElem*size + eventLen }

// A Descriptor is one that a driver writes, right or wrong.
type Descriptor struct {
	Addr        uint64
	Len         uint32
	Flags, Next uint16
}

// Put writes d to guest.
func (d Descriptor) Put(m *Memory, guest uint64) {
	var b [DescLen]byte
	binary.LittleEndian.PutUint64(b[:], d.Addr)
	binary.LittleEndian.PutUint32(b[8:], d.Len)
	binary.LittleEndian.PutUint16(b[12:], d.Flags)
	binary.LittleEndian.PutUint16(b[14:], d.Next)
	m.Write(guest, b[:])
}

// A Ring is a split virtqueue in a Memory, of which each field can be written, right or wrong.
type Ring struct {
	Memory *Memory
	Config virtio.QueueConfig
}

// NewRing allocates the parts of a ring.
func NewRing(m *Memory, size int, features uint64) (Ring, error) {
	r := Ring{m, virtio.QueueConfig{Size: size, Features: features}}
	var err error
	if r.Config.Desc, err = m.Alloc(DescLen*size, 16); err != nil {
		return r, err
	}
	if r.Config.Avail, err = m.Alloc(availLen(size), 4); err != nil {
		return r, err
	}
	r.Config.Used, err = m.Alloc(usedLen(size), 4)
	return r, err
}

// SetDescriptor writes descriptor i of the ring's own table.
func (r Ring) SetDescriptor(i int, d Descriptor) {
	d.Put(r.Memory, r.Config.Desc+DescLen*uint64(i))
}

// SetAvail writes the element of the available ring that index is at.
func (r Ring) SetAvail(index, head uint16) {
	at := int(index) & (r.Config.Size - 1)
	store16(r.avail(), elemsAt+AvailElem*at, head)
}

// AvailIndex, SetAvailIndex, UsedIndex and SetUsedIndex load and store the indexes.
func (r Ring) AvailIndex() uint16         { return load16(r.avail(), indexAt) }
func (r Ring) SetAvailIndex(index uint16) { store16(r.avail(), indexAt, index) }
func (r Ring) UsedIndex() uint16          { return load16(r.used(), indexAt) }
func (r Ring) SetUsedIndex(index uint16)  { store16(r.used(), indexAt, index) }

// Used returns the element of the used ring that index is at.
func (r Ring) Used(index uint16) (id, n uint32) {
	b := r.used()[elemsAt+UsedElem*(int(index)&(r.Config.Size-1)):]
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
}

// SetNoInterrupt sets the flag of the available ring (virtio 1.2 section 2.7.7).
func (r Ring) SetNoInterrupt(on bool) {
	var flags uint16
	if on {
		flags = 1
	}
	store16(r.avail(), flagsAt, flags)
}

// NoNotify loads the flag of the used ring (virtio 1.2 section 2.7.10).
func (r Ring) NoNotify() bool { return load16(r.used(), flagsAt)&1 != 0 }

// SetUsedEvent stores at which used index the driver wants an interrupt.
func (r Ring) SetUsedEvent(index uint16) {
	b := r.avail()
	store16(b, len(b)-eventLen, index)
}

// AvailEvent loads at which available index the device wants a kick.
func (r Ring) AvailEvent() uint16 {
	b := r.used()
	return load16(b, len(b)-eventLen)
}

func (r Ring) avail() []byte { return r.Memory.At(r.Config.Avail, availLen(r.Config.Size)) }
func (r Ring) used() []byte  { return r.Memory.At(r.Config.Used, usedLen(r.Config.Size)) }

// load16 loads a field with the aligned word around it, since sync/atomic has no 16 bits.
func load16(b []byte, offset int) uint16 {
	w, shift := word(b, offset)
	return uint16(atomic.LoadUint32(w) >> shift)
}

// store16 changes one half of a word. The driver is the only writer of the other, if
// anybody is.
func store16(b []byte, offset int, v uint16) {
	w, shift := word(b, offset)
	atomic.StoreUint32(w, atomic.LoadUint32(w)&^(0xffff<<shift)|uint32(v)<<shift)
}

func word(b []byte, offset int) (w *uint32, shift uint) {
	p := unsafe.Pointer(&b[offset])
	odd := uintptr(p) & 3
	return (*uint32)(unsafe.Add(p, -int(odd))), uint(odd) * 8
}
