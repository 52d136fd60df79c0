package ip

import (
	"errors"
	"fmt"
)

// The ways in which headers can be malformed. Errors wrap one of them; they are made
// once, so that bad packets cost no allocation.
var (
	ErrVersion = errors.New("not an IPv4 or IPv6 packet")
	ErrShort   = errors.New("packet ends inside a header")
	ErrHeader  = errors.New("malformed header")
)

var (
	errIPv4Short  = fmt.Errorf("IPv4 header: %w", ErrShort)
	errIPv4Length = fmt.Errorf("IPv4 header length: %w", ErrHeader)
	errIPv6Short  = fmt.Errorf("IPv6 header: %w", ErrShort)
	errExtension  = fmt.Errorf("IPv6 extension header: %w", ErrShort)
	errMany       = fmt.Errorf("IPv6 extension headers, too many: %w", ErrHeader)
	errHopByHop   = fmt.Errorf("IPv6 hop-by-hop header not in the first place: %w", ErrHeader)
	errFragment   = fmt.Errorf("IPv6 fragment header, a second one: %w", ErrHeader)
	errAH         = fmt.Errorf("authentication header length: %w", ErrHeader)
)
