package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"sheaf/tunnel"
)

// What is right about the [[tls]] tables.

// checkTLS checks the [[tls]] tables, each and beside one another.
func (c *Config) checkTLS() error {
	if len(c.TLS) == 0 {
		return nil
	}
	carriers, err := c.carriers()
	if err != nil {
		return err
	}
	if slices.Contains(carriers, tunnel.Plain) {
		// Who listens on the link would have the secrets, and who calls might be anybody.
		return errors.New(`[[tls]] excludes carrier "plain": secrets of connections go over an encrypted carrier only`)
	}
	named := map[netip.AddrPort]bool{}
	logs := map[string]bool{}
	for i := range c.TLS {
		t := &c.TLS[i]
		if err := t.check(); err != nil {
			return fmt.Errorf("[[tls]] %d: %w", i+1, err)
		}
		servers, _ := t.servers() // checked
		for _, s := range servers {
			if named[s] {
				return fmt.Errorf("[[tls]] %d: server %v is there twice", i+1, s)
			}
			named[s] = true
		}
		if t.Certificate != "" {
			if err := c.checkFrontPlace(servers); err != nil {
				return fmt.Errorf("[[tls]] %d: %w", i+1, err)
			}
		}
		if t.KeyLog != "" && logs[t.KeyLog] {
			return fmt.Errorf("[[tls]] %d: keylog %s is there twice: name all servers that write it in one table", i+1, t.KeyLog)
		}
		logs[t.KeyLog] = true
	}
	return nil
}

// check checks a [[tls]] table by itself.
func (t *TLS) check() error {
	if len(t.Servers) == 0 {
		return errors.New("server is missing: ADDR:PORT of the TLS servers, as clients reach them")
	}
	if _, err := t.servers(); err != nil {
		return err
	}
	switch {
	case t.KeyLog != "" && (t.Certificate != "" || t.To != ""):
		return errors.New("keylog excludes to and certificate: either the server writes the secrets down, or the gateway is the server")
	case t.Empty && t.KeyLog == "":
		return errors.New("empty needs keylog, the file to empty")
	}
	return t.checkFront()
}

// servers returns the addresses of the servers, those of IPv4 as such.
func (t *TLS) servers() ([]netip.AddrPort, error) {
	var all []netip.AddrPort
	for _, s := range t.Servers {
		a, err := netip.ParseAddrPort(s)
		if err != nil || a.Port() == 0 || a.Addr().Zone() != "" {
			return nil, fmt.Errorf("server = %q: expected ADDR:PORT, for example 10.2.0.10:8883", s)
		}
		all = append(all, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
	}
	return all, nil
}

// paths returns where the paths of files in the table are.
func (t *TLS) paths() []*string {
	return []*string{&t.KeyLog, &t.Certificate, &t.PrivateKey, &t.ClientCA, &t.CRL}
}
