package amqp10

import (
	"bytes"
	"strconv"

	"sheaf/parsers"
)

// maxLinks is how many links of a flow are remembered, and how many of those
// that are not have an event.
const maxLinks = 64

// links remembers the addresses of a flow's links.
type links struct {
	turn uint32 // counts the calls of Scan
	list []link
	next int // which gives way when there are too many
}

type link struct {
	channel  uint16
	attached bool
	handle   uint32
	address  []byte // owned, at most parsers.MaxKeyEvent bytes
	used     uint32 // the last turn in which address was handed out
}

func (l *links) find(channel uint16, handle uint32) *link {
	for i := range l.list {
		if k := &l.list[i]; k.handle == handle && k.channel == channel && k.attached {
			return k
		}
	}
	return nil
}

// attach remembers a link's address, which it copies.
func (l *links) attach(channel uint16, handle uint32, address []byte) {
	k := l.find(channel, handle)
	if k == nil {
		k = l.room()
	}
	k.channel, k.handle, k.attached = channel, handle, true
	switch {
	case len(address) > parsers.MaxKeyEvent:
		k.address = nil
	case bytes.Equal(k.address, address):
	case k.used == l.turn:
		k.address = bytes.Clone(address) // an event of this turn borrows the old bytes
	default:
		k.address = append(k.address[:0], address...)
	}
}

// room returns a place for a link.
func (l *links) room() *link {
	for i := range l.list {
		if k := &l.list[i]; !k.attached {
			return k
		}
	}
	if len(l.list) < maxLinks {
		l.list = append(l.list, link{})
		return &l.list[len(l.list)-1]
	}
	l.next = (l.next + 1) % maxLinks
	return &l.list[l.next]
}

// detach forgets a link, end a session's and close all. Their addresses stay as
// they are for the turn.
func (l *links) detach(channel uint16, handle uint32) {
	if k := l.find(channel, handle); k != nil {
		k.attached = false
	}
}

func (l *links) end(channel uint16) {
	for i := range l.list {
		if k := &l.list[i]; k.channel == channel {
			k.attached = false
		}
	}
}

func (l *links) close() {
	for i := range l.list {
		l.list[i].attached = false
	}
}

// address returns the address of a link, nil when it is not known. The bytes
// stay as they are for that turn.
func (l *links) address(channel uint16, handle uint32, turn uint32) []byte {
	if l == nil {
		return nil
	}
	k := l.find(channel, handle)
	if k == nil {
		return nil
	}
	k.used = turn
	return k.address
}

// numbers are the events of links whose address is not known, by handle.
var numbers = func() (list [maxLinks][]byte) {
	for i := range list {
		list[i] = strconv.AppendInt([]byte{'#'}, int64(i), 10)
	}
	return list
}()
