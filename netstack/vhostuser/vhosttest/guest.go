package vhosttest

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"sheaf/netstack/link"
	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// Queues of a NIC (virtio 1.2 section 5.1.2).
const (
	Receive  = 0
	Transmit = 1
)

// An Options says what a Guest is like. Its zero value is a guest that takes all features
// that are offered, as Linux's.
type Options struct {
	Listen  bool   // the hypervisor listens at the path, and unlinks what is there, as QEMU does
	Once    bool   // the hypervisor does not call again when its back end has gone
	Without uint64 // features that the driver does not take
	Size    int    // of the rings; 0: 256, as QEMU's are
}

// ringSize is that of QEMU's NICs.
const ringSize = 256

// mergeSlot is the size of a buffer of a driver that merges them; others have one frame a buffer.
const mergeSlot = 2048

// retry is how long a hypervisor waits before it calls again (reconnect=1 would be a second).
const retry = 5 * time.Millisecond

// A Guest is a guest with a NIC and its hypervisor, which finds its back end again when
// that has gone. Send and Receive are each for one goroutine at a time.
type Guest struct {
	Memory *virtiotest.Memory

	options  Options
	features uint64 // of its driver
	path     string
	listener *net.UnixListener
	rings    [2]*ring
	done     chan struct{} // closed when hypervise has ended
	once     sync.Once

	mu     sync.Mutex // of what follows
	front  *FrontEnd  // nil while there is none
	ready  bool       // the back end knows the rings
	killed bool
}

// A ring is a driver of one queue, and its notifications.
type ring struct {
	mu         sync.Mutex
	driver     *virtiotest.Driver
	kick, call *Eventfd
	dead       bool // its memory is gone
	header     [virtio.NetHeaderLen]byte
}

// Start starts a guest, and does not wait for its back end.
func Start(path string, o Options) (*Guest, error) {
	if o.Size == 0 {
		o.Size = ringSize
	}
	g := &Guest{options: o, features: (virtio.FeaturesOfRings | virtio.FeatureMergeable) &^ o.Without, path: path, done: make(chan struct{})}
	if err := g.boot(); err != nil {
		return nil, errors.Join(err, g.free())
	}
	go g.hypervise()
	return g, nil
}

// boot has the driver set its rings up.
func (g *Guest) boot() (err error) {
	slots := g.slots()
	const page, rest = 4096, 1 << 20 // rest: for the rings themselves and tables of descriptors
	size := (g.options.Size*(slots[0]+slots[1]) + rest) &^ (page - 1)
	if g.Memory, err = virtiotest.NewMemory(rest, size); err != nil { // two, as of a machine with a hole below 4 GiB
		return err
	}
	for i := range g.rings {
		r := &ring{}
		g.rings[i] = r
		if r.kick, err = NewEventfd(); err != nil {
			return err
		}
		if r.call, err = NewEventfd(); err != nil {
			return err
		}
	}
	if err := g.probe(slots[Receive]); err != nil {
		return err
	}
	if g.options.Listen {
		os.Remove(g.path)
		g.listener, err = net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: g.path})
	}
	return err
}

// slots are the sizes of the buffers of each ring. What is too long for a frame is sent, too.
func (g *Guest) slots() (slots [2]int) {
	const frame = virtio.NetHeaderLen + link.MaxFrame + 1
	slots[Transmit], slots[Receive] = frame, frame
	if g.features&virtio.FeatureMergeable != 0 {
		slots[Receive] = mergeSlot
	}
	return slots
}

// probe has the driver set the rings up in memory that is zero.
func (g *Guest) probe(receive int) (err error) {
	slots := g.slots()
	slots[Receive] = receive
	for i, r := range g.rings {
		if r.driver, err = virtiotest.NewDriver(g.Memory, g.options.Size, slots[i], g.features); err != nil {
			return err
		}
	}
	for g.rings[Receive].driver.Post(slots[Receive]) {
	}
	g.rings[Receive].driver.Kick()
	return nil
}

// Reboot has the guest start anew, and returns when its driver has set the rings up: the
// connection stays. No Send or Receive may be under way.
func (g *Guest) Reboot() error {
	f := g.FrontEnd()
	for i := range g.rings {
		if _, err := f.Call(GetVringBase, 0, State(uint32(i), 0)); err != nil {
			return err
		}
	}
	return g.Reset(g.slots()[Receive])
}

// Reset is a Reboot of which the back end was told, with buffers of so many bytes to
// receive into.
func (g *Guest) Reset(receive int) error {
	g.Memory.Reset()
	return errors.Join(g.probe(receive), g.start(g.FrontEnd()))
}

// Plug starts the rings where they are, after they were stopped.
func (g *Guest) Plug() error { return g.start(g.FrontEnd()) }

// FrontEnd returns the connection with the back end, nil while there is none that has been told of the rings.
func (g *Guest) FrontEnd() *FrontEnd {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ready {
		return nil
	}
	return g.front
}

// Driver returns the driver of a ring, for tests that do what no driver does. No Send or
// Receive may be under way.
func (g *Guest) Driver(number int) *virtiotest.Driver { return g.rings[number].driver }

// Kick and Call return the notifications of a ring.
func (g *Guest) Kick(number int) *Eventfd { return g.rings[number].kick }
func (g *Guest) Call(number int) *Eventfd { return g.rings[number].call }

// free gives everything back.
func (g *Guest) free() error {
	var errs []error
	for _, r := range g.rings {
		if r == nil {
			continue
		}
		for _, e := range []*Eventfd{r.kick, r.call} {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
		r.mu.Lock() // no Send or Receive is under way, and none will be
		r.dead = true
		r.mu.Unlock()
	}
	if g.Memory != nil {
		errs = append(errs, g.Memory.Close())
	}
	return errors.Join(errs...)
}

// hypervise keeps a connection with a back end until Kill.
func (g *Guest) hypervise() {
	defer close(g.done)
	for {
		f, err := g.connect()
		if err == nil {
			err = g.keep(f)
			if err == nil {
				if g.plug(f) == nil {
					g.plugged()
					<-f.ended
				}
				err = g.keep(nil)
			}
			f.Close()
		}
		if errors.Is(err, net.ErrClosed) || g.options.Once {
			return
		}
		time.Sleep(retry)
	}
}

func (g *Guest) connect() (*FrontEnd, error) {
	if g.listener == nil {
		if err := g.keep(nil); err != nil {
			return nil, err
		}
		return Dial(g.path)
	}
	c, err := g.listener.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return newFrontEnd(c), nil
}

// keep makes f the one that Kill closes. The error after Kill is net.ErrClosed.
func (g *Guest) keep(f *FrontEnd) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.front, g.ready = f, false
	if g.killed {
		return net.ErrClosed
	}
	return nil
}

func (g *Guest) plugged() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ready = true
}

// plug negotiates with a back end and starts the rings where they are.
func (g *Guest) plug(f *FrontEnd) error {
	if err := f.Negotiate(g.features, ProtocolReplyAck); err != nil {
		return err
	}
	for i, r := range g.rings {
		if err := f.Send(SetVringCall, U64(uint64(i)), r.call.FD()); err != nil {
			return err
		}
	}
	for i := range g.rings {
		if err := f.Acknowledged(SetVringEnable, State(uint32(i), 1)); err != nil {
			return err
		}
	}
	return g.start(f)
}

// start says what a driver that is ready has set up.
func (g *Guest) start(f *FrontEnd) error {
	if err := f.Send(SetFeatures, U64(g.features|FeatureProtocol)); err != nil {
		return err
	}
	table, fds := TableOf(g.Memory)
	if err := f.Acknowledged(SetMemTable, table, fds...); err != nil {
		return err
	}
	for i, r := range g.rings {
		n := uint32(i)
		steps := []error{
			f.Send(SetVringNum, State(n, uint32(g.options.Size))),
			f.Send(SetVringBase, State(n, uint32(r.driver.UsedIndex()))),
			f.Send(SetVringAddr, Address(n, g.Memory, r.driver.Ring)),
			f.Send(SetVringKick, U64(uint64(i)), r.kick.FD()),
			f.Send(SetVringCall, U64(uint64(i)), r.call.FD()),
		}
		if err := errors.Join(steps...); err != nil {
			return err
		}
	}
	return nil
}

// Send is of linktest.Guest.
func (g *Guest) Send(frame []byte) error {
	r := g.rings[Transmit]
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return net.ErrClosed
	}
	for !r.driver.Send(r.header[:], frame) {
		done, err := r.reap()
		if err != nil {
			return err
		}
		if !done {
			if err := r.wait(); err != nil {
				return err
			}
		}
	}
	r.show()
	return nil
}

// reap takes back what the device has finished.
func (r *ring) reap() (done bool, err error) {
	for {
		_, ok, err := r.driver.Reap()
		if err != nil || !ok {
			return done, err
		}
		done = true
	}
}

// wait waits until the device has finished something.
func (r *ring) wait() error {
	if r.driver.Arm() {
		return nil
	}
	defer r.driver.Disarm()
	return r.call.Wait()
}

// show kicks if the device wants that.
func (r *ring) show() {
	if r.driver.Kick() {
		r.kick.Signal()
	}
}

// Receive is of linktest.Guest.
func (g *Guest) Receive(buf []byte) (int, error) {
	r := g.rings[Receive]
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.dead {
		frame, ok, err := r.driver.ReapFrame()
		if err != nil {
			return 0, err
		}
		if ok {
			n := copy(buf, frame)
			for r.driver.Post(g.slots()[Receive]) {
			}
			r.show()
			return n, nil
		}
		if err := r.wait(); err != nil {
			return 0, err
		}
	}
	return 0, net.ErrClosed
}

// Kill ends the guest as SIGKILL ends its hypervisor.
func (g *Guest) Kill() {
	g.once.Do(func() {
		g.mu.Lock()
		g.killed = true
		if g.front != nil {
			g.front.Close()
		}
		g.mu.Unlock()
		if g.listener != nil {
			g.listener.SetUnlinkOnClose(false) // a killed QEMU leaves its socket
			g.listener.Close()
		}
		<-g.done
		g.free()
	})
}
