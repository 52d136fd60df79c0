package tunnel

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// alpn is what the handshakes agree on (RFC 7301).
const alpn = "sheaf/1"

// certificate makes the self-signed certificate that carries the public key
// into the handshake. Nothing in it but the key is ever looked at: it is small,
// and valid at any time, since gateways' clocks may be wrong.
func certificate(k Key) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "sheaf"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280 section 4.1.2.5: no end
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.private.Public(), k.private)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("tunnel: certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k.private}, nil
}

// tlsConfig is what both ends of both carriers have in common. Verification by
// certificate authority is off because verify, which every handshake must pass,
// pins the key itself.
func tlsConfig(cert tls.Certificate, verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		Certificates:           []tls.Certificate{cert},
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{alpn},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true,
		VerifyConnection:       verify,
		SessionTicketsDisabled: true, // every connection proves both keys; saves a packet too
	}
}

// fingerprintIn returns the fingerprint of the key that the other end of a
// handshake has proven to own.
func fingerprintIn(cs tls.ConnectionState) (Fingerprint, error) {
	if cs.NegotiatedProtocol != alpn {
		return Fingerprint{}, fmt.Errorf("%w: application protocol %q", ErrProtocol, cs.NegotiatedProtocol)
	}
	if len(cs.PeerCertificates) == 0 {
		return Fingerprint{}, fmt.Errorf("%w: no certificate", ErrProtocol)
	}
	public, ok := cs.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return Fingerprint{}, fmt.Errorf("%w: the certificate's key is not Ed25519", ErrProtocol)
	}
	return fingerprintOf(public), nil
}

// dialTLS is the configuration for calling the peer with the given fingerprint.
func (t *Tunnel) dialTLS(want Fingerprint) *tls.Config {
	return tlsConfig(t.cert, func(cs tls.ConnectionState) error {
		got, err := fingerprintIn(cs)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%w: the gateway there has the fingerprint %v, expected %v", ErrWrongKey, got, want)
		}
		return nil
	})
}

// listenTLS is the configuration for being called by any configured peer. Who is
// turned away in the handshake is given to note.
func (t *Tunnel) listenTLS(note func(from net.Addr, err error)) *tls.Config {
	verify := func(from net.Addr) func(tls.ConnectionState) error {
		return func(cs tls.ConnectionState) error {
			got, err := fingerprintIn(cs)
			if err == nil && t.known[got] == nil {
				err = fmt.Errorf("%w: fingerprint %v", ErrUnknownPeer, got)
			}
			if err != nil {
				note(from, err)
			}
			return err
		}
	}
	conf := tlsConfig(t.cert, verify(nil))
	conf.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		from := hello.Conn.RemoteAddr()
		if !slices.Contains(hello.SupportedProtos, alpn) { // the handshake answers with an alert
			note(from, fmt.Errorf("%w: %w: it offers %q, not %q; if it is one of yours, upgrade the older of the two", ErrProtocol, ReasonVersion, hello.SupportedProtos, alpn))
		}
		return tlsConfig(t.cert, verify(from)), nil
	}
	return conf
}
