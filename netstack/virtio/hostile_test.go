package virtio_test

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// A hostile is a guest that writes what a program says into its memory and its ring, and
// the device beside it, which the program runs too. What the device does is held against
// the oracle, but for while the guest writes at the very time.
//
// The memory is of two regions that adjoin, the ring at the begin of the first, and one
// that stands alone. Around each are pages that end the test when they are touched.
type hostile struct {
	t        testing.TB
	program  []byte
	ring     virtiotest.Ring
	data     uint64 // memory that no ring is in
	q        *virtio.Queue
	fault    error
	before   snapshot
	scribble func() // ends the writing at the same time

	// Of the oracle's queue.
	next, seen, published uint16
}

// hostileSteps is the most steps of a program: more add time and no new states.
const hostileSteps = 200

// hostileMemory returns the memory that programs run in, one after the other.
func hostileMemory(t testing.TB) *virtiotest.Memory {
	m := newMemory(t, 2*page, page, page)
	m.Regions()[2].Guest += 16 * page
	return m
}

// runHostile runs a program.
func runHostile(t testing.TB, m *virtiotest.Memory, program []byte) {
	m.Reset()
	h := &hostile{t: t, program: program, data: virtiotest.Origin + page}
	setup := h.byte()
	features := uint64(virtio.FeatureVersion1 | virtio.FeatureMergeable)
	if setup&8 != 0 {
		features |= virtio.FeatureIndirect
	}
	if setup&16 != 0 {
		features |= virtio.FeatureEventIndex
	}
	var err error
	if h.ring, err = virtiotest.NewRing(m, 1<<(setup&3), features); err != nil {
		t.Fatal(err)
	}
	if setup&32 != 0 {
		h.ring.Config.Avail += 2
		h.ring.Config.Used += 4
	}
	start := uint16(h.byte()) - 128
	h.ring.SetUsedIndex(start)
	h.ring.SetAvailIndex(start)
	h.restart()
	defer func() { h.quiet() }()
	for range hostileSteps {
		if len(h.program) == 0 {
			break
		}
		h.step()
	}
}

// byte returns the next byte of the program, and zeros after its end.
func (h *hostile) byte() (b byte) {
	if len(h.program) > 0 {
		b, h.program = h.program[0], h.program[1:]
	}
	return b
}

// The steps of programs. Operands follow, a byte each.
const (
	stepDescriptor = iota // index, descriptor: one of the ring's own
	stepTable             // address, descriptor: one anywhere
	stepAvail             // index, head
	stepIndex             // by how much the available index moves
	stepUsedIndex         // the used index
	stepEvent             // where, and whether, the driver wants an interrupt
	stepWrite             // address, value: a byte anywhere
	stepTake              // lengths of header and payload
	stepRoom
	stepGive   // lengths of header and payload
	stepMerged // length of frame
	stepPublish
	stepArm
	stepDisarm
	stepRestart
	stepScribble // address, two words, written in turn until
	stepQuiet
	stepOffer // kind, number, address and length of each: a chain that is nearly right
	stepKinds
)

// step does the next step. One that writes nothing is the device's.
func (h *hostile) step() {
	switch h.byte() % stepKinds {
	case stepDescriptor:
		h.ring.SetDescriptor(int(h.byte())&(h.ring.Config.Size-1), h.descriptor())
	case stepTable:
		h.descriptor().Put(h.ring.Memory, h.address())
	case stepAvail:
		h.ring.SetAvail(uint16(h.byte()), uint16(h.byte()))
	case stepIndex:
		h.ring.SetAvailIndex(h.ring.AvailIndex() + uint16(int8(h.byte())))
	case stepUsedIndex:
		h.ring.SetUsedIndex(uint16(h.byte()))
	case stepEvent:
		h.ring.SetUsedEvent(h.ring.UsedIndex() + uint16(int8(h.byte())))
		h.ring.SetNoInterrupt(h.byte()&1 != 0)
	case stepWrite:
		h.ring.Memory.Write(h.address(), []byte{h.byte()})
	case stepTake:
		h.take(int(h.byte()), int(h.byte()))
	case stepRoom:
		h.room()
	case stepGive:
		h.give(int(h.byte())%(virtio.NetHeaderLen+1), int(h.byte()), false)
	case stepMerged:
		h.give(virtio.NetHeaderLen, int(h.byte()), true)
	case stepPublish:
		h.publish()
	case stepArm:
		h.watch()
		h.q.Arm()
		h.confined(nil)
	case stepDisarm:
		h.watch()
		h.q.Disarm()
		h.confined(nil)
	case stepRestart:
		h.restart()
	case stepScribble:
		h.quiet()
		h.scribbleAt(h.address(), h.word(), h.word())
	case stepQuiet:
		h.quiet()
	case stepOffer:
		h.offer()
	}
}

// offer makes a chain of a few descriptors available, which keeps the rules but for where its
// buffers are and how long it is. A guest at fault begins anew with it.
func (h *hostile) offer() {
	if h.fault != nil && h.scribble == nil {
		h.ring.SetUsedIndex(h.ring.AvailIndex())
		h.restart()
	}
	kind, n := h.byte(), int(h.byte())%6+1
	table := h.ring.Config.Desc
	if kind&2 != 0 {
		table = h.data + page/4
		h.ring.SetDescriptor(0, virtiotest.Descriptor{Addr: table, Len: uint32(n) * virtiotest.DescLen, Flags: indirect})
	}
	for i := range n {
		d := virtiotest.Descriptor{Addr: h.address(), Len: uint32(h.byte()), Next: uint16(i + 1)}
		if kind&1 != 0 {
			d.Flags |= write
		}
		if i < n-1 {
			d.Flags |= next
		}
		d.Put(h.ring.Memory, table+uint64(i)*virtiotest.DescLen)
	}
	index := h.ring.AvailIndex()
	h.ring.SetAvail(index, 0)
	h.ring.SetAvailIndex(index + 1)
}

// address returns one near a place that is worth it.
func (h *hostile) address() uint64 {
	regions := h.ring.Memory.Regions()
	alone := regions[2].Guest
	places := [...]uint64{
		h.data, h.ring.Config.Desc, h.ring.Config.Avail, h.ring.Config.Used,
		virtiotest.Origin, regions[1].Guest, regions[1].Guest + page,
		alone, alone + page, 0, math.MaxUint64, h.data + page/2,
	}
	place := places[int(h.byte())%len(places)]
	return place + uint64(int8(h.byte()))
}

func (h *hostile) descriptor() virtiotest.Descriptor {
	d := virtiotest.Descriptor{Addr: h.address()}
	lengths := [...]uint32{0, 1, 12, 16, 32, page, 2 * page, 4 * page, math.MaxInt32, 1 << 31, math.MaxUint32}
	if n := h.byte(); int(n) < len(lengths) {
		d.Len = lengths[n]
	} else {
		d.Len = uint32(n)
	}
	d.Flags = uint16(h.byte())
	d.Next = uint16(h.byte())
	return d
}

// word returns half of a descriptor.
func (h *hostile) word() uint64 {
	if h.byte()&1 == 0 {
		return h.address()
	}
	d := h.descriptor()
	return uint64(d.Len) | uint64(d.Flags)<<32 | uint64(d.Next)<<48
}

// scribbleAt writes two words in turn, over and over, until quiet.
func (h *hostile) scribbleAt(addr, one, other uint64) {
	b := h.ring.Memory.At(addr&^7, 8)
	if len(b) < 8 {
		return
	}
	w := (*uint64)(unsafe.Pointer(&b[0]))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				for range 100 {
					atomic.StoreUint64(w, one)
					atomic.StoreUint64(w, other)
				}
				runtime.Gosched()
			}
		}
	}()
	h.scribble = func() { close(stop); <-stopped }
}

func (h *hostile) quiet() {
	if h.scribble != nil {
		h.scribble()
		h.scribble = nil
		// The oracle has missed what the device has seen meanwhile.
		h.restart()
	}
}

func (h *hostile) restart() {
	q, err := virtio.NewQueue(must(h.ring.Memory.Device()), h.ring.Config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.q, h.fault = q, nil
	h.next = h.ring.UsedIndex()
	h.seen, h.published = h.next, h.next
	if h.scribble == nil && q.Base() != h.next {
		h.t.Fatalf("begins at %d instead of %d", q.Base(), h.next)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
