package seal

import (
	"crypto/hkdf"
	"encoding/binary"
)

// traffic returns the write key and write IV of a traffic secret (RFC 8446 section 7.3).
// They are the caller's.
func (p *suite) traffic(secret []byte) (key, iv []byte, err error) {
	if key, err = p.expand(secret, "key", p.keyLen); err != nil {
		return nil, nil, err
	}
	iv, err = p.expand(secret, "iv", nonceLen)
	return key, iv, err
}

// expand is HKDF-Expand-Label without a context (RFC 8446 section 7.1).
func (p *suite) expand(secret []byte, label string, length int) ([]byte, error) {
	const prefix = "tls13 "
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(info, byte(len(prefix)+len(label)))
	info = append(info, prefix...)
	info = append(info, label...)
	info = append(info, 0) // the length of the context
	return hkdf.Expand(p.hash, secret, string(info), length)
}
