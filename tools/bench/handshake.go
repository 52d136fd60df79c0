package main

import (
	"encoding/binary"
	"slices"

	"sheaf/engine/aggregate/seal"
)

// Content types of records (RFC 8446 section 5.1).
const (
	changeCipherSpec = 20
	handshake        = 22
	applicationData  = 23
)

// maxFlights is how many flights a handshake has at most, those of TLS 1.2.
const maxFlights = 4

// What the messages of a handshake have for sizes, in bytes.
const (
	shareLen       = 32  // of X25519
	certificateLen = 420 // a small one, ECDSA with P-256
	signatureLen   = 71  // of such a key, in DER, most often
	verifyLen      = 12  // of Finished in TLS 1.2 (RFC 5246 section 7.4.9)
)

// flights returns the payloads of a connection's handshake, the client's and the server's in
// turn, and sets the keys of what comes behind it. Nothing is signed: the core judges
// messages by their form.
func (s *securer) flights(c *secureConn) ([][]byte, error) {
	var client, server [seal.RandomLen]byte
	s.fill(client[:])
	s.fill(server[:])
	tls13 := s.suite.TLS13()
	hello := record(handshake, message(1, slices.Concat(s.hello(client, true), s.extensions(tls13, true))))
	answer := message(2, slices.Concat(s.hello(server, false), s.extensions(tls13, false)))
	if tls13 {
		return s.flights13(c, client, hello, answer)
	}
	return s.flights12(c, [2][seal.RandomLen]byte{client, server}, hello, answer)
}

// flights13 is RFC 8446 section 2, figure 1.
func (s *securer) flights13(c *secureConn, client [seal.RandomLen]byte, hello, answer []byte) ([][]byte, error) {
	var all [4][]byte
	for i := range all {
		all[i] = s.bytes(s.suite.SecretLen())
	}
	s.secrets[client] = seal.Secrets{ClientHandshake: all[0], ServerHandshake: all[1], ClientTraffic: all[2], ServerTraffic: all[3]}
	if err := s.keys(c, all[0], all[1]); err != nil {
		return nil, err
	}
	change := record(changeCipherSpec, []byte{1})
	finished := func() []byte { return message(20, s.bytes(s.suite.HashLen())) }
	rest := slices.Concat(message(8, []byte{0, 0}), s.certificate(), message(15, s.signature()), finished())
	flights := [][]byte{
		hello,
		slices.Concat(record(handshake, answer), change, c.flows[down].seal(handshake, rest)),
		slices.Concat(change, c.flows[up].seal(handshake, finished())),
	}
	return flights, s.keys(c, all[2], all[3])
}

// flights12 is RFC 5246 section 7.3, figure 1.
func (s *securer) flights12(c *secureConn, randoms [2][seal.RandomLen]byte, hello, answer []byte) ([][]byte, error) {
	master := s.bytes(seal.MasterLen)
	s.secrets[randoms[0]] = seal.Secrets{Master: master}
	client, server, err := seal.Derive12(s.suite, master, randoms[0][:], randoms[1][:])
	if err != nil {
		return nil, err
	}
	if err := s.keys(c, client, server); err != nil {
		return nil, err
	}
	share := append([]byte{shareLen}, s.bytes(shareLen)...)
	exchange := slices.Concat([]byte{3, 0, 29}, share, s.signature()) // a named curve, X25519
	change := record(changeCipherSpec, []byte{1})
	return [][]byte{
		hello,
		record(handshake, slices.Concat(answer, s.certificate(), message(12, exchange), message(14, nil))),
		slices.Concat(record(handshake, message(16, share)), change, c.flows[up].seal(handshake, message(20, s.bytes(verifyLen)))),
		slices.Concat(change, c.flows[down].seal(handshake, message(20, s.bytes(verifyLen)))),
	}, nil
}

// keys sets the keys of both directions.
func (s *securer) keys(c *secureConn, client, server []byte) error {
	for dir, material := range [2][]byte{client, server} {
		f := &c.flows[dir]
		var err error
		if f.keys, err = seal.NewKeys(s.suite, material); err != nil {
			return err
		}
		f.next, f.nonce = 0, s.random.Uint64()
	}
	return nil
}

// seal returns a record of content of a type.
func (f *secureFlow) seal(kind byte, content []byte) []byte {
	if f.keys.Suite().TLS13() {
		content, kind = append(slices.Clone(content), kind), applicationData
	}
	var nonce [8]byte // counts from anywhere, as OpenSSL's does
	binary.BigEndian.PutUint64(nonce[:], f.nonce+f.next)
	b := f.keys.Seal(nil, [3]byte{kind, 3, 3}, &nonce, content, f.next)
	f.next++
	return b
}

func (s *securer) fill(b []byte) { _, _ = s.random.Read(b) } // never an error, says its documentation

func (s *securer) bytes(n int) []byte {
	b := make([]byte, n)
	s.fill(b)
	return b
}

// hello is what a ClientHello or a ServerHello has before its extensions.
func (s *securer) hello(random [seal.RandomLen]byte, client bool) []byte {
	b := append([]byte{3, 3}, random[:]...)
	b = append(b, 32)
	b = append(b, s.bytes(32)...) // the session id
	if client {
		b = append(b, 0, 2)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(s.suite))
	if client {
		b = append(b, 1)
	}
	return append(b, 0) // no compression
}

// extensions are those of a hello: in TLS 1.3 version and key share, in 1.2
// extended_master_secret.
func (s *securer) extensions(tls13, client bool) []byte {
	e := []byte{0, 23, 0, 0}
	if tls13 {
		share := append([]byte{0, 29, 0, shareLen}, s.bytes(shareLen)...)
		e = []byte{0, 43, 0, 2, 3, 4}
		if client {
			e = []byte{0, 43, 0, 3, 2, 3, 4}
			share = append([]byte{0, byte(len(share))}, share...)
		}
		e = append(append(e, 0, 51, 0, byte(len(share))), share...)
	}
	return append([]byte{0, byte(len(e))}, e...)
}

// certificate is the server's, the same for all connections.
func (s *securer) certificate() []byte { return message(11, make([]byte, certificateLen)) }

// signature is one by ECDSA with P-256 and SHA-256.
func (s *securer) signature() []byte {
	return append([]byte{4, 3, 0, signatureLen}, s.bytes(signatureLen)...)
}

// message is a handshake message of a type.
func message(kind byte, body []byte) []byte {
	return append([]byte{kind, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
}

// record is a record that is not protected.
func record(kind byte, b []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(len(b))), b...)
}
