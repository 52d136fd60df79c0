package virtio_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// wakeups are the notifications between a driver and a device, as eventfds: a second one
// before the first was taken is no second one.
type wakeups struct {
	kick, interrupt chan struct{}
	failed          chan struct{} // closed when one side gave up,
	once            sync.Once     // once
}

var errLost = errors.New("nothing came for a minute: a wakeup is lost")

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *wakeups) wait(c chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-w.failed:
		return errors.New("the other side has failed")
	case <-time.After(time.Minute):
		w.once.Do(func() { close(w.failed) })
		return errLost
	}
}

// device takes n numbered messages.
func (w *wakeups) device(q *virtio.Queue, n int) error {
	var b [8]byte
	for i := 0; i < n; {
		_, ok, err := q.Take(nil, b[:])
		if err != nil {
			return err
		}
		if ok {
			if got := binary.LittleEndian.Uint64(b[:]); got != uint64(i) {
				return fmt.Errorf("message %d instead of %d", got, i)
			}
			i++
			if i%3 != 0 && i < n {
				continue // small batches: more to notify of
			}
		}
		if q.Publish() {
			notify(w.interrupt)
		}
		if ok || q.Arm() {
			continue
		}
		if err := w.wait(w.kick); err != nil {
			return err
		}
		q.Disarm()
	}
	return nil
}

// driver sends n numbered messages and waits until all are finished.
func (w *wakeups) driver(d *virtiotest.Driver, n int) error {
	var b [8]byte
	for sent, finished := 0, 0; finished < n; {
		binary.LittleEndian.PutUint64(b[:], uint64(sent))
		if sent < n && d.Send(b[:]) {
			sent++
			if d.Kick() {
				notify(w.kick)
			}
			continue
		}
		_, ok, err := d.Reap()
		if err != nil {
			return err
		}
		if ok {
			finished++
			continue
		}
		if d.Arm() {
			continue
		}
		if err := w.wait(w.interrupt); err != nil {
			return err
		}
		d.Disarm()
	}
	return nil
}
