package vhostuser

import (
	"runtime/debug"
	"sync"

	"sheaf/netstack/virtio"
)

// A Ring is one queue of a Device from its Start to its Stop. Do and Wait are for one
// goroutine at a time; what the front end changes meanwhile, as memory that moves or
// another eventfd, they take over by themselves.
type Ring struct {
	direction Direction
	failed    func(error) // told of the guest's fault; does not wait

	mu      sync.Mutex
	queue   *virtio.Queue
	memory  *memory // of queue
	kick    *event
	call    *event // nil: the driver does not want interrupts
	enabled bool
	over    bool
	fault   bool // queue is of no more use
}

// Do calls f with the ring's queue, publishes what f has finished of it and interrupts the
// guest if its driver wants that. f must neither wait nor keep the queue. An error of
// f is taken for one of the queue, and so of the guest: all rings of the device are
// stopped. It is ErrStopped when that is so, for whatever reason, and ErrDisabled while
// the front end has the ring disabled; then f is not called.
func (r *Ring) Do(f func(*virtio.Queue) error) error {
	call, err := r.do(f)
	if call != nil {
		call.signal()
	}
	return err
}

func (r *Ring) do(f func(*virtio.Queue) error) (call *event, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive(); err != nil {
		return nil, err
	}
	if !r.enabled {
		return nil, ErrDisabled
	}
	return r.use(f)
}

// use is do in any state but over. Whoever calls it holds mu, and signals call if that is not nil.
func (r *Ring) use(f func(*virtio.Queue) error) (call *event, err error) {
	interrupt, err := r.guarded(f)
	if err != nil {
		r.fault = true
		r.failed(err)
		return nil, ErrStopped
	}
	if interrupt {
		return r.call, nil
	}
	return nil, nil
}

// guarded calls f and publishes; a fault in the guest's memory is an error.
func (r *Ring) guarded(f func(*virtio.Queue) error) (interrupt bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer r.memory.caught(&err)
	if err := f(r.queue); err != nil {
		return false, err
	}
	return r.queue.Publish(), nil
}

// Wait returns nil when the driver may have made more available since Do. It is ErrStopped
// when the ring is over. While the front end has the ring disabled it waits for the end of
// that, and what the guest sends meanwhile it takes and discards ("Ring states" of the protocol).
func (r *Ring) Wait() error {
	for {
		w, err := r.arm()
		if w.call != nil {
			w.call.signal()
		}
		switch {
		case err != nil:
			return err
		case w.more && w.enabled:
			return nil
		case w.more:
			continue
		}
		w.kick.wait()
		if w.enabled {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.alive()
		}
	}
}

// A waiting is what a Wait begins with.
type waiting struct {
	kick, call    *event // to be waited for; to be signalled before if not nil
	enabled, more bool   // more: not to be waited for
}

// arm asks the driver for a kick.
func (r *Ring) arm() (w waiting, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive(); err != nil {
		return waiting{}, err
	}
	w = waiting{kick: r.kick, enabled: r.enabled}
	if !r.enabled && r.direction == ToGuest {
		return w, nil
	}
	w.call, err = r.use(func(q *virtio.Queue) error {
		if !r.enabled {
			if err := discard(q); err != nil {
				return err
			}
		}
		w.more = q.Arm()
		return nil
	})
	return w, err
}

// discardAtOnce is the most that is discarded under the lock of the ring: a few microseconds.
const discardAtOnce = 64

func discard(q *virtio.Queue) error {
	for range discardAtOnce {
		if _, ok, err := q.Take(nil, nil); !ok || err != nil {
			return err
		}
	}
	return nil
}

// alive returns ErrStopped if the ring is over or at fault. Whoever calls it holds mu.
func (r *Ring) alive() error {
	if r.over || r.fault {
		return ErrStopped
	}
	return nil
}

// What follows is for the front end.

// stop ends the ring, and returns where it stopped. Do and Wait return.
func (r *Ring) stop() (base uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.kick.interrupt()
	return r.queue.Base()
}

// enable enables or disables the ring. A Wait that is under way returns or goes on accordingly.
func (r *Ring) enable(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enabled = on
	r.kick.interrupt()
}

// move has the ring go on with its queue in another mapping of memory.
func (r *Ring) move(q *virtio.Queue, m *memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue, r.memory = q, m
	r.kick.interrupt() // with another ring the event that it was armed for may be behind it
}

// rewire has the ring use these eventfds. It signals call: what was finished before may not have been told.
func (r *Ring) rewire(kick, call *event) {
	r.mu.Lock()
	old := r.kick
	r.kick, r.call = kick, call
	r.mu.Unlock()
	old.interrupt()
	if call != nil {
		call.signal()
	}
}
