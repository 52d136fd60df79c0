package sealtest

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"hash"

	"sheaf/engine/aggregate/seal"
)

// Handshake types, RFC 8446 section 4 and RFC 5246 section 7.4.
const (
	clientHello        = 1
	serverHello        = 2
	newSessionTicket   = 4
	encryptedExtension = 8
	certificate        = 11
	serverKeyExchange  = 12
	serverHelloDone    = 14
	certificateVerify  = 15
	clientKeyExchange  = 16
	finished           = 20
	keyUpdate          = 24
	messageHash        = 254
)

// retryRandom is what a HelloRetryRequest has for a random, RFC 8446 section 4.1.3.
var retryRandom = [32]byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

// message is a handshake message.
func message(typ byte, body []byte) []byte {
	return append([]byte{typ, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// hello is a ClientHello or a ServerHello, with so many bytes of extensions.
func (c *Conn) hello(typ byte, random [32]byte, extensions int) []byte {
	b := append([]byte{3, 3}, random[:]...)
	session := c.session
	if c.Odd && typ == serverHello && c.choose.chance(4) {
		session = c.bytes(c.choose(33)) // and not the client's
	}
	b = append(append(b, byte(len(session))), session...)
	if typ == clientHello {
		b = append(b, 0, 2)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(c.Suite))
	if typ == clientHello {
		b = append(b, 1)
	}
	b = append(b, 0) // compression
	b = binary.BigEndian.AppendUint16(b, uint16(extensions))
	return message(typ, append(b, c.bytes(extensions)...))
}

// change writes a ChangeCipherSpec, which is never protected here: in TLS 1.2 it is the
// last record that is not.
func (c *Conn) change(from int) { c.write(from, []byte{changeCipherSpec, 3, 3, 0, 1, 1}) }

// Handshake writes a handshake of the suite's version.
func (c *Conn) Handshake() {
	if c.choose.chance(6) { // as NATS begins
		c.write(Server, []byte("INFO {\"tls_required\":true}\r\n"))
	}
	if c.session = c.bytes(32); c.choose.chance(4) {
		c.session = nil // as in QUIC's style
	}
	share := 200
	if c.choose.chance(3) {
		share = 1700 // one of ML-KEM, longer than a segment
	}
	c.Records(Client, handshake, c.hello(clientHello, c.Random, share))
	if c.Suite.TLS13() {
		c.handshake13()
	} else {
		c.handshake12()
	}
}

// handshake13 is RFC 8446 section 2, figure 1.
func (c *Conn) handshake13() {
	if c.choose.chance(6) { // 0-RTT, under keys that nobody tells
		c.Early = true
		c.change(Client)
		c.use(Client, c.bytes(c.Suite.SecretLen()))
		for range 1 + c.choose(3) {
			c.Data(Client, c.bytes(c.choose(600)))
			c.Sealed--
		}
		c.sides[Client].keys = nil
	}
	if c.choose.chance(6) {
		first := c.hash()
		first.Write(c.messages)
		c.messages = message(messageHash, first.Sum(nil)) // RFC 8446 section 4.4.1
		c.Records(Server, handshake, c.hello(serverHello, retryRandom, 10))
		c.change(Server)
		c.change(Client)
		c.Records(Client, handshake, c.hello(clientHello, c.Random, 100))
	}
	c.Records(Server, handshake, c.hello(serverHello, c.server, 50))
	c.change(Server)
	c.use(Server, c.Secrets.ServerHandshake)
	flight := message(encryptedExtension, []byte{0, 0})
	flight = append(flight, message(certificate, c.bytes(c.choose(4)*1200))...)
	flight = append(flight, message(certificateVerify, c.bytes(72))...)
	if c.choose.chance(3) { // the session was resumed
		flight = flight[:6]
	}
	c.Records(Server, handshake, append(flight, c.finished(c.Secrets.ServerHandshake, flight)...))
	c.use(Server, c.Secrets.ServerTraffic)
	if c.choose.chance(4) {
		c.Data(Server, []byte("before the client is done")) // RFC 8446 section 4.4.4 lets it
	}
	c.change(Client)
	c.use(Client, c.Secrets.ClientHandshake)
	c.Records(Client, handshake, c.finished(c.Secrets.ClientHandshake, nil))
	c.use(Client, c.Secrets.ClientTraffic)
	for range c.choose(3) {
		c.Records(Server, handshake, message(newSessionTicket, c.bytes(180)))
	}
}

// hash returns the suite's.
func (c *Conn) hash() hash.Hash {
	if c.Suite == seal.AES256GCM13 {
		return sha512.New384()
	}
	return sha256.New()
}

// finished is the Finished of a side with a secret, behind what was written and more messages
// (RFC 8446 section 4.4.4); now and then it is one that nobody would take.
func (c *Conn) finished(secret, more []byte) []byte {
	all := c.hash()
	all.Write(c.messages)
	all.Write(more)
	n := all.Size()
	label := "\x00" + string(rune(n)) + "\x0etls13 finished\x00"
	key, err := hkdf.Expand(c.hash, secret, label, n)
	if err != nil {
		panic(err) // the length is the hash's
	}
	mac := hmac.New(c.hash, key)
	mac.Write(all.Sum(nil))
	verify := mac.Sum(nil)
	if c.choose.chance(6) {
		verify = bytes.Repeat([]byte{7}, c.choose(2*n))
	}
	return message(finished, verify)
}

// handshake12 is RFC 5246 section 7.3, figure 1.
func (c *Conn) handshake12() {
	flight := c.hello(serverHello, c.server, 20)
	flight = append(flight, message(certificate, c.bytes(900))...)
	flight = append(flight, message(serverKeyExchange, c.bytes(140))...)
	flight = append(flight, message(serverHelloDone, nil)...)
	c.Records(Server, handshake, flight)
	c.Records(Client, handshake, message(clientKeyExchange, c.bytes(66)))
	client, server := c.material()
	c.change(Client)
	c.use(Client, client)
	c.counting(Client)
	c.record(Client, handshake, message(finished, c.bytes(12)))
	if c.choose.chance(2) {
		c.Records(Server, handshake, message(newSessionTicket, c.bytes(180)))
	}
	c.change(Server)
	c.use(Server, server)
	c.counting(Server)
	c.record(Server, handshake, message(finished, c.bytes(12)))
}

// counting chooses how a side makes explicit nonces.
func (c *Conn) counting(from int) {
	s := &c.sides[from]
	s.nonce = c.choose(nonces)
	if s.nonce == nonceCounting {
		s.salt = binary.BigEndian.Uint64(c.bytes(8))
	}
}
