package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"

	"sheaf/netstack/vsock"
	"sheaf/tunnel"
)

// What is right about a configuration beyond its keys and their types. Every error says
// which key, and what is expected of it.

func (c *Config) check() error {
	for _, check := range []func() error{c.checkOwn, c.checkPeers, c.checkEnds, c.checkTUN, c.checkVM, c.checkTLS} {
		if err := check(); err != nil {
			return err
		}
	}
	if _, err := c.lane(nil); err != nil {
		return err
	}
	if _, err := c.carriers(); err != nil {
		return err
	}
	_, err := c.registry()
	return err
}

// checkOwn checks what is of the gateway itself.
func (c *Config) checkOwn() error {
	if c.Key == "" {
		return errors.New(`key is missing: the path of a key that "sheaf keygen" made`)
	}
	for _, at := range []struct{ key, address string }{{"listen", c.Listen}, {"metrics", c.Metrics}} {
		if at.address == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(at.address); err != nil {
			return fmt.Errorf("%s = %q: expected HOST:PORT or :PORT", at.key, at.address)
		}
	}
	var level slog.Level
	if c.Log != "" && level.UnmarshalText([]byte(c.Log)) != nil {
		return fmt.Errorf("log = %q: expected debug, info, warn or error", c.Log)
	}
	return nil
}

// checkPeers checks the [[peer]] tables, each and beside one another.
func (c *Config) checkPeers() error {
	if len(c.Peers) == 0 {
		return errors.New("no [[peer]]: a gateway needs another one")
	}
	var seen []netip.Prefix
	names := map[string]bool{}
	for i := range c.Peers {
		p := &c.Peers[i]
		switch {
		case p.Name == "":
			return fmt.Errorf("[[peer]] %d: name is missing", i+1)
		case names[p.Name]:
			return fmt.Errorf("[[peer]] %q is there twice", p.Name)
		case p.Endpoint == "" && c.Listen == "":
			return fmt.Errorf("[[peer]] %q has no endpoint, and this gateway does not listen: neither could call the other", p.Name)
		}
		names[p.Name] = true
		if err := p.check(); err != nil {
			return fmt.Errorf("[[peer]] %q: %w", p.Name, err)
		}
		for _, a := range p.Allowed {
			if slices.Contains(seen, a.Prefix) {
				return fmt.Errorf("[[peer]] %q: allowed %v is already another peer's", p.Name, a.Prefix)
			}
			seen = append(seen, a.Prefix)
		}
	}
	return nil
}

// check checks a [[peer]] table by itself.
func (p *Peer) check() error {
	if len(p.Allowed) == 0 {
		return errors.New("allowed is missing: the prefixes that lie behind it")
	}
	if _, err := tunnel.ParseFingerprint(p.Fingerprint); err != nil {
		return fmt.Errorf("fingerprint: %w", err)
	}
	if p.Endpoint != "" {
		if host, port, err := net.SplitHostPort(p.Endpoint); err != nil || host == "" || port == "" {
			return fmt.Errorf("endpoint = %q: expected HOST:PORT", p.Endpoint)
		}
	}
	for _, a := range p.Allowed {
		if a.Prefix != a.Masked() {
			return fmt.Errorf("allowed %v has bits past its length: did you mean %v?", a.Prefix, a.Masked())
		}
	}
	return nil
}

// checkEnds checks where packets come from and go to at this end.
func (c *Config) checkEnds() error {
	if c.TUN == nil && len(c.Forward) == 0 && c.Terminate == nil && c.VM == nil {
		return errors.New("nothing to carry: needs [tun], or without root [[forward]], [terminate] or [vm]")
	}
	if len(c.Forward) > 0 && len(c.Address) == 0 {
		return errors.New("[[forward]] needs address, what it connects from, for example 10.99.0.1")
	}
	for i, f := range c.Forward {
		if _, err := netip.ParseAddrPort(f.To); err != nil {
			return fmt.Errorf("[[forward]] %d: to = %q: expected ADDR:PORT", i+1, f.To)
		}
		if _, _, err := f.vsockFrom(); err != nil {
			return fmt.Errorf("[[forward]] %d: from = %w", i+1, err)
		}
	}
	if c.Terminate == nil {
		return nil
	}
	if len(c.Terminate.Prefixes) == 0 {
		return errors.New("[terminate]: prefixes is missing: the addresses to stand in for")
	}
	_, _, err := c.Terminate.servers()
	return err
}

// Bounds of [tun]'s mtu: every IPv4 host takes 576 bytes (RFC 791), and a device's
// packets with what the tunnel adds fit into 16 bits of length.
const minMTU, maxMTU = 576, 65000

// checkTUN checks the [tun] table, if there is one.
func (c *Config) checkTUN() error {
	t := c.TUN
	switch {
	case t == nil:
		return nil
	case len(c.Forward) > 0 || c.Terminate != nil:
		return errors.New("[tun] excludes [[forward]] and [terminate]")
	case len(t.Address) == 0:
		return errors.New("[tun]: address is missing, for example 10.99.0.1/24")
	case t.MTU != 0 && (t.MTU < minMTU || t.MTU > maxMTU):
		return fmt.Errorf("[tun]: mtu = %d is not between %d and %d", t.MTU, minMTU, maxMTU)
	case t.Fallback != "" && t.Fallback != fallbackRefuse && t.Fallback != fallbackRoute:
		return fmt.Errorf("[tun]: fallback = %q: expected %s or %s", t.Fallback, fallbackRefuse, fallbackRoute)
	}
	return nil
}

// servers returns where the servers are that are not at their own address: at another, or
// at a port of a guest's vsock.
func (t *Terminate) servers() (map[netip.AddrPort]netip.AddrPort, map[netip.AddrPort]vsock.Addr, error) {
	m, sockets := make(map[netip.AddrPort]netip.AddrPort), make(map[netip.AddrPort]vsock.Addr)
	for from, to := range t.Map {
		f, err := netip.ParseAddrPort(from)
		if err != nil {
			return nil, nil, fmt.Errorf("[terminate]: map: %q: expected ADDR:PORT", from)
		}
		if strings.HasPrefix(to, vsockScheme) {
			if sockets[f], err = vsock.ParseAddr(to); err != nil {
				return nil, nil, fmt.Errorf("[terminate]: map: %w", err)
			}
			if a := sockets[f]; a.Guest == "" && a.CID == 0 && a.Path == "" {
				return nil, nil, fmt.Errorf("[terminate]: map: %q: expected a guest, as in vsock:GUEST:PORT", to)
			}
			continue
		}
		if m[f], err = netip.ParseAddrPort(to); err != nil {
			return nil, nil, fmt.Errorf("[terminate]: map: %q: expected ADDR:PORT, or vsock:GUEST:PORT", to)
		}
	}
	return m, sockets, nil
}
