package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// A Hello is the first thing that each end writes on a lane (SPEC.md section 7):
// which versions it speaks and how much it is willing to remember.
type Hello struct {
	Min, Max uint8 // versions of this specification, inclusive, from 1
	Limits   Limits

	// What follows is there from version 2 on, and zero where Max is 1.

	Instance [8]byte // random, one for each run of the gateway's process
	Ends     bool    // TCP connections end in the gateway itself, and so with its run

	// Seals is there from version 3 on: TLS records may come opened (SPEC.md section
	// 10). They do where both ends say so.
	Seals bool
}

// Version is the highest version of SPEC.md that this implementation speaks.
const Version = 3

// Limits bound what one direction of a lane may ask of its receiver. Both ends
// use the smaller of the two values for each, since what one end forgets the other
// must not refer to.
type Limits struct {
	Flows     uint32 // contexts held at once, 1 to MaxFlows; a TCP connection is one in each direction
	Templates uint32 // templates held at once, 1 to MaxTemplates; one for each event, such as a topic
	Bodies    uint32 // bytes of the templates' bodies together, 0 to MaxBodies
	Packets   uint32 // packets in a frame, 1 to MaxPackets
	Bytes     uint32 // bytes of the packets of one frame, MaxPacket to MaxBytes
}

// Absolute limits, whatever a peer proposes: what a lane could hold of a peer's is
// bounded by them also where the other end's configuration is not known.
const (
	MaxPacket    = 40 + 65535 // bytes of the longest IP packet: IPv6 has its header beyond a length of 16 bits (RFC 8200 section 3)
	MaxFlows     = 1 << 20
	MaxTemplates = 1 << 15
	MaxBodies    = 1 << 28 // 256 MiB
	MaxPackets   = 1 << 16
	MaxBytes     = 1 << 24 // 16 MiB
)

// DefaultLimits serve a gateway with up to a hundred thousand connections and four
// thousand topics in use at a time, of 2 kB for all the bodies remembered of each.
var DefaultLimits = Limits{Flows: 1 << 18, Templates: 1 << 12, Bodies: 8 << 20, Packets: 1 << 13, Bytes: 4 << 20}

// magic opens a Hello, so that a stranger's bytes are told from a gateway's.
var magic = []byte("sheaf\x00")

// HelloLen is the length of a Hello on the wire, in bytes, and HelloLen1 the length of
// one whose writer speaks version 1 only.
const (
	HelloLen1 = 6 + 2 + 5*4
	HelloLen  = HelloLen1 + 8 + 1
)

// The bits of a Hello's flags. Those that are not known are for later versions to use,
// and are not looked at.
const (
	helloEnds  = 1
	helloSeals = 2
)

// ErrHello tells that a peer's Hello cannot be understood or agreed with. Errors that
// match it say why.
var ErrHello = errors.New("wire: no agreement with the peer")

// Versions are those of this specification that an end speaks, inclusive.
type Versions struct{ Min, Max uint8 }

// String returns "1 to 2".
func (v Versions) String() string { return fmt.Sprintf("%d to %d", v.Min, v.Max) }

// A VersionError tells that two ends have no version in common, and which each of them
// speaks, so that somebody can tell which one to renew. It matches [ErrHello].
type VersionError struct{ Here, There Versions }

func (e *VersionError) Error() string {
	return fmt.Sprintf("versions %v here, %v there", e.Here, e.There)
}

// Is makes errors.Is see ErrHello.
func (e *VersionError) Is(target error) bool { return target == ErrHello }

// AppendHello appends h to dst. An end that speaks version 1 only writes what version 1
// reads, without instance and flags.
func AppendHello(dst []byte, h Hello) []byte {
	dst = append(dst, magic...)
	dst = append(dst, h.Min, h.Max)
	for _, v := range h.Limits.fields() {
		dst = binary.BigEndian.AppendUint32(dst, *v)
	}
	if h.Max == 1 {
		return dst
	}
	dst = append(dst, h.Instance[:]...)
	return append(dst, byte(b2i(h.Ends))*helloEnds|byte(b2i(h.Seals))*helloSeals)
}

// Versions returns the versions that the end speaks which says h.
func (h Hello) Versions() Versions { return Versions{h.Min, h.Max} }

// ParseHello parses the Hello at the start of b and returns its length n,
// HelloLen1 or HelloLen. The error is ErrShort where b is only the beginning of
// one, and else matches ErrHello. The limits may be any: another version may have
// other bounds, so Negotiate looks at them once it knows that there is a common one.
func ParseHello(b []byte) (h Hello, n int, err error) {
	if k := min(len(b), len(magic)); !bytes.Equal(b[:k], magic[:k]) {
		return Hello{}, 0, fmt.Errorf("%w: the peer is not a sheaf gateway", ErrHello)
	}
	if len(b) < HelloLen1 {
		return Hello{}, 0, ErrShort
	}
	h.Min, h.Max = b[6], b[7]
	for i, v := range h.Limits.fields() {
		*v = binary.BigEndian.Uint32(b[8+4*i:])
	}
	if h.Min == 0 || h.Min > h.Max {
		return Hello{}, 0, fmt.Errorf("%w: versions %d to %d", ErrHello, h.Min, h.Max)
	}
	if h.Max == 1 {
		return h, HelloLen1, nil
	}
	if len(b) < HelloLen {
		return Hello{}, 0, ErrShort
	}
	copy(h.Instance[:], b[HelloLen1:])
	h.Ends = b[HelloLen-1]&helloEnds != 0
	h.Seals = b[HelloLen-1]&helloSeals != 0 && h.Max >= 3
	return h, HelloLen, nil
}

// Negotiate returns the version and the limits that both ends will use, of the
// Hello written here and the one read. The error is a *VersionError, or matches
// ErrHello where a limit is outside its absolute bounds.
func Negotiate(here, there Hello) (version uint8, limits Limits, err error) {
	version = min(here.Max, there.Max)
	if version < max(here.Min, there.Min) {
		return 0, Limits{}, &VersionError{here.Versions(), there.Versions()}
	}
	if err := there.Limits.Check(); err != nil {
		return 0, Limits{}, err
	}
	l, other := here.Limits, there.Limits
	theirs := other.fields()
	for i, v := range l.fields() {
		*v = min(*v, *theirs[i])
	}
	return version, l, l.Check()
}

// fields returns the limits in the order of a Hello's bytes.
func (l *Limits) fields() [5]*uint32 {
	return [5]*uint32{&l.Flows, &l.Templates, &l.Bodies, &l.Packets, &l.Bytes}
}

// Check tells whether the limits are inside the absolute ones. The error matches
// ErrHello and names the first one that is not.
func (l Limits) Check() error {
	ranges := [5]struct {
		name     string
		min, max uint32
	}{
		{"flows", 1, MaxFlows}, {"templates", 1, MaxTemplates}, {"bodies", 0, MaxBodies},
		{"packets", 1, MaxPackets}, {"bytes", MaxPacket, MaxBytes},
	}
	for i, v := range l.fields() {
		if r := ranges[i]; *v < r.min || *v > r.max {
			return fmt.Errorf("%w: limit of %s is %d, not in %d to %d", ErrHello, r.name, *v, r.min, r.max)
		}
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
