package seal

import (
	"crypto/aes"
	"encoding/binary"
)

// Find looks for the number of a whole record, from <= number < to, and says whether one
// opens it. A number that is wrong costs one block of the cipher in TLS 1.3, one opening
// in 1.2; the caller bounds how many there are. It allocates once. record is borrowed for
// the call.
func Find(k *Keys, record []byte, from, to uint64) (number uint64, ok bool) {
	var room []byte
	opens := func(number uint64) bool {
		if room == nil {
			room = make([]byte, 0, len(record))
		}
		_, ok := k.Open(room, record, number)
		return ok
	}
	if len(record) < k.Overhead() {
		return 0, false
	}
	if k.explicit > 0 {
		// Many implementations take the number for the nonce (RFC 5288 section 3 lets them).
		if n := binary.BigEndian.Uint64(record[HeadLen:]); from <= n && n < to && opens(n) {
			return n, true
		}
	}
	for n := from; n < to; n++ {
		if k.likely(record, n) && opens(n) {
			return n, true
		}
	}
	return 0, false
}

// likely says whether a record could have a number: in TLS 1.3 the inner plaintext ends
// with a content type and zeros (RFC 8446 section 5.4), and one number in about eighty
// that are wrong does so, too. Only the last bytes are decrypted for it.
func (k *Keys) likely(record []byte, number uint64) bool {
	if !k.suite.tls13 {
		return true
	}
	const alert, applicationData = 21, 23 // and handshake between them
	text := record[HeadLen : len(record)-TagLen]
	off := max(0, len(text)-1) / aes.BlockSize * aes.BlockSize
	var room [aes.BlockSize]byte
	last := room[:len(text)-off]
	k.XOR(last, text[off:], number, nil, off)
	for i := len(last) - 1; i >= 0; i-- {
		if last[i] != 0 {
			return alert <= last[i] && last[i] <= applicationData
		}
	}
	return true // padding goes on before it
}
