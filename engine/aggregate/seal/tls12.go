package seal

import (
	"crypto/hmac"
	"hash"
)

// MasterLen is the length of a master secret of TLS 1.2, bytes (RFC 5246 section 8.1).
const MasterLen = 48

// Derive12 returns the material of both directions' keys from a connection's master
// secret and the randoms of its hellos, for suites of TLS 1.2 (RFC 5246 section 6.3).
// What it is given is borrowed for the call, what it returns is the caller's. The error is
// ErrSuite or ErrSecret.
func Derive12(s Suite, master, clientRandom, serverRandom []byte) (client, server []byte, err error) {
	p := s.find()
	switch {
	case p == nil || p.tls13:
		return nil, nil, ErrSuite
	case len(master) != MasterLen || len(clientRandom) != RandomLen || len(serverRandom) != RandomLen:
		return nil, nil, ErrSecret
	}
	seed := append([]byte("key expansion"), serverRandom...)
	seed = append(seed, clientRandom...)
	block := prf(p.hash, master, seed, 2*p.secretLen())
	keys, ivs := block[:2*p.keyLen], block[2*p.keyLen:] // there are no MAC keys in an AEAD
	part := func(i int) []byte {
		m := append(make([]byte, 0, p.secretLen()), keys[i*p.keyLen:(i+1)*p.keyLen]...)
		return append(m, ivs[i*p.ivLen():(i+1)*p.ivLen()]...)
	}
	client, server = part(0), part(1)
	clear(block)
	return client, server, nil
}

// prf is P_hash, of which TLS 1.2's PRF consists, length bytes of it (RFC 5246 section
// 5); the label is the beginning of the seed.
func prf(h func() hash.Hash, secret, seed []byte, length int) []byte {
	mac := hmac.New(h, secret)
	sum := func(dst []byte, parts ...[]byte) []byte {
		mac.Reset()
		for _, part := range parts {
			mac.Write(part)
		}
		return mac.Sum(dst)
	}
	out := make([]byte, 0, length+mac.Size()) // room, so that no copy of it stays behind
	for a := sum(nil, seed); len(out) < length; a = sum(nil, a) {
		out = sum(out, a, seed)
	}
	return out[:length]
}
