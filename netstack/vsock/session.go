package vsock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"sheaf/netstack/vhostuser"
	"sheaf/netstack/virtio"
)

// The queues of a socket device (virtio 1.2 section 5.10.2) that a back end has; the event
// queue, 2, is the front end's.
const (
	receiveQueue  = 0
	transmitQueue = 1
)

// burst is the most packets that are moved under one lock and with one interrupt: some 20
// us of work, as with a NIC.
const burst = 64

// What a driver can do wrong beside its rings: a buffer without room for a header and one
// byte, and one whose header tells of more than there is.
var (
	errSmall     = errors.New("vsock: a receive buffer that is too small for a packet")
	errMalformed = errors.New("vsock: a packet that is shorter than its header tells")
)

// A session is one life of a guest's driver, from Start to Stop. Its two goroutines, hear and
// speak, end with it.
//
// Locks are taken in the order of ring, port, Host, listener.
type session struct {
	port   *port
	rx, tx *vhostuser.Ring

	// What follows is guarded by the port's mu.
	table  *table
	over   bool
	saying sync.Cond   // the table has something to say, or the session is over
	room   sync.Cond   // the table is not full, or the session is over
	timer  *time.Timer // for the first of the ends to be confirmed; nil if there is none
}

// newSession starts the goroutines. Its port's mu is held.
func newSession(p *port, rings []*vhostuser.Ring) *session {
	s := &session{port: p, rx: rings[receiveQueue], tx: rings[transmitQueue], table: newTable(p.cid, &p.count)}
	s.saying.L, s.room.L = &p.mu, &p.mu
	p.running.Go(s.hear)
	p.running.Go(s.speak)
	return s
}

// end resets all streams here; the guest does not hear of it. The port's mu is held.
func (s *session) end() {
	s.over = true
	for _, st := range s.table.clear() {
		st.changed.Broadcast()
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.saying.Broadcast()
	s.room.Broadcast()
}

// hear takes packets from the driver until the session is over.
func (s *session) hear() {
	var buf struct {
		header  [headerLen]byte
		payload [window]byte
	}
	for {
		empty := false
		err := s.tx.Do(func(q *virtio.Queue) (err error) {
			empty, err = s.take(q, &buf.header, buf.payload[:])
			return err
		})
		if err == vhostuser.ErrDisabled || err == nil && empty {
			err = s.tx.Wait()
		}
		if err != nil || !s.awaitRoom() {
			return
		}
	}
}

// take takes at most a burst of packets in, while the table is not full. empty says that
// the driver has no further ones.
func (s *session) take(q *virtio.Queue, header *[headerLen]byte, payload []byte) (empty bool, err error) {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	defer s.say()
	for range burst {
		if s.over || s.table.full() {
			return false, nil
		}
		n, ok, err := q.Take(header[:], payload)
		if !ok || err != nil {
			return true, err
		}
		if n < headerLen {
			return false, fmt.Errorf("%w: %d bytes", errMalformed, n)
		}
		h := parseHeader(header)
		if uint64(h.length) > uint64(n-headerLen) {
			return false, fmt.Errorf("%w: %d bytes, and a payload of %d", errMalformed, n, h.length)
		}
		st := s.table.receive(&h, payload[:min(int(h.length), len(payload))])
		if st == nil {
			continue
		}
		if st.phase == offered && !s.port.host.admit(s, st) {
			s.table.refuse(st)
		}
		st.changed.Broadcast()
	}
	return false, nil
}

// awaitRoom waits until the table takes packets. It is false once the session is over.
func (s *session) awaitRoom() bool {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	for s.table.full() && !s.over {
		s.room.Wait()
	}
	return !s.over
}

// speak gives packets to the driver until the session is over.
func (s *session) speak() {
	var header [headerLen]byte
	for s.awaitSay() {
		full := false
		err := s.rx.Do(func(q *virtio.Queue) (err error) {
			full, err = s.give(q, &header)
			return err
		})
		if err == vhostuser.ErrDisabled || err == nil && full {
			err = s.rx.Wait()
		}
		if err != nil {
			return
		}
	}
}

// awaitSay waits until the table has something to say. It is false once the session is
// over.
func (s *session) awaitSay() bool {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	for !s.over && !s.table.hasSay() {
		s.saying.Wait()
	}
	return !s.over
}

// give gives the driver at most a burst of packets. full says that it has no room for
// further ones.
func (s *session) give(q *virtio.Queue, head *[headerLen]byte) (full bool, err error) {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	for range burst {
		if s.over || !s.table.hasSay() {
			return false, nil
		}
		room, ok, err := q.Room()
		if !ok || err != nil {
			return true, err
		}
		if room <= headerLen {
			return false, fmt.Errorf("%w: %d bytes", errSmall, room)
		}
		var h header
		payload, st, _ := s.table.next(room-headerLen, &h)
		h.put(head)
		if _, err := q.Give(head[:], payload); err != nil {
			return false, err
		}
		s.room.Signal()
		if st != nil {
			st.changed.Broadcast()
		}
	}
	return false, nil
}

// say has what the table has to say go out. The port's mu is held.
func (s *session) say() {
	if s.table.hasSay() {
		s.saying.Signal()
	}
}

// close closes a stream for its Conn. The port's mu is held.
func (s *session) close(st *stream, hard bool) {
	s.table.close(st, hard, time.Now())
	if st.phase == closing && s.timer == nil {
		s.timer = time.AfterFunc(confirmTime, s.expire)
	}
	s.say()
}

// expire resets the streams whose end was not confirmed in time.
func (s *session) expire() {
	s.port.mu.Lock()
	defer s.port.mu.Unlock()
	if s.over {
		return
	}
	now := time.Now()
	if next := s.table.expire(now); next.IsZero() {
		s.timer = nil
	} else {
		s.timer.Reset(next.Sub(now))
	}
	s.say()
}

// configOf returns the configuration space of a guest's device (section 5.10.4).
func configOf(cid uint32) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(cid)) }
