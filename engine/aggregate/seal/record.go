package seal

import "encoding/binary"

// Open opens a whole record of the given number, with its head, and appends its inner
// plaintext to dst: in TLS 1.3 content, content type and zeros as they are
// (TLSInnerPlaintext, RFC 8446 section 5.2), in 1.2 the content. It returns dst and
// false when the bytes are no record, or none that these keys protect under that number.
// Nothing is allocated where dst has room for len(record) bytes. record is borrowed for
// the call, and may overlap dst's room only where the plaintext comes to lie exactly over
// the ciphertext.
func (k *Keys) Open(dst, record []byte, number uint64) (inner []byte, ok bool) {
	begin := HeadLen + k.explicit
	if len(record) < begin+TagLen || len(record) > HeadLen+MaxFragment ||
		int(record[3])<<8|int(record[4]) != len(record)-HeadLen {
		return dst, false
	}
	var explicit [explicitLen]byte
	copy(explicit[:], record[HeadLen:begin])
	k.number(number, &explicit)
	aad := k.additional([3]byte(record), number, len(record)-begin-TagLen)
	inner, err := k.aead.Open(dst, k.nonce[:], record[begin:], aad)
	if err != nil {
		return dst, false
	}
	return inner, true
}

// Seal is Open's reverse: it appends the record of a number to dst. head is the record's
// type and version as they stand before its length, nonce what stands behind it, borrowed
// for the call; nonce may be nil where NonceLen is 0. inner is borrowed for the call, and
// may overlap dst's room only where the ciphertext comes to lie exactly over it. Nothing
// is allocated where dst has room for Overhead and inner. The caller bounds inner: beyond
// MaxFragment less the overhead no receiver takes the record, and Open does not.
func (k *Keys) Seal(dst []byte, head [3]byte, nonce *[explicitLen]byte, inner []byte, number uint64) []byte {
	dst = append(dst, head[0], head[1], head[2])
	dst = binary.BigEndian.AppendUint16(dst, uint16(k.explicit+len(inner)+TagLen))
	if k.explicit > 0 {
		dst = append(dst, nonce[:]...)
	}
	k.number(number, nonce)
	return k.aead.Seal(dst, k.nonce[:], inner, k.additional(head, number, len(inner)))
}

// AppendTag appends only the last TagLen bytes of what Seal makes, for a record whose
// ciphertext went before, in pieces. Parameters are as in Seal, and so is the room that
// dst needs; what lies in it behind the tag is overwritten.
func (k *Keys) AppendTag(dst []byte, head [3]byte, nonce *[explicitLen]byte, inner []byte, number uint64) []byte {
	record := k.Seal(dst, head, nonce, inner, number)
	tag := record[len(record)-TagLen:]
	n := len(dst)
	copy(record[n:], tag)
	return record[:n+TagLen]
}

// additional returns the additional data of a record with n bytes of inner plaintext: in
// TLS 1.3 the record's head (RFC 8446 section 5.2), in 1.2 its number and a head with the
// plaintext's length (RFC 5246 section 6.2.3.3).
func (k *Keys) additional(head [3]byte, number uint64, n int) []byte {
	if k.suite.tls13 {
		copy(k.aad[:], head[:])
		binary.BigEndian.PutUint16(k.aad[3:], uint16(n+TagLen))
		return k.aad[:HeadLen]
	}
	binary.BigEndian.PutUint64(k.aad[:], number)
	copy(k.aad[8:], head[:])
	binary.BigEndian.PutUint16(k.aad[11:], uint16(n))
	return k.aad[:]
}
