package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser"
	"sheaf/netstack/vhostuser/vhosttest"
	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// A ringWay is rings alone: a driver and a device that is nothing but its queues.
type ringWay struct {
	memory  *virtiotest.Memory
	drivers [2]*virtiotest.Driver // by direction
	queues  [2]*virtio.Queue
	header  [virtio.NetHeaderLen]byte
	frame   [guestFrame]byte
	buf     [2048]byte
	parts   [2][]byte // header and frame
}

// ringFeatures are those that a driver of today takes.
const ringFeatures = virtio.FeaturesOfRings | virtio.FeatureMergeable

func newRingWay(string) (guestWay, error) {
	m, err := virtiotest.NewMemory(4 << 20)
	if err != nil {
		return nil, err
	}
	w := &ringWay{memory: m}
	w.parts = [2][]byte{w.header[:], w.frame[:]}
	device, err := m.Device()
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	for d := range w.drivers {
		if w.drivers[d], err = virtiotest.NewDriver(m, 256, len(w.buf), ringFeatures); err != nil {
			return nil, errors.Join(err, m.Close())
		}
		if w.queues[d], err = virtio.NewQueue(device, w.drivers[d].Config); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return w, nil
}

func (w *ringWay) carry(dir int) error {
	driver, queue := w.drivers[dir], w.queues[dir]
	for range guestBatch {
		if dir == up && !driver.Send(w.parts[:]...) || dir == down && !driver.Post(len(w.buf)) {
			return errors.New("the ring is full")
		}
	}
	driver.Kick()
	for range guestBatch {
		var ok bool
		var err error
		if dir == up {
			_, ok, err = queue.Take(w.header[:], w.buf[:])
		} else {
			ok, err = queue.GiveMerged(&w.header, w.frame[:])
		}
		if !ok {
			return fmt.Errorf("the ring is empty: %w", err)
		}
	}
	queue.Publish()
	queue.Arm()
	for range guestBatch {
		var ok bool
		var err error
		if dir == up {
			_, ok, err = driver.Reap()
		} else {
			_, ok, err = driver.ReapFrame()
		}
		if !ok {
			return fmt.Errorf("a frame is missing: %w", err)
		}
	}
	return nil
}

func (w *ringWay) close() error { return w.memory.Close() }

// A vhostGuest has a NIC behind vhost-user.
type vhostGuest struct {
	*vhosttest.Guest
	frame [guestFrame]byte
}

func newVhostWay(path string) (guestWay, error) {
	nic, err := vhostuser.OpenNIC(vhostuser.NICConfig{Path: path})
	if err != nil {
		return nil, err
	}
	g, err := vhosttest.Start(path, vhosttest.Options{})
	if err != nil {
		return nil, errors.Join(err, nic.Close())
	}
	return newLinkWay(nic, &vhostGuest{Guest: g}), nil
}

func (g *vhostGuest) send() error {
	for range guestBatch {
		if err := g.Send(g.frame[:]); err != nil {
			return err
		}
	}
	return nil
}

func (g *vhostGuest) receive() error {
	for range guestBatch {
		if n, err := g.Receive(g.frame[:]); n != guestFrame {
			return fmt.Errorf("a frame of %d bytes: %w", n, err)
		}
	}
	return nil
}

func (g *vhostGuest) close() { g.Kill() }

// A streamGuest has a NIC of QEMU's behind -netdev stream: each frame from it is a write,
// and a read takes as many as there are.
type streamGuest struct {
	conn  net.Conn
	frame [4 + guestFrame]byte // behind its length
	buf   [guestBatch * (4 + guestFrame)]byte
}

func newStreamWay(path string) (guestWay, error) {
	l, err := link.OpenStream(link.Config{Path: path})
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	g := &streamGuest{conn: c}
	binary.BigEndian.PutUint32(g.frame[:], guestFrame)
	return newLinkWay(l, g), nil
}

func (g *streamGuest) send() error {
	for range guestBatch {
		if _, err := g.conn.Write(g.frame[:]); err != nil {
			return err
		}
	}
	return nil
}

func (g *streamGuest) receive() error {
	_, err := io.ReadFull(g.conn, g.buf[:])
	return err
}

func (g *streamGuest) close() { g.conn.Close() }
