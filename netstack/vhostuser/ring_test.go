package vhostuser

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser/vhosttest"
	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// must fails the test on an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// base stops a ring and returns where.
func base(t *testing.T, f *vhosttest.FrontEnd, ring uint32) uint32 {
	t.Helper()
	reply, err := f.Call(vhosttest.GetVringBase, 0, vhosttest.State(ring, 0))
	if err != nil || len(reply) != stateLen || binary.LittleEndian.Uint32(reply) != ring {
		t.Fatalf("base of ring %d: %x, %v", ring, reply, err)
	}
	return binary.LittleEndian.Uint32(reply[4:])
}

// GET_VRING_BASE stops the device, and says where; the rings go on there.
func TestStopAndGoOn(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	for range 3 {
		r.exchange(g)
	}
	f := g.FrontEnd()
	if b := base(t, f, vhosttest.Receive); b != 3 {
		t.Errorf("ring 0 stopped at %d, want 3", b)
	}
	if s := r.nic.Status(); s.Up || s.Fault != "" {
		t.Errorf("with a ring stopped: %+v", s)
	}
	must(t, g.Send(frame(60, 9)), r.nic.Write([][]byte{frame(60, 8)}))
	r.nothing()
	if s := r.nic.Status(); s.Dropped != 1 {
		t.Errorf("stopped: %+v", s)
	}
	if b := base(t, f, vhosttest.Transmit); b != 3 {
		t.Errorf("ring 1 stopped at %d, want 3", b)
	}
	must(t, g.Plug())
	r.expect(frame(60, 9)) // which nobody kicked for since
	r.exchange(g)
	if s := r.nic.Status(); s.Connects != 2 {
		t.Errorf("status %+v", s)
	}
}

// A guest reboots: its rings begin anew, on the same connection.
func TestReboot(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	for i := range 10 {
		r.exchange(g)
		must(t, g.Reboot())
		r.until("up again", func(s link.Status) bool { return s.Up && s.Connects == uint64(i+2) })
	}
	r.exchange(g)
}

// RESET_OWNER stops all rings, which Cloud Hypervisor relies on.
func TestResetOwner(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	r.exchange(g)
	must(t, g.FrontEnd().Acknowledged(vhosttest.ResetOwner, nil))
	if s := r.nic.Status(); s.Up {
		t.Errorf("status %+v", s)
	}
	must(t, g.Send(frame(60, 9)))
	r.nothing()
	must(t, g.Plug())
	r.expect(frame(60, 9))
}

// What is sent into a disabled ring is discarded, and nothing is received by one.
func TestDisabled(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	r.exchange(g)
	f := g.FrontEnd()
	enable := func(ring, on uint32) {
		t.Helper()
		must(t, f.Acknowledged(vhosttest.SetVringEnable, vhosttest.State(ring, on)))
	}
	enable(vhosttest.Transmit, 0)
	r.until("down", func(s link.Status) bool { return !s.Up })
	for i := range 3 * ringSizeOf(g) { // which needs the ring to be drained
		within(t, "Send", func() { must(t, g.Send(frame(60, i))) })
	}
	r.nothing()
	enable(vhosttest.Transmit, 1)
	r.until("up", func(s link.Status) bool { return s.Up })
	r.exchange(g)

	enable(vhosttest.Receive, 0)
	before := r.nic.Status()
	within(t, "Write", func() { must(t, r.nic.Write([][]byte{frame(60, 1), frame(60, 2)})) })
	if s := r.nic.Status(); s.Dropped != before.Dropped+2 || s.Sent != before.Sent {
		t.Errorf("status %+v, before %+v", s, before)
	}
	enable(vhosttest.Receive, 1)
	r.exchange(g)
}

func ringSizeOf(g *vhosttest.Guest) int { return g.Driver(vhosttest.Transmit).Config.Size }

// A Write that waits for room returns when its ring is disabled.
func TestDisabledWakes(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	frames := make([][]byte, 2*ringSizeOf(g))
	for i := range frames {
		frames[i] = frame(60, i)
	}
	done := make(chan error)
	go func() { done <- r.nic.Write(frames) }()
	r.until("a full ring", func(s link.Status) bool { return s.Sent == uint64(ringSizeOf(g)) })
	must(t, g.FrontEnd().Acknowledged(vhosttest.SetVringEnable, vhosttest.State(vhosttest.Receive, 0)))
	within(t, "Write", func() { must(t, <-done) })
	if s := r.nic.Status(); s.Dropped != uint64(ringSizeOf(g)) {
		t.Errorf("status %+v", s)
	}
}

// A memory table that comes while rings run moves them.
func TestMemoryMoves(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	table, fds := vhosttest.TableOf(g.Memory)
	for range 20 {
		r.exchange(g)
		must(t, g.FrontEnd().Acknowledged(vhosttest.SetMemTable, table, fds...))
	}
	r.exchange(g)
	if s := r.nic.Status(); s.Connects != 1 {
		t.Errorf("status %+v", s)
	}
	if n := count(t).mappings; n != 2*len(fds) { // the guest's and the back end's
		t.Errorf("%d mappings", n)
	}
}

// While rings run only a table that has them will do.
func TestMemoryWithoutRings(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{Once: true})
	other := vhosttest.Table(vhosttest.Region{Size: 1 << 16})
	must(t, g.FrontEnd().Send(vhosttest.SetMemTable, other, memfd(t, 1<<16)))
	r.fault("SET_MEM_TABLE: ring 0, which runs: ")
	g.Kill()
	r.exchange(r.guest(vhosttest.Options{}))
}

// While a ring runs neither size nor base nor address may change, and the same address is no change.
func TestRunningIsFixed(t *testing.T) {
	for name, m := range map[string]struct {
		request uint32
		payload func(*vhosttest.Guest) []byte
		word    string
	}{
		"size": {vhosttest.SetVringNum, func(*vhosttest.Guest) []byte { return vhosttest.State(0, 128) }, "ring 0 runs"},
		"base": {vhosttest.SetVringBase, func(*vhosttest.Guest) []byte { return vhosttest.State(1, 7) }, "ring 1 runs"},
		"address": {vhosttest.SetVringAddr, func(g *vhosttest.Guest) []byte {
			return vhosttest.Address(0, g.Memory, g.Driver(1).Ring)
		}, "ring 0 runs"},
		"features": {vhosttest.SetFeatures, func(*vhosttest.Guest) []byte { return vhosttest.U64(1<<32 | 1<<30) }, "while rings run"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			g := r.guest(vhosttest.Options{Once: true})
			must(t, g.FrontEnd().Acknowledged(vhosttest.SetVringAddr, vhosttest.Address(0, g.Memory, g.Driver(0).Ring)))
			r.exchange(g)
			must(t, g.FrontEnd().Send(m.request, m.payload(g)))
			r.fault(m.word)
		})
	}
}

// Each SET_VRING_CALL is answered by a signal, and a new eventfd takes the old one's place.
func TestEventfdsAreReplaced(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	r.exchange(g)
	f := g.FrontEnd()
	call, err := vhosttest.NewEventfd()
	must(t, err)
	defer call.Close()
	must(t, f.Acknowledged(vhosttest.SetVringCall, vhosttest.U64(vhosttest.Transmit), call.FD()))
	within(t, "the signal", func() { must(t, call.Wait()) })
	must(t, f.Acknowledged(vhosttest.SetVringCall, vhosttest.U64(vhosttest.Transmit|vhosttest.NoFD)))
	must(t, g.Send(frame(60, 1)))
	r.expect(frame(60, 1))
	must(t, f.Acknowledged(vhosttest.SetVringCall, vhosttest.U64(vhosttest.Transmit), g.Call(vhosttest.Transmit).FD()))

	kick, err := vhosttest.NewEventfd()
	must(t, err)
	defer kick.Close()
	must(t, f.Acknowledged(vhosttest.SetVringKick, vhosttest.U64(vhosttest.Transmit), kick.FD()))
	must(t, g.Send(frame(60, 2))) // kicks the old one
	kick.Signal()
	r.expect(frame(60, 2))
}

// A guest that breaks a ring has its rings stopped, and an error signalled; the connection
// stays, and a reboot mends it.
func TestGuestsFault(t *testing.T) {
	for number, name := range []string{vhosttest.Receive: "receive", vhosttest.Transmit: "transmit"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			g := r.guest(vhosttest.Options{})
			r.exchange(g)
			broken, err := vhosttest.NewEventfd()
			must(t, err)
			defer broken.Close()
			must(t, g.FrontEnd().Acknowledged(vhosttest.SetVringErr, vhosttest.U64(uint64(number)), broken.FD()))
			d := g.Driver(number)
			d.SetAvailIndex(d.AvailIndex() + uint16(ringSizeOf(g)) + 1)
			g.Kick(number).Signal()
			within(t, "Write", func() {
				for r.nic.Status().Up { // which looks at its ring when it has frames
					must(t, r.nic.Write([][]byte{frame(60, 1)}))
				}
			})
			r.fault("the guest: ring ", virtio.ErrIndex.Error())
			within(t, "the error's signal", func() { must(t, broken.Wait()) })
			for len(r.frames) > 0 {
				<-r.frames
			}
			must(t, g.Reboot())
			r.until("up again", func(s link.Status) bool { return s.Up && s.Fault == "" })
			r.exchange(g)
		})
	}
}

// A driver from before virtio 1.0 is not served, which the status says.
func TestLegacyDriver(t *testing.T) {
	r := newRig(t)
	g, err := vhosttest.Start(r.path, vhosttest.Options{Without: virtio.FeatureVersion1})
	must(t, err)
	defer g.Kill()
	r.fault("the guest: its driver is from before virtio 1.0")
}

// Rings that are not where rings may be are the guest's fault.
func TestRingAddress(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	f := g.FrontEnd()
	base(t, f, 0)
	address := vhosttest.Address(0, g.Memory, g.Driver(0).Ring)
	binary.LittleEndian.PutUint64(address[8:], 8) // of the descriptors
	must(t, f.Send(vhosttest.SetVringAddr, address), f.Send(vhosttest.SetVringKick, vhosttest.U64(0), g.Kick(0).FD()))
	r.fault("the guest: ring 0: ", virtio.ErrAddress.Error())
	base(t, f, 0)
	must(t, g.Reboot())
	r.until("up", func(s link.Status) bool { return s.Up })
	r.exchange(g)
}

// Memory that the front end truncates under running rings is a fault and no signal that
// ends the process.
func TestTruncatedMemory(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{Once: true})
	r.exchange(g)
	f := g.FrontEnd()
	base(t, f, 0)
	base(t, f, 1)
	// The guest's memory once more, in files that may shrink.
	table, fds := vhosttest.TableOf(g.Memory)
	for i, region := range g.Memory.Regions() {
		fds[i] = memfd(t, len(region.Data))
		_, err := unix.Pwrite(fds[i], region.Data[:1<<20], 0)
		must(t, err)
	}
	must(t, f.Acknowledged(vhosttest.SetMemTable, table, fds...))
	for i := range fds {
		n := uint64(i)
		must(t, f.Send(vhosttest.SetVringKick, vhosttest.U64(n), g.Kick(i).FD()), f.Acknowledged(vhosttest.SetVringCall, vhosttest.U64(n), g.Call(i).FD()))
	}
	r.until("up", func(s link.Status) bool { return s.Up })
	for _, fd := range fds {
		must(t, unix.Ftruncate(fd, 0))
	}
	g.Kick(vhosttest.Transmit).Signal()
	r.fault("the guest: ring ", "its file was truncated")
	// A ring that is started in such memory is one, too.
	base(t, f, 0)
	base(t, f, 1)
	for i := range fds {
		must(t, f.Send(vhosttest.SetVringKick, vhosttest.U64(uint64(i)), g.Kick(i).FD()))
	}
	_, err := f.Get(vhosttest.GetFeatures)
	must(t, err)
	r.fault("the guest: ring 0: ", "its file was truncated")
	g.Kill()
	r.exchange(r.guest(vhosttest.Options{}))
}

// Panics that are not of the guest's memory are nobody's fault but ours.
func TestOtherPanics(t *testing.T) {
	m, err := virtiotest.NewMemory(4096)
	must(t, err)
	defer m.Close()
	guest := &memory{maps: [][]byte{m.Regions()[0].Data}}
	ring := &Ring{memory: guest, failed: func(error) { t.Error("a fault of the guest") }}
	ring.enabled = true
	defer func() {
		if recover() == nil {
			t.Error("the panic did not go on")
		}
		if !ring.mu.TryLock() {
			t.Error("the ring is locked")
		}
	}()
	ring.Do(func(*virtio.Queue) error { panic("ours") })
}

// A front end that has its eventfd block, and fills it, cannot hold the gateway.
func TestBlockingCall(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	r.exchange(g)
	fd := g.Call(vhosttest.Receive).FD()
	must(t, unix.SetNonblock(fd, false))
	full := [8]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	drained := [8]byte{}
	unix.Preadv2(fd, [][]byte{drained[:]}, -1, unix.RWF_NOWAIT)
	_, err := unix.Write(fd, full[:])
	must(t, err)
	d := g.Driver(vhosttest.Receive)
	d.Arm()
	done := make(chan struct{})
	go func() { defer close(done); r.nic.Write([][]byte{frame(60, 1)}) }()
	select {
	case <-done:
		t.Fatal("the eventfd does not block")
	case <-time.After(50 * time.Millisecond):
	}
	within(t, "Close", func() { r.nic.Close() })
	within(t, "Write", func() { <-done })
	must(t, unix.SetNonblock(fd, true))
}

// Where the call comes before the kick, as from Cloud Hypervisor, the start signals it:
// what a back end before this one finished may not have been told.
func TestCallBeforeKick(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	r.exchange(g)
	f := g.FrontEnd()
	base(t, f, 0)
	base(t, f, 1)
	call, err := vhosttest.NewEventfd()
	must(t, err)
	defer call.Close()
	for i := range uint64(2) {
		must(t, f.Send(vhosttest.SetVringCall, vhosttest.U64(i), call.FD()), f.Send(vhosttest.SetVringKick, vhosttest.U64(i), g.Kick(int(i)).FD()))
	}
	within(t, "the signal", func() { must(t, call.Wait()) })
}
