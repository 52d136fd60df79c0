package keylog

import (
	"bytes"
	"encoding/hex"

	"sheaf/engine/aggregate/seal"
)

// A label says what a secret is for.
type label int

const (
	master label = iota // of TLS 1.2
	clientHandshake
	serverHandshake
	clientTraffic
	serverTraffic
	numLabels
)

// labelOf returns the label of that name, or false for one whose secrets nobody here
// needs: exporters, 0-RTT, encrypted ClientHellos, and what is yet to be registered (RFC
// 9850 section 2).
func labelOf(name []byte) (label, bool) {
	switch string(name) {
	case "CLIENT_RANDOM":
		return master, true
	case "CLIENT_HANDSHAKE_TRAFFIC_SECRET":
		return clientHandshake, true
	case "SERVER_HANDSHAKE_TRAFFIC_SECRET":
		return serverHandshake, true
	case "CLIENT_TRAFFIC_SECRET_0":
		return clientTraffic, true
	case "SERVER_TRAFFIC_SECRET_0":
		return serverTraffic, true
	}
	return 0, false
}

// Lengths of secrets, in bytes.
const (
	masterLen    = 48 // RFC 5246 section 8.1
	sha256Len    = 32 // of a traffic secret: its suite's hash
	sha384Len    = 48
	maxSecretLen = 48
)

// A secret is one of a connection's, with no bytes where it is not known.
type secret struct {
	n     uint8
	bytes [maxSecretLen]byte
}

// copy returns the secret in a slice of the caller's, nil where it is not known.
func (s *secret) copy() []byte {
	if s.n == 0 {
		return nil
	}
	return append([]byte(nil), s.bytes[:s.n]...)
}

// An entry is what a line says.
type entry struct {
	random [seal.RandomLen]byte
	label  label
	secret secret
}

// A verdict is what a line is.
type verdict int

const (
	kept    verdict = iota // a secret
	skipped                // nothing, a comment, or a secret that nobody here needs
	bad                    // not what it should be
)

// parseLine reads a line, without its end, into e, which has a secret only where it is
// kept (RFC 9850 section 2: label, random and secret with one space between).
func parseLine(line []byte, e *entry) verdict {
	if len(line) == 0 || line[0] == '#' {
		return skipped
	}
	name, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || !isName(name) {
		return bad
	}
	l, ok := labelOf(name)
	if !ok {
		return skipped
	}
	random, value, ok := bytes.Cut(rest, []byte{' '})
	if !ok || len(random) != hex.EncodedLen(len(e.random)) {
		return bad
	}
	n := hex.DecodedLen(len(value))
	switch {
	case len(value)%2 != 0:
		return bad
	case l == master && n != masterLen, l != master && n != sha256Len && n != sha384Len:
		return bad
	}
	if _, err := hex.Decode(e.random[:], random); err != nil {
		return bad
	}
	if _, err := hex.Decode(e.secret.bytes[:n], value); err != nil {
		clear(e.secret.bytes[:])
		return bad
	}
	e.label, e.secret.n = l, uint8(n)
	return kept
}

// isName tells whether b can be the name of a label: the registered ones are in capitals
// (RFC 9850 section 4.2), and whatever else begins a line is no key log.
func isName(b []byte) bool {
	for _, c := range b {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return len(b) > 0
}
