package virtio_test

import (
	"bytes"
	"encoding/binary"
	"errors"
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
		h.take(int(h.byte()), 8*int(h.byte()))
	case stepRoom:
		h.room()
	case stepGive:
		h.give(int(h.byte())%(virtio.NetHeaderLen+1), 8*int(h.byte()), false)
	case stepMerged:
		h.give(virtio.NetHeaderLen, 8*int(h.byte()), true)
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
	}
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

// blind tells that the oracle does not follow.
func (h *hostile) blind() bool { return h.scribble != nil || h.fault != nil }

// watch and confined are around what the device does: it has written to nothing but its own
// part of the ring and these segments.
func (h *hostile) watch() {
	if !h.blind() {
		h.before.take(h.ring)
	}
}

func (h *hostile) confined(segments []segment) {
	if h.blind() {
		return
	}
	if addr, ok := h.before.strayed(segments); ok {
		h.t.Fatalf("the device wrote at %#x", addr)
	}
}

// faults are all that a device may say of its guest.
var faults = []error{
	virtio.ErrAddress, virtio.ErrIndex, virtio.ErrDescriptor, virtio.ErrIndirect,
	virtio.ErrChain, virtio.ErrDirection, virtio.ErrLength,
}

// result holds an error against what was to be expected: a fault, or none; and that it stays.
func (h *hostile) result(err error, wantFault bool) {
	if h.fault != nil {
		if err != h.fault {
			h.t.Fatalf("%v after %v", err, h.fault)
		}
		return
	}
	if h.scribble == nil && (err != nil) != wantFault {
		h.t.Fatalf("%v, but a fault: %v", err, wantFault)
	}
	if err == nil {
		return
	}
	h.fault = err
	for _, f := range faults {
		if errors.Is(err, f) {
			return
		}
	}
	h.t.Fatalf("a fault that is none: %v", err)
}

// expect returns what the oracle finds at index: the chain that is ready there, or a fault.
func (h *hostile) expect(index uint16, writable bool) (segments, tables []segment, ok, fault bool) {
	if index == h.seen {
		h.seen = h.ring.AvailIndex()
		if n := h.seen - h.published; int(n) > h.ring.Config.Size || n < index-h.published {
			return nil, nil, false, true
		}
		if index == h.seen {
			return nil, nil, false, false
		}
	}
	head := oracleAvailable(h.ring, index)[0]
	segments, tables, ok = oracleChain(h.ring, head, writable)
	return segments, tables, ok, !ok
}

// padded returns n bytes and a check that nothing around them is written.
func (h *hostile) padded(n int) (b []byte, check func()) {
	const pad = 64
	whole := bytes.Repeat([]byte{0xa5}, n+2*pad)
	return whole[pad : pad+n], func() {
		for _, p := range [][]byte{whole[:pad], whole[pad+n:]} {
			if bytes.Count(p, []byte{0xa5}) != pad {
				h.t.Fatal("written outside of the device's own buffer")
			}
		}
	}
}

func (h *hostile) take(nHeader, nPayload int) {
	header, check1 := h.padded(nHeader)
	payload, check2 := h.padded(nPayload)
	var segments []segment
	var wantOK, wantFault bool
	if !h.blind() {
		segments, _, wantOK, wantFault = h.expect(h.next, false)
	}
	h.watch()
	n, ok, err := h.q.Take(header, payload)
	check1()
	check2()
	h.confined(nil)
	h.result(err, wantFault)
	if n < 0 || n > math.MaxInt32 || ok && err != nil {
		h.t.Fatal(n, ok, err)
	}
	if h.blind() {
		return
	}
	if ok != wantOK || n != length(segments) {
		h.t.Fatalf("%d, %v instead of %d, %v", n, ok, length(segments), wantOK)
	}
	if ok {
		want := h.contents(segments, len(header)+len(payload))
		got := append(append([]byte(nil), header...), payload...)[:len(want)]
		if !bytes.Equal(got, want) {
			h.t.Fatalf("% x instead of % x", got, want)
		}
		h.next++
	}
}

// contents returns what is in segments, at most n bytes.
func (h *hostile) contents(segments []segment, n int) (p []byte) {
	for _, s := range segments {
		p = h.ring.Memory.AppendRead(p, s.addr, min(int(s.n), n-len(p)))
	}
	return p
}

func (h *hostile) room() {
	var segments []segment
	var wantOK, wantFault bool
	if !h.blind() {
		segments, _, wantOK, wantFault = h.expect(h.next, true)
	}
	h.watch()
	n, ok, err := h.q.Room()
	h.confined(nil)
	h.result(err, wantFault)
	if n < 0 || n > math.MaxInt32 || ok && err != nil {
		h.t.Fatal(n, ok, err)
	}
	if !h.blind() && (ok != wantOK || n != length(segments)) {
		h.t.Fatalf("%d, %v instead of %d, %v", n, ok, length(segments), wantOK)
	}
}

// expectGive returns what the oracle expects of a message of n bytes: its buffers, and all the
// descriptors of theirs.
func (h *hostile) expectGive(n int, merged bool) (segments, tables []segment, buffers int, err error, fault bool) {
	for buffers == 0 || length(segments) < n {
		if buffers == 1 && !merged || buffers == h.ring.Config.Size {
			return nil, nil, 0, virtio.ErrRoom, false
		}
		s, d, ok, fault := h.expect(h.next+uint16(buffers), true)
		if !ok {
			return nil, nil, 0, nil, fault
		}
		segments, tables = append(segments, s...), append(tables, d...)
		buffers++
	}
	return segments, tables, buffers, nil, false
}

func (h *hostile) give(nHeader, nPayload int, merged bool) {
	message := make([]byte, nHeader+nPayload)
	for i := range message {
		message[i] = byte(i*7 + 1)
	}
	var segments, tables []segment
	var buffers int
	var wantErr error
	var wantFault bool
	if !h.blind() {
		segments, tables, buffers, wantErr, wantFault = h.expectGive(len(message), merged)
		// A guest that has the message written over its ring, or twice to one place, gets
		// what it asked for; the oracle does not follow there.
		size := uint64(h.ring.Config.Size)
		tables = append(tables, segment{h.ring.Config.Avail, 6 + 2*size}, segment{h.ring.Config.Used, 6 + 8*size})
	}
	h.watch()
	var ok bool
	var err error
	if merged {
		ok, err = h.q.GiveMerged((*[virtio.NetHeaderLen]byte)(message), message[nHeader:])
	} else {
		ok, err = h.q.Give(message[:nHeader], message[nHeader:])
	}
	if h.blind() || err == virtio.ErrRoom {
		if err != virtio.ErrRoom {
			h.result(err, false)
		} else if h.fault != nil || h.scribble == nil && wantErr != err {
			h.t.Fatal(err)
		}
		return
	}
	if overlap(segments, tables) || overlap(segments, segments) {
		if h.fault = err; err == nil {
			h.restart()
		}
		return
	}
	h.confined(segments)
	h.result(err, wantFault)
	if ok != (buffers > 0) || wantErr != nil {
		h.t.Fatalf("%v, %v; %d buffers, %v", ok, err, buffers, wantErr)
	}
	if ok {
		if merged {
			binary.LittleEndian.PutUint16(message[numBuffers:], uint16(buffers))
		}
		if got := h.contents(segments, len(message)); !bytes.Equal(got, message) {
			h.t.Fatalf("% x instead of % x", got, message)
		}
		h.next += uint16(buffers)
	}
}

func (h *hostile) publish() {
	h.watch()
	h.q.Publish()
	h.confined(nil)
	if h.blind() {
		return
	}
	if h.published = h.next; h.next != h.q.Base() {
		h.t.Fatalf("at %d instead of %d", h.q.Base(), h.next)
	}
}
