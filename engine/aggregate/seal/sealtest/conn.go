// Package sealtest makes TLS connections for tests: what both sides write, with records
// protected by secrets that are known, and the TCP segments that it comes in.
package sealtest

import (
	"encoding/binary"
	"math/rand/v2"

	"sheaf/engine/aggregate/seal"
)

// The sides of a connection.
const (
	Client = 0
	Server = 1
)

// A Choose returns a number from 0 to n-1. 0 is the plainest choice.
type Choose func(n int) int

// chance is true once in n.
func (c Choose) chance(n int) bool { return c(n) == n-1 }

// A Flight is what a side writes until the other does.
type Flight struct {
	Side  int
	Bytes []byte
}

// A Conn is a connection that makes records.
type Conn struct {
	Suite   seal.Suite
	Random  [seal.RandomLen]byte // the client's
	Secrets seal.Secrets
	Flights []Flight
	Sealed  int  // protected records that the secrets open
	Early   bool // there is 0-RTT data
	Odd     bool // now and then it makes what no program makes

	choose Choose
	fill   *rand.ChaCha8
	server [seal.RandomLen]byte

	session  []byte // the client's session id
	messages []byte // of the handshake so far

	sides [2]side
	next  [2]uint32 // sequence numbers
}

// side is how a side protects what it writes.
type side struct {
	keys   *seal.Keys // nil for plaintext
	number uint64
	nonce  int // how explicit nonces are made
	salt   uint64
}

// New returns a connection of which nothing was written yet. What it says follows from
// seed, what kind of records it is from choose.
func New(suite seal.Suite, seed byte, choose Choose) *Conn {
	c := &Conn{Suite: suite, choose: choose, fill: rand.NewChaCha8([32]byte{seed, byte(suite)})}
	c.fill.Read(c.Random[:])
	c.fill.Read(c.server[:])
	if !suite.TLS13() {
		c.Secrets.Master = c.bytes(seal.MasterLen)
		return c
	}
	for _, secret := range []*[]byte{
		&c.Secrets.ClientHandshake, &c.Secrets.ServerHandshake, &c.Secrets.ClientTraffic, &c.Secrets.ServerTraffic,
	} {
		*secret = c.bytes(suite.SecretLen())
	}
	return c
}

// bytes returns n random bytes.
func (c *Conn) bytes(n int) []byte {
	b := make([]byte, n)
	c.fill.Read(b)
	return b
}

// write adds bytes to what a side writes.
func (c *Conn) write(from int, b []byte) {
	if n := len(c.Flights); n > 0 && c.Flights[n-1].Side == from {
		c.Flights[n-1].Bytes = append(c.Flights[n-1].Bytes, b...)
		return
	}
	c.Flights = append(c.Flights, Flight{from, append([]byte(nil), b...)})
}

// use has a side protect what it writes from here on.
func (c *Conn) use(from int, material []byte) {
	keys, err := seal.NewKeys(c.Suite, material)
	if err != nil {
		panic(err) // the material is made for the suite
	}
	c.sides[from].keys, c.sides[from].number = keys, 0
}

// Content types, RFC 8446 section 5.1.
const (
	changeCipherSpec = 20
	alert            = 21
	handshake        = 22
	applicationData  = 23
)

// maxContent is what a record holds at most, RFC 8446 section 5.1.
const maxContent = 1 << 14

// record writes a record of some content.
func (c *Conn) record(from int, kind byte, content []byte) {
	s := &c.sides[from]
	version := byte(3)
	if c.Odd && c.choose.chance(40) {
		version = byte(c.choose(5))
	}
	if s.keys == nil {
		b := []byte{kind, 3, version}
		b = binary.BigEndian.AppendUint16(b, uint16(len(content)))
		c.write(from, append(b, content...))
		return
	}
	inner := append([]byte(nil), content...)
	if c.Suite.TLS13() {
		inner = append(inner, kind)
		if c.choose.chance(4) {
			inner = append(inner, make([]byte, c.choose(maxContent-len(content)+1))...)
		}
		kind = applicationData
	}
	if c.Odd && c.choose.chance(40) {
		inner, kind = c.odd(inner, kind)
	}
	nonce := s.explicit(c)
	b := s.keys.Seal(nil, [3]byte{kind, 3, version}, nonce, inner, s.number)
	if c.Odd && c.choose.chance(40) {
		b[len(b)-1-c.choose(len(b)-seal.HeadLen)] ^= 1
	} else {
		c.Sealed++
	}
	s.number++
	c.write(from, b)
}

// odd returns what a record holds that no program makes.
func (c *Conn) odd(inner []byte, kind byte) ([]byte, byte) {
	switch c.choose(5) {
	case 0:
		return make([]byte, len(inner)), kind // no content type
	case 1:
		return nil, kind
	case 2:
		return append(inner, byte(c.choose(256))), kind
	case 3:
		return append(inner, make([]byte, seal.MaxFragment-24-len(inner))...), kind // too long
	}
	return inner, 20 + byte(c.choose(5))
}

// How explicit nonces are made.
const (
	nonceNumber = iota
	nonceCounting
	nonceRandom
	nonces
)

// explicit returns the explicit nonce of the next record, nil where there is none.
func (s *side) explicit(c *Conn) *[8]byte {
	if s.keys.NonceLen() == 0 {
		return nil
	}
	var nonce [8]byte
	binary.BigEndian.PutUint64(nonce[:], s.number+s.salt)
	if s.nonce == nonceRandom {
		c.fill.Read(nonce[:])
	}
	return &nonce
}

// Records writes content in as many records as it takes, at least one.
func (c *Conn) Records(from int, kind byte, content []byte) {
	if kind == handshake {
		c.messages = append(c.messages, content...)
	}
	for first := true; first || len(content) > 0; first = false {
		n := min(len(content), maxContent)
		if kind == handshake && c.sides[from].keys != nil && n > 1 && c.choose.chance(4) {
			n = 1 + c.choose(n) // messages straddle records
		}
		c.record(from, kind, content[:n])
		content = content[n:]
	}
}

// Data writes application data.
func (c *Conn) Data(from int, content []byte) { c.Records(from, applicationData, content) }

// Close writes a close_notify.
func (c *Conn) Close(from int) { c.record(from, alert, []byte{1, 0}) }

// Update writes a KeyUpdate, RFC 8446 section 4.6.3; in TLS 1.2 there is none.
func (c *Conn) Update(from int) {
	if !c.Suite.TLS13() {
		return
	}
	c.record(from, handshake, message(keyUpdate, []byte{0}))
	next, err := c.sides[from].keys.Next()
	if err != nil {
		panic(err) // of TLS 1.2 only
	}
	c.sides[from].keys, c.sides[from].number = next, 0
}

// material returns the material of both directions in TLS 1.2.
func (c *Conn) material() (client, server []byte) {
	client, server, err := seal.Derive12(c.Suite, c.Secrets.Master, c.Random[:], c.server[:])
	if err != nil {
		panic(err) // the secret is made for the suite
	}
	return client, server
}
