package virtio

import "errors"

// Feature bits that concern a ring (virtio 1.2 chapter 6), and the one of a NIC that says
// that a frame may span buffers (section 5.1.3).
const (
	FeatureMergeable  = 1 << 15                                               // VIRTIO_NET_F_MRG_RXBUF: GiveMerged may be used
	FeatureIndirect   = 1 << 28                                               // VIRTIO_F_INDIRECT_DESC: a table of descriptors elsewhere
	FeatureEventIndex = 1 << 29                                               // VIRTIO_F_EVENT_IDX: notifications are asked for by index
	FeatureVersion1   = 1 << 32                                               // VIRTIO_F_VERSION_1: the driver knows virtio 1.0
	FeatureAccess     = 1 << 33                                               // VIRTIO_F_ACCESS_PLATFORM: refused, addresses may be behind an IOMMU
	FeaturePacked     = 1 << 34                                               // VIRTIO_F_RING_PACKED: refused
	FeaturesOfRings   = FeatureIndirect | FeatureEventIndex | FeatureVersion1 // what a device may offer for its rings
)

// MaxSize is the greatest size of a ring (virtio 1.2 section 2.7): indexes are 16 bits wide.
const MaxSize = 32768

// NetHeaderLen is the length of a NIC's struct virtio_net_hdr with num_buffers, its last
// field (virtio 1.2 section 5.1.6), in bytes.
const NetHeaderLen = 12

// What a guest can do wrong. Each error of a Queue is or wraps one of them.
var (
	ErrAddress = errors.New("virtio: address outside the guest's memory")
)

// A QueueConfig says where the driver has put a ring.
type QueueConfig struct {
	Size     int    // descriptors: a power of two, at most MaxSize
	Desc     uint64 // guest's addresses of the descriptor table, 16-aligned,
	Avail    uint64 // the available ring, 2-aligned, and
	Used     uint64 // the used ring, 4-aligned
	Features uint64 // as negotiated; bits that do not concern rings are ignored
}

// A Queue is the device's side of one split virtqueue: a device takes from it or gives to
// it, not both. It is used by one goroutine at a time. Buffers are finished in the order in which
// the driver made them available. After an error it is of no more use: each call that can
// return an error returns that one.
type Queue struct {
	next uint16
}

// NewQueue returns the device's side of a ring. It begins at the used index in the guest's
// memory: since buffers are finished in order, all before it are, whoever finished them, and none
// after it. A device that comes back after a crash goes on there, and the base that
// vhost-user sends along (SET_VRING_BASE) is of no need. The first Publish with something new
// wants an interrupt in any case, since what the driver was last told is unknown.
func NewQueue(m *Memory, c QueueConfig) (*Queue, error) {
	return &Queue{}, nil
}

// Take copies the next chain of readable buffers out, its first bytes into header and those after
// them into payload, and finishes it. n is the length of the whole chain: what does not
// fit, n > len(header)+len(payload), is left out, and what a short one does not fill stays as it was. ok
// is false if there is none.
func (q *Queue) Take(header, payload []byte) (n int, ok bool, err error) {
	return 0, false, nil
}

// Room returns how many bytes the next chain of writable buffers takes. ok is false if
// there is none.
func (q *Queue) Room() (n int, ok bool, err error) {
	return 0, false, nil
}

// Give copies header and payload into the next chain of writable buffers and finishes it.
// ok is false, and nothing is given, if there is none. A chain that is too small for them is an error,
// ErrRoom; Room tells beforehand.
func (q *Queue) Give(header, payload []byte) (ok bool, err error) {
	return false, nil
}

// GiveMerged copies a NIC's header, NetHeaderLen long, and frame into the next chain of
// writable buffers, or into as many as they need, and sets num_buffers (virtio 1.2 section 5.1.6.4).
// header is not modified. ok is false, and nothing is given, if there are too few yet; if
// even a full ring has too few, it is an error, ErrRoom.
func (q *Queue) GiveMerged(header, frame []byte) (ok bool, err error) {
	return false, nil
}

// Publish shows the driver what was finished since the last Publish, and tells whether it
// wants an interrupt for it. Call it once a batch, and before waiting.
func (q *Queue) Publish() (interrupt bool) {
	return false
}

// Arm asks the driver for a kick once it makes more available. Call it when Take, Room or
// Give said that there is none, and wait for the kick only if more is false; if it is
// true, more came meanwhile and a kick may not.
func (q *Queue) Arm() (more bool) {
	return false
}

// Disarm tells the driver that it need not kick, as while the Queue is worked on anyway.
// It may do so still.
func (q *Queue) Disarm() {}

// Base returns the index of the next chain, which vhost-user wants when it stops a ring (GET_VRING_BASE).
func (q *Queue) Base() uint16 { return q.next }
