package netstack

import (
	"errors"
	"fmt"
	"net/netip"
)

// What can be wrong with a device, its configuration or its host. Errors of this
// package wrap one of them where one fits, and say what to do about it.
var (
	ErrPermission = errors.New("not permitted")
	ErrNoTUN      = errors.New("no TUN driver")
	ErrInUse      = errors.New("already in use")
	ErrMTU        = errors.New("MTU out of range")
	ErrName       = errors.New("not a device name")
	ErrAddress    = errors.New("not a usable address")
	ErrNoIPv6     = errors.New("IPv6 is off")
	ErrNoRoute    = errors.New("no such route")
	ErrGone       = errors.New("removed by somebody else")
)

// An OverlapError says that a route cannot do its work beside one that the host
// already has: the same prefix, or one inside it, which would win for a part of
// the addresses.
type OverlapError struct {
	Prefix netip.Prefix // the route that was asked for
	Other  netip.Prefix // the route that is there
	Device string       // where the other one leads, or "" if to no one device
}

func (e *OverlapError) Error() string {
	by := "another route"
	if e.Device != "" {
		by = "device " + e.Device
	}
	if e.Prefix == e.Other {
		return fmt.Sprintf("route %s: %s has it already; remove one of the two", e.Prefix, by)
	}
	return fmt.Sprintf("route %s: %s has %s inside it, whose packets would not come this way; remove that route or name smaller prefixes", e.Prefix, by, e.Other)
}
