package virtiotest

import (
	"encoding/binary"
	"fmt"

	"sheaf/netstack/virtio"
)

// MaxParts is the most descriptors of an indirect table of a Driver.
const MaxParts = 16

// A Driver is the driver's side of one ring that keeps the rules, and an error tells where
// the device did not. It is used by one goroutine at a time, which may run beside the
// device's. It allocates nothing in the steady state.
//
// Each descriptor of the ring has a slot of memory of its own. The parts of a buffer lie
// each in the slot of its descriptor, or, with FeatureIndirect, one after the other in the slot of
// the one descriptor that refers to them.
type Driver struct {
	Ring
	slot   int
	slots  uint64 // guest's address of the slots
	tables uint64 // of the indirect tables, MaxParts descriptors each; 0: none

	free    []uint16 // descriptors, the next one at the end
	sizes   []int    // by descriptor: of its part
	next    []uint16 // by descriptor: of the same buffer, or itself at the end
	pending []uint16 // by available index: the heads that the device has

	avail uint16 // index of the next buffer
	shown uint16 // the available index that the device sees
	used  uint16 // index of the next finished buffer
	bytes []byte // of the last Reap
	frame []byte // of the last ReapFrame
}

// NewDriver sets a ring up in m, with a slot of so many bytes for each descriptor.
func NewDriver(m *Memory, size, slot int, features uint64) (*Driver, error) {
	r, err := NewRing(m, size, features)
	if err != nil {
		return nil, err
	}
	return r.NewDriver(slot)
}

// NewDriver returns a driver of the ring, which goes on at the used index in memory.
func (r Ring) NewDriver(slot int) (*Driver, error) {
	size := r.Config.Size
	d := &Driver{
		Ring: r, slot: slot,
		free: make([]uint16, 0, size), sizes: make([]int, size), next: make([]uint16, size), pending: make([]uint16, size),
	}
	var err error
	if d.slots, err = r.Memory.Alloc(size*slot, 1); err != nil {
		return nil, err
	}
	if r.Config.Features&virtio.FeatureIndirect != 0 {
		if d.tables, err = r.Memory.Alloc(size*MaxParts*DescLen, 1); err != nil {
			return nil, err
		}
	}
	for i := range size {
		d.free = append(d.free, uint16(size-1-i))
	}
	d.StartAt(r.UsedIndex())
	return d, nil
}

// StartAt sets both indexes of a ring that neither side has used yet.
func (d *Driver) StartAt(index uint16) {
	d.avail, d.shown, d.used = index, index, index
	d.SetAvailIndex(index)
	d.SetUsedIndex(index)
	d.SetUsedEvent(index)
}

// Send makes the concatenation of parts available to be read, each part one descriptor. It
// is false if there are not enough descriptors free; no chain is longer than the ring (virtio
// 1.2 section 2.7.5.3.1). A part that does not fit into a slot
// is the caller's fault, and a panic.
func (d *Driver) Send(parts ...[]byte) bool {
	return d.add(len(parts), 0, func(i int) int { return len(parts[i]) }, func(i int, at uint64) { d.Memory.Write(at, parts[i]) })
}

// Post makes a buffer available to be written, of one descriptor for each size. It is
// false if there are not enough descriptors free.
func (d *Driver) Post(sizes ...int) bool {
	return d.add(len(sizes), Write, func(i int) int { return sizes[i] }, func(int, uint64) {})
}

// add makes a buffer of n parts available.
func (d *Driver) add(n int, flags uint16, size func(i int) int, fill func(i int, at uint64)) bool {
	if d.tables != 0 && n <= min(MaxParts, d.Config.Size) {
		return d.addIndirect(n, flags, size, fill)
	}
	if n > len(d.free) {
		return false
	}
	heads := d.free[len(d.free)-n:]
	d.free = d.free[:len(d.free)-n]
	for i, id := range heads {
		d.fits(size(i))
		desc := Descriptor{Addr: d.slotAt(id), Len: uint32(size(i)), Flags: flags}
		d.next[id], d.sizes[id] = id, size(i)
		if i < n-1 {
			desc.Flags |= Next
			desc.Next, d.next[id] = heads[i+1], heads[i+1]
		}
		fill(i, desc.Addr)
		d.SetDescriptor(int(id), desc)
	}
	d.offer(heads[0])
	return true
}

// addIndirect makes a buffer available whose descriptors are in a table.
func (d *Driver) addIndirect(n int, flags uint16, size func(i int) int, fill func(i int, at uint64)) bool {
	if len(d.free) == 0 {
		return false
	}
	id := d.free[len(d.free)-1]
	d.free = d.free[:len(d.free)-1]
	table, total := d.tables+uint64(id)*MaxParts*DescLen, 0
	for i := range n {
		desc := Descriptor{Addr: d.slotAt(id) + uint64(total), Len: uint32(size(i)), Flags: flags}
		if i < n-1 {
			desc.Flags |= Next
			desc.Next = uint16(i + 1)
		}
		total += size(i)
		d.fits(total)
		fill(i, desc.Addr)
		desc.Put(d.Memory, table+uint64(i)*DescLen)
	}
	d.next[id], d.sizes[id] = id, total
	d.SetDescriptor(int(id), Descriptor{Addr: table, Len: uint32(n * DescLen), Flags: Indirect})
	d.offer(id)
	return true
}

func (d *Driver) fits(n int) {
	if n > d.slot {
		panic(fmt.Sprintf("virtiotest: %d bytes in a slot of %d", n, d.slot))
	}
}

func (d *Driver) slotAt(id uint16) uint64 { return d.slots + uint64(id)*uint64(d.slot) }

// offer puts a head into the available ring.
func (d *Driver) offer(head uint16) {
	d.SetAvail(d.avail, head)
	d.pending[int(d.avail)&(d.Config.Size-1)] = head
	d.avail++
}

// Kick shows the device what was made available since the last Kick, and tells whether it
// wants a kick for it.
func (d *Driver) Kick() bool {
	if d.avail == d.shown {
		return false
	}
	n := d.avail - d.shown
	d.shown = d.avail
	d.SetAvailIndex(d.avail)
	if d.Config.Features&virtio.FeatureEventIndex != 0 {
		return d.avail-d.AvailEvent()-1 < n
	}
	return !d.NoNotify()
}

// Free returns how many descriptors are free.
func (d *Driver) Free() int { return len(d.free) }

// Reap takes the next buffer that the device has finished, and returns the bytes that it
// wrote, borrowed until the next Reap. ok is false if there is none. The error says how
// the device broke the ring, after which the Driver is of no more use.
func (d *Driver) Reap() (p []byte, ok bool, err error) {
	n := d.UsedIndex() - d.used
	if int(n) > int(d.shown-d.used) {
		return nil, false, fmt.Errorf("virtiotest: %d buffers finished of %d", n, d.shown-d.used)
	}
	if n == 0 {
		return nil, false, nil
	}
	id, length := d.Used(d.used)
	if want := d.pending[int(d.used)&(d.Config.Size-1)]; id != uint32(want) {
		return nil, false, fmt.Errorf("virtiotest: buffer %d finished instead of %d", id, want)
	}
	d.used++
	d.bytes = d.bytes[:0]
	left := int(length)
	for i := uint16(id); ; i = d.next[i] {
		k := min(left, d.sizes[i])
		d.bytes = d.Memory.AppendRead(d.bytes, d.slotAt(i), k)
		left -= k
		d.free = append(d.free, i)
		if d.next[i] == i {
			break
		}
	}
	if left > 0 {
		return nil, false, fmt.Errorf("virtiotest: %d bytes written, %d more than the buffer has", length, left)
	}
	return d.bytes, true, nil
}

// ReapFrame takes the next frame that a NIC's receive queue has finished, which with
// FeatureMergeable may span buffers, without its header. It is borrowed until the next ReapFrame.
func (d *Driver) ReapFrame() (frame []byte, ok bool, err error) {
	p, ok, err := d.Reap()
	if !ok {
		return nil, false, err
	}
	if len(p) < virtio.NetHeaderLen {
		return nil, false, fmt.Errorf("virtiotest: a header of %d bytes", len(p))
	}
	n := int(binary.LittleEndian.Uint16(p[virtio.NetHeaderLen-2:]))
	if n == 0 || n > 1 && d.Config.Features&virtio.FeatureMergeable == 0 {
		return nil, false, fmt.Errorf("virtiotest: a frame of %d buffers", n)
	}
	d.frame = append(d.frame[:0], p[virtio.NetHeaderLen:]...)
	for ; n > 1; n-- {
		// All of a frame are shown together (virtio 1.2 section 5.1.6.4.1).
		p, ok, err := d.Reap()
		if err != nil {
			return nil, false, err
		}
		if !ok {
			return nil, false, fmt.Errorf("virtiotest: %d buffers of a frame are missing", n-1)
		}
		d.frame = append(d.frame, p...)
	}
	return d.frame, true, nil
}

// Arm asks the device for an interrupt once it finishes more. more tells that it has
// meanwhile, and an interrupt for it may not come.
func (d *Driver) Arm() (more bool) {
	if d.Config.Features&virtio.FeatureEventIndex != 0 {
		d.SetUsedEvent(d.used)
	} else {
		d.SetNoInterrupt(false)
	}
	return d.UsedIndex() != d.used
}

// Disarm tells the device that it need not interrupt.
func (d *Driver) Disarm() {
	if d.Config.Features&virtio.FeatureEventIndex == 0 {
		d.SetNoInterrupt(true)
	}
}
