package virtio_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"

	"sheaf/netstack/virtio"
)

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
	segments, tables, ok = oracleChain(h.ring, oracleHead(h.ring, index), writable)
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
	var want []byte
	var wantOK, wantFault bool
	if !h.blind() {
		segments, _, wantOK, wantFault = h.expect(h.next, false)
		want = h.contents(segments, len(header)+len(payload))
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
