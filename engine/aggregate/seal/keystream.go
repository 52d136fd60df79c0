package seal

import (
	"crypto/aes"
	"crypto/subtle"
	"encoding/binary"

	"golang.org/x/crypto/chacha20"
)

// XOR encrypts or decrypts, without any proof, a piece of a record: dst becomes src with
// the keystream that the record of a number has from byte off of its inner plaintext on.
// nonce is as in Seal. dst and src have the same length and are the same bytes or do not
// overlap; off is at least 0 and the piece ends before MaxFragment.
func (k *Keys) XOR(dst, src []byte, number uint64, nonce *[explicitLen]byte, off int) {
	k.number(number, nonce)
	if k.block != nil {
		k.xorAES(dst, src, off)
		return
	}
	k.xorChaCha20(dst, src, off)
}

// xorAES is GCM's counter mode: with a nonce of twelve bytes the first counter block is
// that of the tag and the second begins the text (NIST SP 800-38D section 7.1).
// cipher.NewCTR would allocate for each piece.
func (k *Keys) xorAES(dst, src []byte, off int) {
	const first = 2
	copy(k.counter[:], k.nonce[:])
	block, skip := uint32(off/aes.BlockSize)+first, off%aes.BlockSize
	for len(src) > 0 {
		binary.BigEndian.PutUint32(k.counter[nonceLen:], block)
		k.block.Encrypt(k.stream[:], k.counter[:])
		n := subtle.XORBytes(dst, src, k.stream[skip:])
		dst, src = dst[n:], src[n:]
		block, skip = block+1, 0
	}
}

// xorChaCha20 is the cipher of ChaCha20-Poly1305: the first block keys the tag and the
// second begins the text (RFC 8439 section 2.8).
func (k *Keys) xorChaCha20(dst, src []byte, off int) {
	const (
		blockSize = 64
		first     = 1
	)
	c, err := chacha20.NewUnauthenticatedCipher(k.key, k.nonce[:])
	if err != nil {
		panic(err) // of a key or nonce of another length only, which NewKeys rules out
	}
	c.SetCounter(uint32(off/blockSize) + first)
	var skipped [blockSize]byte
	skip := skipped[:off%blockSize]
	c.XORKeyStream(skip, skip)
	c.XORKeyStream(dst, src)
}
