package tunnel

import (
	"fmt"
	"strings"
)

// Carrier is what lanes run over.
type Carrier uint8

const (
	QUIC  Carrier = 1 + iota // QUIC version 1 over UDP (RFC 9000)
	TLS                      // TLS 1.3 over TCP
	Plain                    // TCP with neither encryption nor authentication
)

// DefaultCarriers are used where a configuration names none.
var DefaultCarriers = []Carrier{QUIC, TLS}

// String returns "quic", "tls" or "plain".
func (c Carrier) String() string {
	switch c {
	case QUIC:
		return "quic"
	case TLS:
		return "tls"
	case Plain:
		return "plain"
	}
	return fmt.Sprintf("Carrier(%d)", uint8(c))
}

// ParseCarrier is the inverse of [Carrier.String]. Case does not matter.
func ParseCarrier(s string) (Carrier, error) {
	for _, c := range []Carrier{QUIC, TLS, Plain} {
		if strings.EqualFold(strings.TrimSpace(s), c.String()) {
			return c, nil
		}
	}
	return 0, fmt.Errorf("%w: carrier %q is none of quic, tls, plain", ErrConfig, s)
}

// Class is the kind of traffic on a lane. Classes do not wait for one another.
type Class uint8

const (
	ClassMessages Class = iota // pub-sub messages and control
	ClassBulk                  // everything else
	// NumClasses is the number of classes, and the largest number of lanes that
	// a peer has at a time.
	NumClasses
)

// String returns "messages" or "bulk".
func (c Class) String() string {
	switch c {
	case ClassMessages:
		return "messages"
	case ClassBulk:
		return "bulk"
	}
	return fmt.Sprintf("Class(%d)", uint8(c))
}
