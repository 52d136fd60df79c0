package virtio

import (
	"sync/atomic"
	"unsafe"
)

// Fields of a ring that the driver changes meanwhile are loaded and stored here, each once
// and whole, in one order for all (sync/atomic is sequentially consistent, which are the
// barriers that virtio 1.2 sections 2.7.7 to 2.7.14 ask for). It has no operations of 16
// bits. A field of 16 bits, which may be aligned to 2 bytes only, is loaded with the
// aligned word of 32 bits that it is in.

// word returns the aligned word around b[offset:offset+2], and by how much the field is shifted in it.
func word(b []byte, offset int) (w *uint32, shift uint) {
	p := unsafe.Pointer(&b[offset])
	odd := uintptr(p) & 3
	return (*uint32)(unsafe.Add(p, -int(odd))), uint(odd) * 8
}

// load16 loads b[offset:offset+2].
func load16(b []byte, offset int) uint16 {
	w, shift := word(b, offset)
	return uint16(atomic.LoadUint32(w) >> shift)
}

// store16 stores b[offset:offset+2] and leaves the other half of the word to whoever
// changes it meanwhile. In between the field may be read as 0.
func store16(b []byte, offset int, v uint16) {
	w, shift := word(b, offset)
	atomic.AndUint32(w, ^(uint32(0xffff) << shift))
	atomic.OrUint32(w, uint32(v)<<shift)
}

// load64 loads the first word of the aligned b.
func load64(b []byte) uint64 {
	_ = b[7]
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0])))
}

// load32 and store32 are for the first word of the aligned b.
func load32(b []byte) uint32 {
	_ = b[3]
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[0])))
}

func store32(b []byte, v uint32) {
	_ = b[3]
	atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[0])), v)
}
