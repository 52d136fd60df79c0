package virtio

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Flags of a descriptor (virtio 1.2 section 2.7.5).
const (
	descNext     = 1 // VIRTQ_DESC_F_NEXT
	descWrite    = 2 // VIRTQ_DESC_F_WRITE: the device writes
	descIndirect = 4 // VIRTQ_DESC_F_INDIRECT
)

// descLen is the length of a descriptor, in bytes: address 8, length 4, flags 2, next 2.
const descLen = 16

// maxChain is the most bytes of a chain: half of what virtio 1.2 section 2.7.5.2 allows, so
// that an int of 32 bits holds it. Messages are shorter by far.
const maxChain = math.MaxInt32

// A descriptor is a copy of one in the guest's memory.
type descriptor struct {
	addr        uint64
	len         uint32
	flags, next uint16
}

func makeDescriptor(addr, rest uint64) descriptor {
	return descriptor{addr, uint32(rest), uint16(rest >> 32), uint16(rest >> 48)}
}

// A chain goes through the descriptors of one buffer. Each is loaded once.
type chain struct {
	queue    *Queue
	indirect bool
	table    uint64 // the guest's address of the indirect table
	entries  uint32 // of the table that the chain is in
	next     uint16 // in that table
	end      bool   // there is no next
	left     int    // descriptors that may yet follow
	total    uint64 // bytes so far
	flags    uint16 // descWrite or 0: of each descriptor
}

// chain begins at a descriptor of the ring's own table.
func (q *Queue) chain(head, flags uint16) chain {
	return chain{queue: q, entries: uint32(q.size), next: head, left: int(q.size), flags: flags}
}

// step returns the next descriptor. ok is false after the last.
func (c *chain) step() (d descriptor, ok bool, err error) {
	if c.end {
		return d, false, nil
	}
	if d, err = c.load(); err != nil {
		return d, false, err
	}
	for d.flags&descIndirect != 0 { // at most twice: enter refuses a table in a table
		if err := c.enter(d); err != nil {
			return d, false, err
		}
		if d, err = c.load(); err != nil {
			return d, false, err
		}
	}
	// No longer than the queue's size, in an indirect table too (section 2.7.5.3.1): a
	// loop ends here.
	if c.left--; c.left < 0 {
		return d, false, fmt.Errorf("%w: more than %d descriptors", ErrChain, c.queue.size)
	}
	c.total += uint64(d.len)
	switch {
	case d.flags&descWrite != c.flags:
		return d, false, ErrDirection
	case d.len == 0 || c.total > maxChain:
		return d, false, fmt.Errorf("%w: %d bytes, %d in all", ErrLength, d.len, c.total)
	}
	c.next, c.end = d.next, d.flags&descNext == 0
	return d, true, nil
}

// load copies the descriptor at c.next.
func (c *chain) load() (descriptor, error) {
	if uint32(c.next) >= c.entries {
		return descriptor{}, fmt.Errorf("%w: %d of %d", ErrDescriptor, c.next, c.entries)
	}
	if !c.indirect {
		b := c.queue.desc[descLen*int(c.next):]
		return makeDescriptor(load64(b), load64(b[8:])), nil
	}
	// The table may be anywhere, aligned or not.
	b := c.queue.entry[:]
	if err := c.queue.memory.read(b, c.table+descLen*uint64(c.next)); err != nil {
		return descriptor{}, err
	}
	return makeDescriptor(binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])), nil
}

// enter goes on in the indirect table that d refers to, whose direction counts for nothing
// (section 2.7.5.3.2). Descriptors of the ring may come before d, none after it.
func (c *chain) enter(d descriptor) error {
	switch {
	case c.queue.features&FeatureIndirect == 0:
		return fmt.Errorf("%w: not negotiated", ErrIndirect)
	case c.indirect:
		return fmt.Errorf("%w: a table in a table", ErrIndirect)
	case d.flags&descNext != 0:
		return fmt.Errorf("%w: a table with a next", ErrIndirect)
	case d.len == 0 || d.len%descLen != 0:
		return fmt.Errorf("%w: a table of %d bytes", ErrIndirect, d.len)
	}
	c.indirect, c.table, c.entries, c.next = true, d.addr, d.len/descLen, 0
	return nil
}
