package netstack

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unicode/utf8"
)

// What the PROXY protocol tells of a TLS connection, as type, length and value (section
// 2.2 of its specification; 2.2.5 for what is inside proxySSL).
const (
	proxyALPN       = 0x01 // the protocol chosen
	proxyAuthority  = 0x02 // the server's name as the client gave it
	proxySSL        = 0x20
	proxySSLVersion = 0x21
	proxySSLCN      = 0x22
	proxySSLCipher  = 0x23
	proxySSLSigAlg  = 0x24
	proxySSLKeyAlg  = 0x25

	proxyClientSSL      = 0x01 // the client uses TLS
	proxyClientCertConn = 0x02 // it showed its certificate on this connection
	proxyClientCertSess = 0x04 // or on an earlier one of the session

	proxyVerified    = 0 // the client showed a certificate that is right
	proxyNotVerified = 1 // any other number than 0

	proxyLengthAt = 14 // where in the header the length of the rest stands
	proxyRestAt   = 16
)

// maxProxyName bounds a name in the header, in bytes. A common name has at most 64
// characters (RFC 5280 appendix A.1, ub-common-name), a host name 253.
const maxProxyName = 255

// errProxyName tells that the common name of a client's certificate cannot be told to the
// server. It is who the client is: a part of it could be somebody else.
var errProxyName = errors.New("the common name of the client's certificate is too long, or no UTF-8")

// proxyCiphers are OpenSSL's names of the suites of TLS 1.2, which is what receivers
// compare with. Those of TLS 1.3 have the same name in both.
var proxyCiphers = map[uint16]string{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       "ECDHE-ECDSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       "ECDHE-ECDSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:         "ECDHE-RSA-AES128-GCM-SHA256",
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384:         "ECDHE-RSA-AES256-GCM-SHA384",
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256:   "ECDHE-RSA-CHACHA20-POLY1305",
}

// proxySignatures are OpenSSL's names of the algorithms that certificates are signed with.
var proxySignatures = map[x509.SignatureAlgorithm]string{
	x509.SHA256WithRSA:    "RSA-SHA256",
	x509.SHA384WithRSA:    "RSA-SHA384",
	x509.SHA512WithRSA:    "RSA-SHA512",
	x509.SHA256WithRSAPSS: "RSASSA-PSS",
	x509.SHA384WithRSAPSS: "RSASSA-PSS",
	x509.SHA512WithRSAPSS: "RSASSA-PSS",
	x509.ECDSAWithSHA256:  "ecdsa-with-SHA256",
	x509.ECDSAWithSHA384:  "ecdsa-with-SHA384",
	x509.ECDSAWithSHA512:  "ecdsa-with-SHA512",
	x509.PureEd25519:      "ED25519",
}

// appendProxyTLS appends the header of a TCP connection from src to dst whose TLS ends
// here. leaf is the certificate that this end showed; nil leaves out what is told of it.
func appendProxyTLS(b []byte, src, dst netip.AddrPort, state *tls.ConnectionState, leaf *x509.Certificate) ([]byte, error) {
	start := len(b)
	b = appendProxyHeader(b, proxyTCP4, proxyTCP6, src, dst)
	if state.NegotiatedProtocol != "" {
		b = appendProxyValue(b, proxyALPN, state.NegotiatedProtocol)
	}
	if name := state.ServerName; name != "" && len(name) <= maxProxyName && utf8.ValidString(name) {
		b = appendProxyValue(b, proxyAuthority, name)
	}
	ssl, err := appendProxySSL(nil, state, leaf)
	if err != nil {
		return b[:start], err
	}
	b = appendProxyValue(b, proxySSL, string(ssl))
	header := b[start:]
	binary.BigEndian.PutUint16(header[proxyLengthAt:], uint16(len(header)-proxyRestAt))
	return b, nil
}

// appendProxySSL appends the value of proxySSL: the client's flags, whether its
// certificate was verified, and values inside.
func appendProxySSL(b []byte, state *tls.ConnectionState, leaf *x509.Certificate) ([]byte, error) {
	flags, verified := byte(proxyClientSSL), uint32(proxyNotVerified)
	if len(state.PeerCertificates) > 0 {
		flags |= proxyClientCertSess
		if !state.DidResume {
			flags |= proxyClientCertConn
		}
	}
	if len(state.VerifiedChains) > 0 {
		verified = proxyVerified
	}
	b = binary.BigEndian.AppendUint32(append(b, flags), verified)
	b = appendProxyValue(b, proxySSLVersion, map[uint16]string{tls.VersionTLS12: "TLSv1.2", tls.VersionTLS13: "TLSv1.3"}[state.Version])
	if len(state.PeerCertificates) > 0 {
		name := state.PeerCertificates[0].Subject.CommonName
		if len(name) > maxProxyName || !utf8.ValidString(name) {
			return nil, errProxyName
		}
		if name != "" {
			b = appendProxyValue(b, proxySSLCN, name)
		}
	}
	cipher := proxyCiphers[state.CipherSuite]
	if cipher == "" {
		cipher = tls.CipherSuiteName(state.CipherSuite)
	}
	b = appendProxyValue(b, proxySSLCipher, cipher)
	if leaf == nil {
		return b, nil
	}
	if name := proxySignatures[leaf.SignatureAlgorithm]; name != "" {
		b = appendProxyValue(b, proxySSLSigAlg, name)
	}
	if name := proxyKey(leaf.PublicKey); name != "" {
		b = appendProxyValue(b, proxySSLKeyAlg, name)
	}
	return b, nil
}

// proxyKey names a public key's algorithm and its length in bits, as HAProxy does.
func proxyKey(public any) string {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA%d", key.N.BitLen())
	case *ecdsa.PublicKey:
		return fmt.Sprintf("EC%d", key.Curve.Params().BitSize)
	case ed25519.PublicKey:
		return "ED25519"
	}
	return ""
}

// appendProxyValue appends a type, a length and a value.
func appendProxyValue(b []byte, kind byte, value string) []byte {
	b = binary.BigEndian.AppendUint16(append(b, kind), uint16(len(value)))
	return append(b, value...)
}
