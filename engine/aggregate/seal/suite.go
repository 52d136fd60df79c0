package seal

import (
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
)

// A Suite is the number of a TLS cipher suite (RFC 8446 appendix B.4, RFC 5289 section
// 3.2, RFC 7905 section 2).
type Suite uint16

// The suites that can be opened and sealed: those of TLS 1.3 and, with the same ciphers,
// those of TLS 1.2 that have an ephemeral key exchange.
const (
	AES128GCM13        Suite = 0x1301
	AES256GCM13        Suite = 0x1302
	ChaCha20Poly130513 Suite = 0x1303

	ECDSAAES128GCM        Suite = 0xC02B
	ECDSAAES256GCM        Suite = 0xC02C
	RSAAES128GCM          Suite = 0xC02F
	RSAAES256GCM          Suite = 0xC030
	RSAChaCha20Poly1305   Suite = 0xCCA8
	ECDSAChaCha20Poly1305 Suite = 0xCCA9
)

// Suites returns the suites that can be opened and sealed.
func Suites() []Suite {
	s := make([]Suite, len(suites))
	for i := range suites {
		s[i] = suites[i].number
	}
	return s
}

// A suite is what there is to know of a Suite.
type suite struct {
	number Suite
	name   string // that of IANA's registry
	tls13  bool
	chacha bool // ChaCha20-Poly1305, else AES-GCM
	keyLen int  // bytes
	hash   func() hash.Hash
}

var suites = [...]suite{
	{AES128GCM13, "TLS_AES_128_GCM_SHA256", true, false, 16, sha256.New},
	{AES256GCM13, "TLS_AES_256_GCM_SHA384", true, false, 32, sha512.New384},
	{ChaCha20Poly130513, "TLS_CHACHA20_POLY1305_SHA256", true, true, 32, sha256.New},
	{ECDSAAES128GCM, "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", false, false, 16, sha256.New},
	{ECDSAAES256GCM, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", false, false, 32, sha512.New384},
	{RSAAES128GCM, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", false, false, 16, sha256.New},
	{RSAAES256GCM, "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", false, false, 32, sha512.New384},
	{RSAChaCha20Poly1305, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", false, true, 32, sha256.New},
	{ECDSAChaCha20Poly1305, "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", false, true, 32, sha256.New},
}

// find returns nil for suites that are not known.
func (s Suite) find() *suite {
	for i := range suites {
		if suites[i].number == s {
			return &suites[i]
		}
	}
	return nil
}

// Known says whether records of the suite can be opened and sealed.
func (s Suite) Known() bool { return s.find() != nil }

// TLS13 says whether s is a known suite of TLS 1.3.
func (s Suite) TLS13() bool {
	p := s.find()
	return p != nil && p.tls13
}

// String returns the name in IANA's registry, of suites that hardly anybody has their
// number. crypto/tls has more names, and brings the network into the core.
func (s Suite) String() string {
	if p := s.find(); p != nil {
		return p.name
	}
	if name := otherNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("0x%04X", uint16(s))
}

// HashLen returns the length of the suite's hash in bytes, 0 where s is not known.
func (s Suite) HashLen() int {
	p := s.find()
	if p == nil {
		return 0
	}
	return p.hash().Size()
}

// SecretLen returns how many bytes of material NewKeys takes, 0 where s is not known.
func (s Suite) SecretLen() int {
	p := s.find()
	if p == nil {
		return 0
	}
	return p.secretLen()
}

// secretLen is the length of the hash in TLS 1.3 (RFC 8446 section 7.1), in 1.2 of the
// key and the IV.
func (p *suite) secretLen() int {
	if p.tls13 {
		return p.hash().Size()
	}
	return p.keyLen + p.ivLen()
}

// The parts of a nonce, bytes. In TLS 1.2 with AES-GCM four are of the connection and
// eight stand in each record (RFC 5288 section 3); else all twelve are of the connection
// and the record's number is XORed to them (RFC 8446 section 5.3, RFC 7905 section 2).
const (
	nonceLen    = 12
	saltLen     = 4
	explicitLen = nonceLen - saltLen
)

func (p *suite) ivLen() int { return nonceLen - p.explicit() }

// explicit is how many bytes of the nonce stand in each record.
func (p *suite) explicit() int {
	if p.tls13 || p.chacha {
		return 0
	}
	return explicitLen
}
