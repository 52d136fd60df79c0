package vhostuser

import (
	"errors"
	"fmt"
	"math/bits"

	"sheaf/netstack/virtio"
)

// vring returns the ring of a number that a front end names.
func (f *front) vring(index uint32) (*vring, error) {
	if index >= uint32(len(f.rings)) {
		return nil, fmt.Errorf("ring %d of %d: several queues for a direction are not offered", index, len(f.rings))
	}
	return &f.rings[index], nil
}

// setMemory maps the guest's memory anew. Rings that run go on in the new mapping.
func (f *front) setMemory(m *message) error {
	regions, err := parseTable(m.payload)
	if err != nil {
		return err
	}
	if len(regions) != len(m.fds) {
		return fmt.Errorf("%d regions with %d files: each must be shared", len(regions), len(m.fds))
	}
	mapped, err := mapMemory(regions, m.fds)
	m.close() // the mappings stay
	if err != nil {
		return err
	}
	old := f.memory
	f.memory = mapped
	defer old.unmap()
	if !f.running {
		return nil
	}
	queues := make([]*virtio.Queue, len(f.rings))
	for i := range f.rings {
		if queues[i], err = f.queue(&f.rings[i]); err != nil {
			f.down() // before its memory goes
			return fmt.Errorf("ring %d, which runs: %w", i, err)
		}
	}
	for i := range f.rings {
		f.rings[i].ring.move(queues[i], mapped)
	}
	return nil
}

// queue returns the device's side of a ring, where the guest's used ring ends.
func (f *front) queue(v *vring) (q *virtio.Queue, err error) {
	const descLen, availLen, usedLen = 16, 2, 8 // an element of each; rings have 6 bytes beside them (virtio 1.2 section 2.7)
	c := virtio.QueueConfig{Size: v.size, Features: f.features}
	for _, part := range []struct {
		guest *uint64
		user  uint64
		n     int
	}{{&c.Desc, v.address.desc, descLen * v.size}, {&c.Avail, v.address.avail, 6 + availLen*v.size}, {&c.Used, v.address.used, 6 + usedLen*v.size}} {
		if *part.guest, err = f.memory.table.UserToGuest(part.user, uint64(part.n)); err != nil {
			return nil, err
		}
	}
	return f.memory.newQueue(c)
}

// setState takes SET_VRING_NUM, SET_VRING_BASE or SET_VRING_ENABLE.
func (f *front) setState(m *message) error {
	index, n, err := parseState(m.payload)
	if err != nil {
		return err
	}
	v, err := f.vring(index)
	switch {
	case err != nil:
		return err
	case m.request == setVringEnable:
		return f.enable(v, n)
	case v.ring != nil:
		return fmt.Errorf("ring %d runs", index)
	case m.request == setVringBase && n > 0xffff:
		return fmt.Errorf("ring %d: %#x is no index of a split ring", index, n)
	case m.request == setVringBase:
		v.base = uint16(n)
	case n > virtio.MaxSize || bits.OnesCount32(n) != 1:
		return fmt.Errorf("ring %d: %d is no size of a ring", index, n)
	default:
		v.size = int(n)
	}
	return nil
}

// enable may come before everything else: QEMU sends it right after the negotiation.
func (f *front) enable(v *vring, n uint32) error {
	if n > 1 {
		return fmt.Errorf("%d, neither 0 nor 1", n)
	}
	v.enabled = n == 1
	f.reenable()
	return nil
}

// enabled reports whether a ring is to be: without protocol features all are.
func (f *front) enabled(v *vring) bool { return v.enabled || f.features&featureProtocol == 0 }

// reenable tells rings that run, and whoever asks for the device's state.
func (f *front) reenable() {
	if !f.running {
		return
	}
	all := true
	for i := range f.rings {
		on := f.enabled(&f.rings[i])
		f.rings[i].ring.enable(on)
		all = all && on
	}
	f.events.up(all)
}

func (f *front) setAddress(payload []byte) error {
	a, err := parseRingAddress(payload)
	if err != nil {
		return err
	}
	v, err := f.vring(a.index)
	switch {
	case err != nil:
		return err
	case a.flags != 0:
		return fmt.Errorf("ring %d: flags %#x: logging is not offered", a.index, a.flags)
	case v.ring != nil && a != v.address:
		return fmt.Errorf("ring %d runs", a.index)
	}
	v.address, v.addressed = a, true
	return nil
}

// setEvent takes SET_VRING_KICK, SET_VRING_CALL or SET_VRING_ERR.
func (f *front) setEvent(m *message) error {
	index, none, err := parseRingFD(m.payload)
	if err != nil {
		return err
	}
	v, err := f.vring(index)
	if err != nil {
		return err
	}
	if none && m.request == setVringKick {
		return fmt.Errorf("ring %d: none to wait for: polling is not offered", index)
	}
	var e *event
	if !none {
		fd, err := m.take()
		if err != nil {
			return err
		}
		if e, err = newEvent(fd); err != nil {
			return fmt.Errorf("ring %d: %w", index, err)
		}
	}
	slot := map[request]**event{setVringKick: &v.kick, setVringCall: &v.call, setVringErr: &v.err}[m.request]
	old := *slot
	*slot = e
	if v.ring != nil && m.request != setVringErr {
		v.ring.rewire(v.kick, v.call)
	}
	old.close()
	return nil
}

// getBase stops a ring, and with it the device, and returns where it stopped.
func (f *front) getBase(payload []byte) ([]byte, error) {
	index, _, err := parseState(payload)
	if err != nil {
		return nil, err
	}
	v, err := f.vring(index)
	if err != nil {
		return nil, err
	}
	f.down()
	v.stop()
	return appendState(nil, index, uint32(v.base)), nil
}

// stop forgets what the front end sends anew when it starts the ring.
func (v *vring) stop() {
	v.kick.close()
	v.call.close()
	v.kick, v.call, v.broken = nil, nil, false
}

// stopAll is for RESET_OWNER, by which Cloud Hypervisor resets a device.
func (f *front) stopAll() {
	f.down()
	for i := range f.rings {
		f.rings[i].stop()
	}
}

// proceed starts the device if all rings have what they need.
func (f *front) proceed() {
	if f.running || f.memory == nil {
		return
	}
	for i := range f.rings {
		if v := &f.rings[i]; v.size == 0 || !v.addressed || v.kick == nil || v.broken {
			return
		}
	}
	if err := f.begin(); err != nil {
		f.breakDown(err)
	}
}

// begin starts the device. The error is a fault of the guest.
func (f *front) begin() error {
	if f.features&virtio.FeatureVersion1 == 0 {
		return errors.New("its driver is from before virtio 1.0")
	}
	rings := make([]*Ring, len(f.rings))
	for i := range f.rings {
		v := &f.rings[i]
		q, err := f.queue(v)
		if err != nil {
			return fmt.Errorf("ring %d: %w", i, err)
		}
		rings[i] = &Ring{direction: f.offer.Queues[i], queue: q, memory: f.memory, kick: v.kick, call: v.call, enabled: f.enabled(v)}
		rings[i].failed = f.failed(i, rings[i])
	}
	for i, r := range rings {
		f.rings[i].ring = r
		r.rewire(r.kick, r.call) // what the last back end finished may not have been told
	}
	f.running = true
	f.device.Start(rings, f.features)
	f.reenable()
	return nil
}

// A ringFault is what a guest did wrong in a ring.
type ringFault struct {
	number int
	ring   *Ring
	err    error
}

// failed returns what a ring calls when the guest is at fault. Only the first fault of a
// device is of interest: by it all rings stop.
func (f *front) failed(number int, ring *Ring) func(error) {
	return func(err error) {
		select {
		case f.faults <- ringFault{number, ring, err}:
		default:
		}
	}
}

// end stops the device, if it runs.
func (f *front) end() {
	if !f.running {
		return
	}
	f.running = false
	for i := range f.rings {
		v := &f.rings[i]
		v.base = v.ring.stop()
		v.ring = nil
	}
	f.device.Stop()
}

// down is end, and tells of it.
func (f *front) down() {
	f.end()
	f.events.up(false)
}

// breakDown stops the device for a fault of the guest, until all rings are started anew.
func (f *front) breakDown(err error) {
	f.down()
	for i := range f.rings {
		f.rings[i].broken = true
		if e := f.rings[i].err; e != nil {
			e.signal()
		}
	}
	f.events.fault(fmt.Errorf("the guest: %w", err))
}

// watch acts on faults of rings until faults is closed.
func (f *front) watch() {
	for fault := range f.faults {
		f.mu.Lock()
		if f.rings[fault.number].ring == fault.ring { // and was not stopped meanwhile
			f.breakDown(fmt.Errorf("ring %d: %w", fault.number, fault.err))
		}
		f.mu.Unlock()
	}
}

// close ends everything that the connection brought, and does not tell of it: the
// connection itself is left. The rings are over before faults are.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end()
	for i := range f.rings {
		v := &f.rings[i]
		v.stop()
		v.err.close()
		v.err = nil
	}
	f.memory.unmap()
	f.memory = nil
	close(f.faults)
}
