package vsock

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Context identifiers (virtio 1.2 section 5.10.4, vsock(7)). The numbers below firstCID
// are the hypervisor, the loopback and the host, and the last one is any.
const (
	hostCID  = 2
	firstCID = 3
	anyCID   = math.MaxUint32
)

// maxPort is the greatest port; the number behind it is any (vsock(7), VMADDR_PORT_ANY).
const maxPort = math.MaxUint32 - 1

// ErrAddress is what an address wraps that cannot be parsed or used.
var ErrAddress = errors.New("not a usable vsock address")

// An Addr is one of
//
//	vsock:PORT         of the host, where guests call
//	vsock:GUEST:PORT   of a guest: its port's name, or its CID
//	vsock:/PATH:PORT   of the guest, or of the host for the guest, whose hypervisor has a unix socket at PATH
//
// The remote address of a connection is one of a guest, with CID and name as far as the
// Host knows them.
type Addr struct {
	Guest string // a port's name
	CID   uint32 // 0 if not known
	Path  string // absolute
	Port  uint32 // 1 to 2^32-2
}

// ParseAddr parses an address that begins with "vsock:". The error wraps ErrAddress.
func ParseAddr(s string) (Addr, error) {
	rest, ok := strings.CutPrefix(s, "vsock:")
	if !ok {
		return Addr{}, fmt.Errorf("%q: %w: expected vsock: first", s, ErrAddress)
	}
	var guest string
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		guest, rest = rest[:i], rest[i+1:]
		if guest == "" {
			return Addr{}, fmt.Errorf("%q: %w: expected a guest, as in vsock:GUEST:PORT", s, ErrAddress)
		}
	}
	port, err := strconv.ParseUint(rest, 10, 32)
	if err != nil || port == 0 || port > maxPort {
		return Addr{}, fmt.Errorf("%q: %w: port %q: expected 1 to %d", s, ErrAddress, rest, uint32(maxPort))
	}
	a := Addr{Port: uint32(port)}
	switch {
	case strings.HasPrefix(guest, "/"):
		a.Path = guest
	case strings.Trim(guest, "0123456789") != "":
		a.Guest = guest
	case guest != "":
		cid, err := strconv.ParseUint(guest, 10, 32)
		if err != nil || cid < firstCID || cid >= anyCID {
			return Addr{}, fmt.Errorf("%q: %w: CID %s: a guest's is %d to %d", s, ErrAddress, guest, firstCID, uint32(anyCID-1))
		}
		a.CID = uint32(cid)
	}
	return a, nil
}

// Network returns "vsock".
func (a Addr) Network() string { return "vsock" }

// String returns the address as ParseAddr takes it, with the name where there are name
// and CID.
func (a Addr) String() string {
	switch {
	case a.Path != "":
		return fmt.Sprintf("vsock:%s:%d", a.Path, a.Port)
	case a.Guest != "":
		return fmt.Sprintf("vsock:%s:%d", a.Guest, a.Port)
	case a.CID != 0:
		return fmt.Sprintf("vsock:%d:%d", a.CID, a.Port)
	}
	return fmt.Sprintf("vsock:%d", a.Port)
}

// isHost reports whether a is where guests of ports and of the kernel call.
func (a Addr) isHost() bool { return a.Path == "" && a.Guest == "" && a.CID == 0 }
