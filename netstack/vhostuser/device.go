package vhostuser

import (
	"errors"
)

// A Direction says which side a queue of a Device carries bytes to.
type Direction bool

// The device writes the buffers of a queue ToGuest, and reads those of one FromGuest.
const (
	ToGuest   Direction = false
	FromGuest Direction = true
)

// An Offer is what a Device tells front ends. It does not change.
type Offer struct {
	Name     string      // of the kind, for the log
	Queues   []Direction // by number; all of them are used
	Features uint64      // bits of the device's own; those of rings, virtio.FeaturesOfRings, go without saying
	Config   []byte      // its configuration space, at most 256 bytes; borrowed for good. nil: front ends are not offered to read it
	MTU      int         // the greatest that a front end may tell (NET_SET_MTU), bytes; 0: it cannot tell one
}

// A Device is what guests see at a Backend. Its methods are called by the Backend, one at a
// time and never from within a method of a Ring.
type Device interface {
	Offer() Offer

	// Start says that the guest's driver has set up all queues. features are those that
	// it took. The rings, one a queue, are the device's until Stop; it must not wait here.
	Start(rings []*Ring, features uint64)

	// Stop says that the rings of the last Start are over: their methods return
	// ErrStopped, and none of them waits any more. What the guest knew is void.
	Stop()
}

// What the methods of a Ring return beside errors of their callers.
var (
	ErrStopped  = errors.New("vhost-user: the ring is stopped")
	ErrDisabled = errors.New("vhost-user: the ring is disabled")
)
