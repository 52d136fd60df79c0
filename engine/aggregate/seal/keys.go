package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"

	"golang.org/x/crypto/chacha20poly1305"
)

// The parts of a record, bytes:
//
//	type(1) version(2) length(2) nonce(NonceLen) ciphertext tag(TagLen)
const (
	HeadLen = 5

	// TagLen is the same in all suites (RFC 5116 section 5.1, RFC 8439 section 2.8).
	TagLen = 16

	// MaxFragment is what may follow a head at most: RFC 8446 section 5.2 has 256 bytes
	// beyond the content, TLS 1.2 needs 24 of them.
	MaxFragment = 1<<14 + 256
)

var (
	// ErrSuite says that a cipher suite is not known.
	ErrSuite = errors.New("cipher suite is not known")
	// ErrSecret says that a secret has not the length that its suite needs.
	ErrSecret = errors.New("secret has the wrong length for its cipher suite")
	// ErrNoUpdate says that there are no next keys: TLS 1.2 has no KeyUpdate.
	ErrNoUpdate = errors.New("no next keys in TLS 1.2")
)

// Keys protect the records of one direction of a connection, in TLS 1.3 those of one
// stage and generation. They are for one goroutine at a time, also where they only open.
type Keys struct {
	suite    *suite
	explicit int    // bytes of the nonce that stand in each record
	material []byte // owned
	heard    bool   // the far end told it since the epoch began
	key      []byte // of ChaCha20, owned; nil in AES
	aead     cipher.AEAD
	block    cipher.Block // AES, for pieces of records; nil in ChaCha20
	iv       [nonceLen]byte

	// What the ciphers are handed lies here, since they stand behind interfaces, by
	// which it would escape.
	nonce   [nonceLen]byte
	aad     [13]byte // RFC 5246 section 6.2.3.3; TLS 1.3 has the first five bytes for it
	counter [aes.BlockSize]byte
	stream  [aes.BlockSize]byte
}

// NewKeys makes the keys of a suite from their material: in TLS 1.3 the traffic secret
// (RFC 8446 section 7.3), in 1.2 write key and write IV, see Derive12. material is
// borrowed for the call. The error is ErrSuite or ErrSecret.
func NewKeys(s Suite, material []byte) (*Keys, error) {
	p := s.find()
	switch {
	case p == nil:
		return nil, ErrSuite
	case len(material) != p.secretLen():
		return nil, ErrSecret
	}
	k := &Keys{suite: p, explicit: p.explicit(), material: append([]byte(nil), material...)}
	key, iv := k.material[:p.keyLen:p.keyLen], k.material[p.keyLen:]
	if p.tls13 {
		var err error
		if key, iv, err = p.traffic(k.material); err != nil {
			return nil, err
		}
	}
	copy(k.iv[:], iv)
	if err := k.prepare(key); err != nil {
		return nil, err
	}
	return k, nil
}

// prepare makes the ciphers of a key, which it owns from then on.
func (k *Keys) prepare(key []byte) (err error) {
	if k.suite.chacha {
		k.key = key
		k.aead, err = chacha20poly1305.New(key)
		return err
	}
	if k.block, err = aes.NewCipher(key); err != nil {
		return err
	}
	k.aead, err = cipher.NewGCM(k.block)
	if k.suite.tls13 { // in TLS 1.2 it is the material
		clear(key)
	}
	return err
}

// Suite returns the suite that the keys are of.
func (k *Keys) Suite() Suite { return k.suite.number }

// Material returns what NewKeys made the keys from, to be told to the other gateway. It
// is borrowed until Clear.
func (k *Keys) Material() []byte { return k.material }

// NonceLen returns how many bytes of nonce stand in each record: 8 in TLS 1.2 with
// AES-GCM, else none.
func (k *Keys) NonceLen() int { return k.explicit }

// Overhead returns by how many bytes a record is longer than its inner plaintext.
func (k *Keys) Overhead() int { return HeadLen + k.explicit + TagLen }

// Next returns the keys behind a KeyUpdate (RFC 8446 section 7.2). The error is
// ErrNoUpdate in TLS 1.2.
func (k *Keys) Next() (*Keys, error) {
	if !k.suite.tls13 {
		return nil, ErrNoUpdate
	}
	secret, err := k.suite.expand(k.material, "traffic upd", k.suite.hash().Size())
	if err != nil {
		return nil, err
	}
	next, err := NewKeys(k.suite.number, secret)
	clear(secret)
	return next, err
}

// Clear overwrites the secrets and lets go of the ciphers, whose own copies wait for the
// garbage collector: nothing of the standard library overwrites them. The keys are not
// to be used any more, but for Suite, the lengths, and Clear itself. It does nothing where
// there are no keys, nil.
func (k *Keys) Clear() {
	if k == nil {
		return
	}
	clear(k.material)
	clear(k.key)
	clear(k.iv[:])
	clear(k.nonce[:])
	clear(k.counter[:])
	clear(k.stream[:])
	k.material, k.key, k.aead, k.block = nil, nil, nil, nil
}

// number puts the nonce of a record into k.nonce; explicit may be nil where NonceLen is 0.
func (k *Keys) number(number uint64, explicit *[explicitLen]byte) {
	k.nonce = k.iv
	if k.explicit > 0 {
		copy(k.nonce[saltLen:], explicit[:])
		return
	}
	for i := range 8 { // RFC 8446 section 5.3, RFC 7905 section 2
		k.nonce[nonceLen-1-i] ^= byte(number >> (8 * i))
	}
}
