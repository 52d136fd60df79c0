// Package seal opens TLS records and seals them again to the same bytes. A record is
// determined by its plaintext, the traffic secret of its direction and a counter (RFC
// 8446 section 5.2, RFC 5246 section 6.2.3), so a far end that is told the secret once
// needs nothing of the ciphertext.
package seal
