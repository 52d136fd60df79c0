package sealtest

import (
	"bytes"

	"sheaf/engine/aggregate/seal"
)

// A Log is a Source of secrets. The zero value knows none.
type Log struct {
	Asked   int
	entries map[[seal.RandomLen]byte]entry
}

type entry struct {
	secrets seal.Secrets
	from    int
}

// Add has the log know secrets of a connection once it was asked so many times.
func (l *Log) Add(random [seal.RandomLen]byte, s seal.Secrets, from int) {
	if l.entries == nil {
		l.entries = map[[seal.RandomLen]byte]entry{}
	}
	l.entries[random] = entry{s, from}
}

// Secrets implements seal.Source.
func (l *Log) Secrets(random *[seal.RandomLen]byte) seal.Secrets {
	l.Asked++
	e, ok := l.entries[*random]
	if !ok || l.Asked <= e.from {
		return seal.Secrets{}
	}
	s := e.secrets
	for _, b := range []*[]byte{&s.Master, &s.ClientHandshake, &s.ServerHandshake, &s.ClientTraffic, &s.ServerTraffic} {
		*b = bytes.Clone(*b) // the caller clears them
	}
	return s
}

// Spoil returns secrets of which something is wrong.
func (c *Conn) Spoil() seal.Secrets {
	s := c.Secrets
	all := []*[]byte{&s.Master, &s.ClientHandshake, &s.ServerHandshake, &s.ClientTraffic, &s.ServerTraffic}
	for _, secret := range all {
		n := len(*secret)
		if n == 0 {
			continue
		}
		switch c.choose(5) {
		case 1:
			*secret = nil
		case 2:
			*secret = c.bytes(n)
		case 3:
			*secret = (*secret)[:n-1]
		case 4:
			*secret = append((*secret)[:n:n], 0)
		}
	}
	return s
}
