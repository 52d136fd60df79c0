package firsthop

import "errors"

// The errors of New, Plug and Unplug wrap one of these where one fits, and say what to do
// about it.
var (
	ErrAddress = errors.New("not a usable address")
	ErrMAC     = errors.New("not a usable MAC address")
	ErrMTU     = errors.New("MTU out of range")
	ErrName    = errors.New("not a usable name")
	ErrInUse   = errors.New("already in use")
	ErrUnknown = errors.New("no such port")
	ErrFull    = errors.New("too many ports")
)

// What Write returns of a packet that it refuses; made once, as there may be many.
var (
	errMalformed = errors.New("malformed packet for a guest")
	errNoGuest   = errors.New("packet for an address that no guest has")
)
