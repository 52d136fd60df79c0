package virtiotest

import "sheaf/netstack/virtio"

// A Driver is the driver's side of one ring. It is used by one goroutine at a time, which
// may run beside that of the device. Its buffers are slots of the Memory, one a
// descriptor of the ring, as long as NewDriver was told.
type Driver struct {
	config virtio.QueueConfig
}

// NewDriver sets a ring of size descriptors up in m, and a buffer of slot bytes for each.
func NewDriver(m *Memory, size, slot int, features uint64) (*Driver, error) { return &Driver{}, nil }

// Config says where the ring is.
func (d *Driver) Config() virtio.QueueConfig { return d.config }

// Send makes the concatenation of parts available to be read, each part one descriptor. It
// is false if the ring is full.
func (d *Driver) Send(parts ...[]byte) bool { return false }

// Post makes a buffer available to be written, of one descriptor for each size. It is
// false if the ring is full.
func (d *Driver) Post(sizes ...int) bool { return false }

// Kick shows the device what was made available since the last Kick, and tells whether it
// wants a kick for it.
func (d *Driver) Kick() bool { return false }

// Reap takes the next buffer that the device has finished, and returns the bytes that it
// wrote, borrowed until the next call of Send, Post or Reap. ok is false if there is none.
func (d *Driver) Reap() (p []byte, ok bool) { return nil, false }

// ReapFrame takes the next frame of a NIC that the device has finished, which with
// FeatureMergeable may span buffers, without its header.
func (d *Driver) ReapFrame() (frame []byte, ok bool) { return nil, false }

// Arm asks the device for an interrupt once it finishes more; more tells that it has meanwhile.
func (d *Driver) Arm() (more bool) { return false }

// Disarm tells the device that it need not interrupt.
func (d *Driver) Disarm() {}
