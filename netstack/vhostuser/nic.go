package vhostuser

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"sheaf/netstack/link"
	"sheaf/netstack/virtio"
)

// Feature bits of a NIC (virtio 1.2 section 5.1.3) that are offered, beside
// virtio.FeatureMergeable. None of them lets the guest leave work on a packet to the
// gateway, so that each comes with its own checksum and no longer than the MTU.
const (
	featureMTU = 1 << 3 // the MTU is in the configuration space
	featureMAC = 1 << 5 // so is the address
)

// Parts of a NIC's configuration space (section 5.1.4), up to the last that is of use: address,
// status, max_virtqueue_pairs and MTU.
const (
	configMAC = 0
	configMTU = 10
	configLen = 12
)

// The queues of a NIC (section 5.1.2).
const (
	receiveQueue  = 0
	transmitQueue = 1
)

// The header before each frame (section 5.1.6), of virtio.NetHeaderLen bytes: where flags and the
// kind of segmentation are, and the number of buffers.
const (
	headerFlags      = 0
	headerGSO        = 1
	headerBuffers    = 10
	flagNeedsPartial = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
)

// batchSize is the most frames that are moved under one lock and with one interrupt. The
// prototype's guest had 10 frames a kick; 64 is what a burst of fan-out has room in, and some 20 us.
const batchSize = 64

// minMTU is the least that the MTU field may have (section 5.1.4.1).
const minMTU = 68

// A NICConfig says where a guest's NIC is to be had, and what the guest is told of it.
type NICConfig struct {
	Path string           // of the unix socket
	Dial bool             // the hypervisor listens there, not the gateway
	MAC  net.HardwareAddr // 6 bytes; nil: the hypervisor knows
	MTU  int              // bytes of a packet, 68 to link.MaxMTU; 0: the hypervisor knows
	Log  *slog.Logger     // nil: none
}

// A NIC is a guest's network interface, virtio-net. It is a link.Link.
type NIC struct {
	backend *Backend
	offer   Offer
	reader  reader
	writer  writer

	mu     sync.Mutex
	change sync.Cond // of rings and closed
	rings  []*Ring   // nil while there is no guest
	merge  bool      // buffers may be merged
	closed bool

	received, sent, dropped, invalid atomic.Uint64
}

var _ link.Link = (*NIC)(nil)

// newNIC returns a NIC that no Backend has yet.
func newNIC() *NIC {
	n := &NIC{offer: Offer{
		Name:     "virtio-net",
		Queues:   []Direction{receiveQueue: ToGuest, transmitQueue: FromGuest},
		Features: virtio.FeatureMergeable,
	}}
	n.change.L = &n.mu
	n.reader.take, n.writer.give = n.reader.takeAll, n.writer.giveAll
	n.writer.header[headerBuffers] = 1 // of a frame that is not merged (section 5.1.6.4.1)
	return n
}

// OpenNIC makes a NIC. Errors are those of Open, or say what is wrong with c.
func OpenNIC(c NICConfig) (*NIC, error) {
	n := newNIC()
	space := make([]byte, configLen)
	if c.MAC != nil {
		if len(c.MAC) != 6 || c.MAC[0]&1 != 0 {
			return nil, fmt.Errorf("NIC: %v is not the Ethernet address of one station", c.MAC)
		}
		copy(space[configMAC:], c.MAC)
		n.offer.Features |= featureMAC
		n.offer.Config = space
	}
	if c.MTU != 0 {
		if c.MTU < minMTU || c.MTU > link.MaxMTU {
			return nil, fmt.Errorf("NIC: an MTU of %d, not within %d and %d", c.MTU, minMTU, link.MaxMTU)
		}
		binary.LittleEndian.PutUint16(space[configMTU:], uint16(c.MTU))
		n.offer.Features |= featureMTU
		n.offer.Config, n.offer.MTU = space, c.MTU
	}
	var err error
	n.backend, err = Open(Config{Path: c.Path, Dial: c.Dial, Log: c.Log}, (*nicDevice)(n))
	if err != nil {
		return nil, err
	}
	return n, nil
}

// A nicDevice is a NIC as its Backend has it.
type nicDevice NIC

func (n *nicDevice) Offer() Offer { return n.offer }

func (n *nicDevice) Start(rings []*Ring, features uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rings, n.merge = rings, features&virtio.FeatureMergeable != 0
	n.change.Broadcast()
}

func (n *nicDevice) Stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rings = nil
}

// ring returns a ring of the guest that is there, and waits for one with wait; else it is nil
// while none is. The error is os.ErrClosed after Close.
func (n *NIC) ring(number int, wait bool) (r *Ring, merge bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for wait && n.rings == nil && !n.closed {
		n.change.Wait()
	}
	switch {
	case n.closed:
		return nil, false, os.ErrClosed
	case n.rings == nil:
		return nil, false, nil
	}
	return n.rings[number], n.merge, nil
}

// over forgets the guest that one of these rings is of: its Stop is under way.
func (n *NIC) over(ring *Ring) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Contains(n.rings, ring) {
		n.rings = nil
	}
}

// Read is of link.Link.
func (n *NIC) Read(bufs [][]byte, sizes []int) (int, error) {
	for {
		ring, _, err := n.ring(transmitQueue, true)
		if err != nil {
			return 0, err
		}
		r := &n.reader
		r.bufs, r.sizes, r.n, r.invalid = bufs, sizes, 0, 0
		err = ring.Do(r.take)
		r.bufs, r.sizes = nil, nil
		n.received.Add(uint64(r.n))
		n.invalid.Add(uint64(r.invalid))
		if r.n > 0 {
			return r.n, nil // what came before a fault is whole
		}
		if r.invalid == 0 && !errors.Is(err, ErrStopped) {
			err = ring.Wait()
		}
		if errors.Is(err, ErrStopped) {
			n.over(ring)
		}
	}
}

// A reader is what a Read is about. It is a part of NIC, so that Do can be given a
// function that was made once.
type reader struct {
	bufs       [][]byte
	sizes      []int
	n, invalid int
	header     [virtio.NetHeaderLen]byte
	take       func(*virtio.Queue) error // takeAll
}

// takeAll takes frames until there are no more, or as many as fit, the invalid included.
func (r *reader) takeAll(q *virtio.Queue) error {
	q.Disarm()
	for r.n+r.invalid < len(r.bufs) {
		size, ok, err := q.Take(r.header[:], r.bufs[r.n])
		if err != nil || !ok {
			return err
		}
		frame := size - len(r.header)
		if frame < link.MinFrame || frame > link.MaxFrame || r.header[headerFlags]&flagNeedsPartial != 0 || r.header[headerGSO] != 0 {
			r.invalid++
			continue
		}
		r.sizes[r.n] = frame
		r.n++
	}
	return nil
}

// Write is of link.Link. A frame that is longer than the driver's buffers, all of a ring if
// they are mergeable, is dropped.
func (n *NIC) Write(frames [][]byte) error {
send:
	for len(frames) > 0 {
		ring, merge, err := n.ring(receiveQueue, false)
		if err != nil {
			return err
		}
		if ring == nil {
			break
		}
		w := &n.writer
		w.frames, w.merge, w.n, w.unfit = frames[:min(len(frames), batchSize)], merge, 0, 0
		err = ring.Do(w.give)
		w.frames = nil
		frames = frames[w.n:]
		n.sent.Add(uint64(w.n - w.unfit))
		n.dropped.Add(uint64(w.unfit))
		if err == nil && w.n == 0 {
			err = ring.Wait()
		}
		switch {
		case errors.Is(err, ErrStopped):
			n.over(ring)
		case err != nil:
			break send
		}
	}
	n.dropped.Add(uint64(len(frames)))
	return nil
}

// A writer is what a Write is about, as reader.
type writer struct {
	frames   [][]byte
	merge    bool
	n, unfit int
	header   [virtio.NetHeaderLen]byte
	give     func(*virtio.Queue) error // giveAll
}

// giveAll gives frames until there is no more room.
func (w *writer) giveAll(q *virtio.Queue) error {
	q.Disarm()
	for _, frame := range w.frames {
		ok, err := w.giveOne(q, frame)
		if err != nil || !ok {
			return err
		}
		w.n++
	}
	return nil
}

// giveOne gives one frame, or counts it as one that cannot be given.
func (w *writer) giveOne(q *virtio.Queue, frame []byte) (ok bool, err error) {
	switch {
	case len(frame) < link.MinFrame || len(frame) > link.MaxFrame:
		err = virtio.ErrRoom
	case w.merge:
		ok, err = q.GiveMerged(&w.header, frame)
	default:
		ok, err = q.Give(w.header[:], frame)
	}
	if errors.Is(err, virtio.ErrRoom) {
		w.unfit++
		return true, nil
	}
	return ok, err
}

// BatchSize is of link.Link.
func (n *NIC) BatchSize() int { return batchSize }

// Status is of link.Link.
func (n *NIC) Status() link.Status {
	s := n.backend.Status()
	s.Received, s.Sent, s.Dropped, s.Invalid = n.received.Load(), n.sent.Load(), n.dropped.Load(), n.invalid.Load()
	return s
}

// Close is of link.Link.
func (n *NIC) Close() error {
	n.mu.Lock()
	n.closed = true
	n.change.Broadcast()
	n.mu.Unlock()
	return n.backend.Close()
}
