package vsock

import (
	"testing"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// A fuzzedDevice is a port without a socket: its session's steps are done one by one, so
// that an input does the same each time.
type fuzzedDevice struct {
	host    *Host
	session *session
	drivers [2]*virtiotest.Driver
	queues  [2]*virtio.Queue
	conns   []*conn
	packet  [headerLen + window]byte
	payload [window]byte
	header  [headerLen]byte
}

func newFuzzedDevice(t *testing.T, m *virtiotest.Memory) *fuzzedDevice {
	d := &fuzzedDevice{host: NewHost(nil)}
	d.host.listeners[1883] = newListener(d.host, 1883)
	p := &port{host: d.host, name: "meter", cid: testCID}
	d.session = &session{port: p, table: newTable(testCID, &p.count)}
	d.session.saying.L, d.session.room.L = &p.mu, &p.mu
	p.session = d.session
	m.Reset()
	memory, err := m.Device()
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.drivers {
		if d.drivers[i], err = virtiotest.NewDriver(m, 8, headerLen+window, virtio.FeaturesOfRings); err != nil {
			t.Fatal(err)
		}
		if d.queues[i], err = virtio.NewQueue(memory, d.drivers[i].Config); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// step does what op says, and returns a fault of the guest.
func (d *fuzzedDevice) step(op byte, arg [4]byte) (fault error) {
	tx, rx := d.drivers[transmitQueue], d.drivers[receiveQueue]
	switch op % 8 {
	case 0, 1: // a packet, mostly of a stream that is there
		h := packetFrom(uint16(arg[0]%10), uint32(arg[1]%4), 1883)
		if arg[1]&0x80 != 0 && len(d.conns) > 0 {
			c := d.conns[int(arg[1])%len(d.conns)]
			h.srcPort, h.dstPort = c.stream.peer, c.stream.local
		}
		h.flags, h.alloc, h.forwarded = uint32(arg[2]), uint32(arg[2])<<8, uint32(arg[3]>>4)
		h.length = min(uint32(arg[3])*uint32(arg[3]), window)
		if arg[0]&0xE0 == 0xE0 { // and now and then anything
			h.srcCID, h.dstCID, h.kind = uint64(arg[1]), uint64(arg[2]), uint16(arg[3])
			h.length = uint32(arg[3]) << arg[2]
		}
		h.put((*[headerLen]byte)(d.packet[:]))
		for {
			if _, ok, _ := tx.Reap(); !ok {
				break
			}
		}
		tx.Send(d.packet[:headerLen+min(int(h.length), window)])
	case 2: // a buffer of any size
		rx.Post(min(max(int(arg[0])<<(arg[1]%8), 1), headerLen+window))
	case 3: // a descriptor that is anything
		tx.SetDescriptor(int(arg[0]%8), virtiotest.Descriptor{Addr: virtiotest.Origin + uint64(arg[1])<<12, Len: uint32(arg[2]), Flags: uint16(arg[3])})
	case 4:
		tx.Kick()
		_, fault = d.session.take(d.queues[transmitQueue], &d.header, d.payload[:])
		d.queues[transmitQueue].Publish()
	case 5:
		rx.Kick()
		_, fault = d.session.give(d.queues[receiveQueue], &d.header)
		d.queues[receiveQueue].Publish()
		for ok := true; ok; {
			_, ok, _ = rx.Reap()
		}
	case 6:
		d.dialOrAccept(arg)
	case 7:
		d.use(arg)
	}
	return fault
}

func (d *fuzzedDevice) dialOrAccept(arg [4]byte) {
	if arg[0]&1 == 0 {
		if c, _ := d.host.listeners[1883].pop(); c != nil {
			d.conns = append(d.conns, c.(*conn))
		}
		return
	}
	if st, err := d.session.table.dial(uint32(arg[1])); err == nil {
		d.conns = append(d.conns, newConn(d.session, st))
	}
}

// use does with a connection what does not wait.
func (d *fuzzedDevice) use(arg [4]byte) {
	if len(d.conns) == 0 {
		return
	}
	c := d.conns[int(arg[0])%len(d.conns)]
	switch arg[1] % 5 {
	case 0:
		if c.stream.readable() {
			c.Read(make([]byte, int(arg[2])<<(arg[3]%8)+1))
		}
	case 1:
		if c.stream.phase == open && c.stream.writable() == nil && len(c.stream.out) == 0 {
			c.stream.out = make([]byte, int(arg[2])<<(arg[3]%8))
			d.session.table.ready(c.stream)
		}
	case 2:
		c.CloseWrite()
	case 3:
		c.hard = arg[2]&1 != 0
		c.Close()
	case 4:
		d.session.expire()
	}
}

// check checks what holds at any time.
func (d *fuzzedDevice) check(t *testing.T) {
	tb := d.session.table
	memory := 0
	counted := make(map[*stream]bool)
	for _, s := range tb.streams {
		counted[s] = true
	}
	for _, c := range append(d.conns, d.host.listeners[1883].waiting...) {
		if c.stream.held {
			counted[c.stream] = true
		}
	}
	for s := range counted {
		memory += s.in.size
		if s.in.n > s.in.size || len(s.in.ring) > s.in.size {
			t.Fatalf("%d bytes in a room of %d", s.in.n, s.in.size)
		}
	}
	if tb.memory != memory || memory > memoryOfGuest || tb.calls > maxCalls || len(tb.resets) > maxResets {
		t.Fatalf("%d bytes are given, %d counted; %d calls, %d resets", memory, tb.memory, tb.calls, len(tb.resets))
	}
}

// Whatever a guest does to its rings and writes into its packets, while the host's side
// uses what it accepted and dialed: no crash, no more than a guest may have, and nothing
// is left of it when it has gone.
func FuzzDevice(f *testing.F) {
	f.Add([]byte{0, 1, 0, 255, 0, 4, 0, 0, 0, 0, 2, 255, 4, 0, 0, 5, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 5, 0x80, 255, 20, 4, 0, 0, 0, 0, 7, 0, 0, 255, 7})
	f.Add([]byte{6, 1, 9, 0, 0, 2, 255, 4, 0, 0, 2, 255, 4, 0, 0, 5, 0, 0, 0, 0, 0, 2, 0x80, 255, 0, 4, 0, 0, 0, 0, 7, 0, 1, 255, 4, 5, 0, 0, 0, 0, 7, 0, 3, 0, 0, 5, 0, 0, 0, 0})
	f.Add([]byte{3, 0, 255, 255, 7, 4, 0, 0, 0, 0, 0, 0xE5, 7, 2, 1, 4, 0, 0, 0, 0})
	m, err := virtiotest.NewMemory(2 << 20)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { m.Close() })
	f.Fuzz(func(t *testing.T, script []byte) {
		d := newFuzzedDevice(t, m)
		for len(script) >= 5 {
			fault := d.step(script[0], [4]byte(script[1:5]))
			d.check(t)
			if fault != nil {
				break // the back end stops the device
			}
			script = script[5:]
		}
		d.session.port.Stop()
		for _, c := range d.conns {
			if err := c.stream.writable(); err == nil {
				t.Fatal("a stream outlives its guest")
			}
			c.Close()
		}
		d.host.Close()
		if tb := d.session.table; tb.memory != 0 || tb.calls != 0 || len(tb.streams) != 0 {
			t.Fatalf("%d bytes, %d calls, %d streams are left", tb.memory, tb.calls, len(tb.streams))
		}
	})
}
