package virtio

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Feature bits that concern rings (virtio 1.2 chapter 6), and the one of a NIC by which a
// frame may span buffers (section 5.1.3).
const (
	FeatureMergeable  = 1 << 15 // VIRTIO_NET_F_MRG_RXBUF: GiveMerged may be used
	FeatureIndirect   = 1 << 28 // VIRTIO_F_INDIRECT_DESC: descriptors in a table elsewhere
	FeatureEventIndex = 1 << 29 // VIRTIO_F_EVENT_IDX: notifications are asked for by index
	FeatureVersion1   = 1 << 32 // VIRTIO_F_VERSION_1: the driver knows virtio 1.0
	FeatureAccess     = 1 << 33 // VIRTIO_F_ACCESS_PLATFORM: addresses may be behind an IOMMU
	FeaturePacked     = 1 << 34 // VIRTIO_F_RING_PACKED

	FeaturesOfRings = FeatureIndirect | FeatureEventIndex | FeatureVersion1 // what a device offers for its rings
)

// MaxSize is the greatest size of a ring (virtio 1.2 section 2.7): the highest power of
// two by which a 16-bit index tells a full ring from an empty one.
const MaxSize = 32768

// NetHeaderLen is the length of a NIC's struct virtio_net_hdr, of which num_buffers is the
// last field (virtio 1.2 section 5.1.6), in bytes.
const NetHeaderLen = 12

// Layout of the rings, in bytes (virtio 1.2 sections 2.7.6 and 2.7.8): flags and index of
// 2 each, the elements, and at the end the index at which the other side wants to be notified.
const (
	ringIndex = 2
	ringStart = 4
	availElem = 2
	usedElem  = 8
	ringEvent = 2
)

const (
	availNoInterrupt = 1 // VIRTQ_AVAIL_F_NO_INTERRUPT
	usedNoNotify     = 1 // VIRTQ_USED_F_NO_NOTIFY
)

// ErrRoom says that buffers are too small for a message. It is no fault: the message may
// be dropped, and the Queue goes on.
var ErrRoom = errors.New("virtio: message does not fit into the driver's buffers")

// What is wrong with a ring. Each error of a Queue, but for ErrRoom, is or wraps one of
// these and is the guest's fault.
var (
	ErrRing       = errors.New("virtio: not a split ring")
	ErrAddress    = errors.New("virtio: address outside the guest's memory")
	ErrIndex      = errors.New("virtio: index of the available ring out of range")
	ErrDescriptor = errors.New("virtio: descriptor outside its table")
	ErrIndirect   = errors.New("virtio: indirect descriptor out of place")
	ErrChain      = errors.New("virtio: chain of descriptors longer than the ring")
	ErrDirection  = errors.New("virtio: buffer of the wrong direction")
	ErrLength     = errors.New("virtio: length of a buffer out of range")
)

// A QueueConfig says where the driver has put a ring.
type QueueConfig struct {
	Size     int    // of the ring, in descriptors: a power of two, at most MaxSize
	Desc     uint64 // the guest's address of the descriptor table, a multiple of 16
	Avail    uint64 // of the available ring, a multiple of 2
	Used     uint64 // of the used ring, a multiple of 4
	Features uint64 // as negotiated; those that do not concern rings make no difference
}

// A Queue is the device's side of one split virtqueue, from which its device either takes
// or to which it gives. It is used by one goroutine at a time. Buffers are finished in the
// order in which the driver made them available. After an error other than ErrRoom it is of
// no more use: each call that can return an error returns that one.
type Queue struct {
	memory   *Memory
	features uint64
	size     uint16
	// The parts of the ring, exactly as long as they are.
	desc, avail, used []byte

	next      uint16 // index of the next chain, and of its place in the used ring
	seen      uint16 // the driver's index when it was last loaded
	published uint16 // the used index that the driver sees
	flags     uint16 // of the used ring
	dry       bool   // the last call wanted more than was there up to seen
	told      bool   // the driver has been interrupted by this Queue
	fault     error
	entry     [descLen]byte      // of an indirect table
	header    [NetHeaderLen]byte // of a frame
}

// NewQueue returns the device's side of a ring. It begins at the used index in the guest's
// memory: since buffers are finished in order, all before it are, whoever finished them,
// and none after it. So a device that comes back after a crash goes on where it was, and
// does not need the base that vhost-user sends along (SET_VRING_BASE). What the driver was
// last told is unknown then, so that the first Publish of something asks for an interrupt.
//
// The error is or wraps ErrRing if the ring is none that a Queue serves, or ErrAddress if
// a part of it is not in the memory.
func NewQueue(m *Memory, c QueueConfig) (*Queue, error) {
	if err := c.check(binary.NativeEndian); err != nil {
		return nil, err
	}
	q := &Queue{memory: m, features: c.Features, size: uint16(c.Size)}
	var err error
	if q.desc, err = m.part(c.Desc, descLen*c.Size); err != nil {
		return nil, err
	}
	if q.avail, err = m.part(c.Avail, ringStart+availElem*c.Size+ringEvent); err != nil {
		return nil, err
	}
	if q.used, err = m.part(c.Used, ringStart+usedElem*c.Size+ringEvent); err != nil {
		return nil, err
	}
	q.next = uint16(load32(q.used) >> 16)
	q.seen, q.published = q.next, q.next
	return q, nil
}

// check returns what is wrong with a ring on a host of this byte order.
func (c QueueConfig) check(host binary.ByteOrder) error {
	switch {
	case host.Uint16([]byte{1, 0}) != 1:
		return fmt.Errorf("%w: rings are little-endian and this host is not", ErrRing)
	case c.Features&FeaturePacked != 0:
		return fmt.Errorf("%w: VIRTIO_F_RING_PACKED is not served", ErrRing)
	case c.Features&FeatureAccess != 0:
		return fmt.Errorf("%w: VIRTIO_F_ACCESS_PLATFORM is not served", ErrRing)
	case c.Size < 1 || c.Size > MaxSize || c.Size&(c.Size-1) != 0:
		return fmt.Errorf("%w: size %d is no power of two up to %d", ErrRing, c.Size, MaxSize)
	case c.Desc%16 != 0 || c.Avail%2 != 0 || c.Used%4 != 0:
		return fmt.Errorf("%w: at %#x, %#x and %#x, not aligned to 16, 2 and 4 bytes", ErrRing, c.Desc, c.Avail, c.Used)
	}
	return nil
}

// Base returns the index of the next chain, which vhost-user asks for when it stops a ring
// (GET_VRING_BASE).
func (q *Queue) Base() uint16 { return q.next }

// fail ends the Queue.
func (q *Queue) fail(err error) error {
	q.fault, q.dry = err, false
	return err
}

// ready tells whether a chain is available ahead of the next one, at index.
func (q *Queue) ready(index uint16) (bool, error) {
	if q.fault != nil {
		return false, q.fault
	}
	if index == q.seen {
		q.seen = load16(q.avail, ringIndex)
		// The driver has size buffers to make available, gets none of them back before
		// they are published, and takes none back itself (section 2.7.6.1).
		if n := q.seen - q.published; n > q.size || n < index-q.published {
			return false, q.fail(fmt.Errorf("%w: index %d after %d, published %d", ErrIndex, q.seen, index, q.published))
		}
	}
	q.dry = index == q.seen
	return !q.dry, nil
}

// head loads the first descriptor's number of the chain at index.
func (q *Queue) head(index uint16) uint16 {
	return load16(q.avail, ringStart+availElem*int(index&(q.size-1)))
}

// finish puts the next chain, of which n bytes were written, into the used ring.
func (q *Queue) finish(head uint16, n uint32) {
	b := q.used[ringStart+usedElem*int(q.next&(q.size-1)):]
	binary.LittleEndian.PutUint32(b, uint32(head))
	binary.LittleEndian.PutUint32(b[4:], n)
	q.next++
}

// Publish shows the driver what was finished since the last Publish, and tells whether it
// wants an interrupt for it. Call it once a batch, and before waiting.
func (q *Queue) Publish() (interrupt bool) {
	if q.next == q.published {
		return false
	}
	n := q.next - q.published
	q.published = q.next
	q.storeUsed()
	// The driver sets what it wants, and looks for what is used after that: either this
	// sees what it wants, or the driver what is used.
	first := !q.told
	q.told = true
	if q.features&FeatureEventIndex == 0 {
		return first || load16(q.avail, 0)&availNoInterrupt == 0
	}
	event := load16(q.avail, len(q.avail)-ringEvent)
	return first || q.next-event-1 < n // vring_need_event: event is among those just published
}

// storeUsed stores flags and index of the used ring, one word of which the device is the
// only writer.
func (q *Queue) storeUsed() { store32(q.used, uint32(q.flags)|uint32(q.published)<<16) }

// Arm asks the driver for a kick once it makes more available. Call it when Take, Room or
// Give said that there is not enough, after Publish, and wait for the kick only if more is
// false: if it is true, more came meanwhile and a kick may not.
func (q *Queue) Arm() (more bool) {
	if q.features&FeatureEventIndex != 0 {
		store16(q.used, len(q.used)-ringEvent, q.seen)
	} else {
		q.flags = 0
		q.storeUsed()
	}
	return !q.dry || load16(q.avail, ringIndex) != q.seen
}

// Disarm tells the driver that it need not kick, as while the Queue is worked on anyway.
// It may do so still. With FeatureEventIndex there is nothing to tell: the driver kicks
// once after an Arm.
func (q *Queue) Disarm() {
	if q.features&FeatureEventIndex == 0 {
		q.flags = usedNoNotify
		q.storeUsed()
	}
}
