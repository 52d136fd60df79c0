package virtio

import (
	"encoding/binary"
	"fmt"
)

// numBuffers is the offset of num_buffers in a NIC's header, in bytes.
const numBuffers = NetHeaderLen - 2

// bytes is a message in two parts, of which the begin has been copied.
type bytes struct{ header, payload []byte }

func (b *bytes) len() int { return len(b.header) + len(b.payload) }

// cut returns the next bytes, at most n and not of both parts.
func (b *bytes) cut(n uint64) (p []byte) {
	from := &b.header
	if len(b.header) == 0 {
		from = &b.payload
	}
	k := min(n, uint64(len(*from)))
	p, *from = (*from)[:k], (*from)[k:]
	return p
}

// Take copies the next chain of readable buffers out, its first bytes into header and those
// after them into payload, and finishes it. n is the length of the whole chain: what does
// not fit, n > len(header)+len(payload), is left out, and what a short one does not fill
// stays as it was. ok is false if there is none.
func (q *Queue) Take(header, payload []byte) (n int, ok bool, err error) {
	if ok, err := q.ready(q.next); !ok {
		return 0, false, err
	}
	head := q.head(q.next)
	c := q.chain(head, 0)
	to := bytes{header, payload}
	for {
		d, ok, err := c.step()
		if ok {
			err = q.take(d, &to)
		}
		if err != nil {
			return 0, false, q.fail(err)
		}
		if !ok {
			q.finish(head, 0)
			return int(c.total), true, nil
		}
	}
}

// take copies what d describes, as far as there is room.
func (q *Queue) take(d descriptor, to *bytes) error {
	for to.len() > 0 && d.len > 0 {
		p := to.cut(uint64(d.len))
		if err := q.memory.read(p, d.addr); err != nil {
			return err
		}
		d.addr += uint64(len(p))
		d.len -= uint32(len(p))
	}
	return q.memory.check(d.addr, uint64(d.len))
}

// Room returns how many bytes the next chain of writable buffers takes. ok is false if
// there is none.
func (q *Queue) Room() (n int, ok bool, err error) { return q.room(q.next) }

// room returns how many bytes the chain at index takes.
func (q *Queue) room(index uint16) (n int, ok bool, err error) {
	if ok, err := q.ready(index); !ok {
		return 0, false, err
	}
	c := q.chain(q.head(index), descWrite)
	for {
		d, ok, err := c.step()
		if ok {
			err = q.memory.check(d.addr, uint64(d.len))
		}
		if err != nil {
			return 0, false, q.fail(err)
		}
		if !ok {
			return int(c.total), true, nil
		}
	}
}

// Give copies header and payload into the next chain of writable buffers and finishes it.
// ok is false, and nothing is given, if there is none. A chain that is too small for them
// stays where it is, and the error is ErrRoom; Room tells beforehand.
func (q *Queue) Give(header, payload []byte) (ok bool, err error) {
	n, ok, err := q.fit(len(header)+len(payload), 1)
	if !ok {
		return false, err
	}
	return q.fill(bytes{header, payload}, n)
}

// GiveMerged copies a NIC's header and frame into the next chain of writable buffers, or
// into as many as they need, and sets num_buffers to their number (virtio 1.2 section
// 5.1.6.4.1). header is not modified. ok is false, and nothing is given, if there are too
// few yet. If a ring full of them has too few, the error is ErrRoom.
func (q *Queue) GiveMerged(header *[NetHeaderLen]byte, frame []byte) (ok bool, err error) {
	n, ok, err := q.fit(NetHeaderLen+len(frame), q.size)
	if !ok {
		return false, err
	}
	q.header = *header
	binary.LittleEndian.PutUint16(q.header[numBuffers:], n)
	return q.fill(bytes{q.header[:], frame}, n)
}

// fit returns how many chains hold need bytes: at least one, and at most most. ok is false
// if that many are not there yet.
func (q *Queue) fit(need int, most uint16) (n uint16, ok bool, err error) {
	for n == 0 || need > 0 {
		if n == most {
			return 0, false, ErrRoom
		}
		room, ok, err := q.room(q.next + n)
		if !ok {
			return 0, false, err
		}
		need -= room
		n++
	}
	return n, true, nil
}

// fill copies a message into the next n chains, which had room for it, and finishes them.
func (q *Queue) fill(from bytes, n uint16) (ok bool, err error) {
	for ; n > 0; n-- {
		head, before := q.head(q.next), from.len()
		if err := q.fillChain(head, &from); err != nil {
			return false, q.fail(err)
		}
		q.finish(head, uint32(before-from.len()))
	}
	if from.len() > 0 {
		return false, q.fail(fmt.Errorf("%w: %d less than at first", ErrLength, from.len()))
	}
	return true, nil
}

// fillChain copies what goes into the chain at head.
func (q *Queue) fillChain(head uint16, from *bytes) error {
	c := q.chain(head, descWrite)
	for from.len() > 0 {
		d, ok, err := c.step()
		if !ok {
			return err
		}
		for from.len() > 0 && d.len > 0 {
			p := from.cut(uint64(d.len))
			if err := q.memory.write(d.addr, p); err != nil {
				return err
			}
			d.addr += uint64(len(p))
			d.len -= uint32(len(p))
		}
	}
	return nil
}
