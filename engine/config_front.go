package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// What client_auth can be: clients without a certificate are refused, or not.
const (
	authRequire = "require"
	authRequest = "request"
)

// maxALPN is the longest name of a protocol in bytes (RFC 7301 section 3.1).
const maxALPN = 255

// checkFront checks what a [[tls]] table says of the gateway as the TLS server.
func (t *TLS) checkFront() error {
	if t.Certificate == "" {
		for key, set := range map[string]bool{
			"to": t.To != "", "private_key": t.PrivateKey != "", "client_ca": t.ClientCA != "", "client_auth": t.ClientAuth != "",
			"crl": t.CRL != "", "alpn": len(t.ALPN) > 0, "proxy": t.Proxy,
		} {
			if set {
				return fmt.Errorf("%s needs certificate, with which the gateway is the TLS server", key)
			}
		}
		return nil
	}
	switch _, err := t.plain(); {
	case t.PrivateKey == "":
		return errors.New("private_key is missing: the path of the certificate's key")
	case t.To == "":
		return errors.New("to is missing: ADDR:PORT of the plain server that the gateway stands in front of")
	case err != nil:
		return err
	case t.ClientCA == "" && t.ClientAuth != "":
		return errors.New("client_auth needs client_ca, the certificates that sign those of clients")
	case t.ClientCA == "" && t.CRL != "":
		return errors.New("crl needs client_ca, the certificates that sign those of clients")
	case t.ClientAuth != "" && t.ClientAuth != authRequire && t.ClientAuth != authRequest:
		return fmt.Errorf("client_auth = %q: expected %s or %s", t.ClientAuth, authRequire, authRequest)
	}
	for _, p := range t.ALPN {
		if p == "" || len(p) > maxALPN {
			return fmt.Errorf("alpn: %q is not 1 to %d bytes long", p, maxALPN)
		}
	}
	return nil
}

// plain returns the address of the plain server.
func (t *TLS) plain() (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(t.To)
	if err != nil || a.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("to = %q: expected ADDR:PORT, for example 127.0.0.1:1883", t.To)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

// checkFrontPlace checks that connections to servers of a table with a certificate come
// by: without a device they have to be inside of [terminate], and nowhere else by its map.
func (c *Config) checkFrontPlace(servers []netip.AddrPort) error {
	if c.TUN != nil {
		return nil
	}
	for _, s := range servers {
		if c.Terminate == nil || !slices.ContainsFunc(c.Terminate.Prefixes, func(p Prefix) bool { return p.Contains(s.Addr()) }) {
			return fmt.Errorf("server %v is in no prefix of [terminate], where without [tun] connections end", s)
		}
		mapped, _, err := c.Terminate.servers()
		if err != nil {
			return err
		}
		if _, twice := mapped[s]; twice {
			return fmt.Errorf("server %v is in the map of [terminate] as well: to already says where its connections go", s)
		}
	}
	return nil
}
