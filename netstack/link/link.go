// Package link has the ends of virtual machines' NICs: each kind carries Ethernet frames
// between a guest and the gateway in its hypervisor, without an interface of the host.
package link

import "time"

// Sizes of an Ethernet frame (IEEE 802.3-2022 clause 3.1) without preamble and check
// sequence, in bytes. No guest is offered to send segments for the gateway to cut, so
// that MTU and header are the most that it has reason to send.
const (
	HeaderLen = 14
	MinFrame  = HeaderLen
	MaxMTU    = 65535 - HeaderLen
	MaxFrame  = HeaderLen + MaxMTU
)

// batchSize is the BatchSize of the kinds here: with more frames each costs no less
// (BenchmarkStream), and a reader has a buffer of MaxFrame for each.
const batchSize = 64

// Config says where a guest comes to the gateway.
type Config struct {
	Path  string // of a unix socket; at most 107 bytes
	Dial  bool   // stream: the guest's hypervisor listens there, and the gateway comes to it
	Guest string // dgram: the guest's own socket; default: Path and ".guest"
}

// A Link carries Ethernet frames to and from one guest. It outlives the guest: while none
// is there Read waits and Write drops. Its methods may be called from several goroutines
// at a time, each of Read and Write from one.
type Link interface {
	// Read waits until the guest has sent, fills bufs[i][:sizes[i]] for i < n and
	// returns n, which is not 0. bufs and sizes have BatchSize elements, each of bufs room
	// for MaxFrame bytes; they are borrowed until Read returns. What is no frame, shorter
	// than MinFrame or longer than MaxFrame, is counted and left out, or is a fault where
	// a kind says so. While nobody reads, the guest waits, and guests are neither met nor
	// missed. After Close the error is or wraps os.ErrClosed; there is no other.
	Read(bufs [][]byte, sizes []int) (n int, err error)

	// Write hands frames to the guest, in order, and waits while it has no room for
	// them. It returns when all are handed on, or dropped since no guest is there, it
	// has gone, or it is at fault; frames out of the bounds of their size are dropped as
	// well. They are borrowed until Write returns and not modified. The error is or wraps
	// os.ErrClosed after Close; there is no other.
	Write(frames [][]byte) error

	// BatchSize is the greatest n that Read returns, and the best number of frames for
	// a Write. It does not change.
	BatchSize() int

	// Status tells of the guest. It does not wait for Read or Write.
	Status() Status

	// Close ends the link, its sockets and files; Read and Write that wait return.
	// Closing again does nothing.
	Close() error
}

// A Status tells of a Link. Counters are since it was made, over all guests.
type Status struct {
	Up       bool      `json:"up"`              // a guest is there, its NIC is ready
	Since    time.Time `json:"since,omitzero"`  // of Up, or of its loss
	Fault    string    `json:"fault,omitempty"` // why the last guest was given up, or cannot be reached, until the next is up
	Connects uint64    `json:"connects"`        // times that Up became true
	Received uint64    `json:"received"`        // frames from the guest
	Sent     uint64    `json:"sent"`            // frames to the guest
	Dropped  uint64    `json:"dropped"`         // frames to it that nobody was there to take, or of a size out of bounds
	Invalid  uint64    `json:"invalid"`         // what came from it and was no frame
}
