package tunnel

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"
)

// Config says who this gateway is, where it listens and whom it talks to. The
// zero value of a field is its default.
type Config struct {
	Key Key // required

	// Listen is host:port, UDP for QUIC and TCP for TLS and plain. An empty host
	// is every address, port 0 any free one (the same for both). Empty: none.
	Listen string

	// Carriers are those allowed, in order of preference; DefaultCarriers. Plain
	// stands alone: beside the others it would let anyone who reaches the port
	// take a peer's place.
	Carriers []Carrier

	Peers  []PeerConfig
	Logger *slog.Logger // slog.Default()

	DialTimeout    time.Duration // for one attempt, all carriers and calls; 10 s
	FallbackDelay  time.Duration // before the next carrier is tried beside the one before; 3 s
	RetryPreferred time.Duration // between attempts at a preferred carrier, at most; 5 min
	BackoffMin     time.Duration // between the first calls of an attempt, and after the first that failed; 250 ms
	BackoffMax     time.Duration // after many that failed, where the peer was never connected or refuses; 30 s
	KeepAlive      time.Duration // a sign of life on an idle connection, so that NATs keep it; 15 s
	IdleTimeout    time.Duration // a connection without any is dead; 30 s, at least twice KeepAlive
}

// PeerConfig is one other gateway.
type PeerConfig struct {
	Name        string      // unique, not empty
	Fingerprint Fingerprint // unique
	Endpoint    string      // host:port, resolved at every attempt; "": only waits to be called
}

// withDefaults returns c with defaults filled in, or what is wrong with it.
func (c Config) withDefaults() (Config, error) {
	if !c.Key.usable() {
		return c, fmt.Errorf("%w: no key", ErrConfig)
	}
	if len(c.Carriers) == 0 {
		c.Carriers = DefaultCarriers
	}
	for i, carrier := range c.Carriers {
		if carrier < QUIC || carrier > Plain {
			return c, fmt.Errorf("%w: %v is not a carrier", ErrConfig, carrier)
		}
		if slices.Contains(c.Carriers[:i], carrier) {
			return c, fmt.Errorf("%w: carrier %v is named twice", ErrConfig, carrier)
		}
	}
	if slices.Contains(c.Carriers, Plain) && len(c.Carriers) > 1 {
		return c, fmt.Errorf("%w: carrier plain cannot stand beside others: anyone who reaches the port could take a peer's place", ErrConfig)
	}
	if c.Listen != "" {
		if err := checkAddress(c.Listen, true); err != nil {
			return c, fmt.Errorf("listen: %w", err)
		}
	}
	if err := c.checkPeers(); err != nil {
		return c, err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"DialTimeout", &c.DialTimeout, 10 * time.Second},
		{"FallbackDelay", &c.FallbackDelay, 3 * time.Second},
		{"RetryPreferred", &c.RetryPreferred, 5 * time.Minute},
		{"BackoffMin", &c.BackoffMin, 250 * time.Millisecond},
		{"BackoffMax", &c.BackoffMax, 30 * time.Second},
		{"KeepAlive", &c.KeepAlive, 15 * time.Second},
		{"IdleTimeout", &c.IdleTimeout, 30 * time.Second},
	} {
		if *d.value < 0 {
			return c, fmt.Errorf("%w: %s is negative", ErrConfig, d.name)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	c.IdleTimeout = max(c.IdleTimeout, 2*c.KeepAlive)
	c.BackoffMax = max(c.BackoffMax, c.BackoffMin)
	return c, nil
}

func (c Config) checkPeers() error {
	names, prints := map[string]bool{}, map[Fingerprint]string{}
	for _, p := range c.Peers {
		other, taken := prints[p.Fingerprint]
		switch {
		case p.Name == "":
			return fmt.Errorf("%w: a peer has no name", ErrConfig)
		case names[p.Name]:
			return fmt.Errorf("%w: two peers are named %q", ErrConfig, p.Name)
		case p.Fingerprint == Fingerprint{}:
			return fmt.Errorf("%w: peer %q has no fingerprint", ErrConfig, p.Name)
		case p.Fingerprint == c.Key.Fingerprint():
			return fmt.Errorf("%w: peer %q has this gateway's own fingerprint; each gateway needs a key of its own", ErrConfig, p.Name)
		case taken:
			return fmt.Errorf("%w: peers %q and %q have the same fingerprint", ErrConfig, other, p.Name)
		case p.Endpoint == "" && c.Listen == "":
			return fmt.Errorf("%w: peer %q has no endpoint and this gateway does not listen: neither can call", ErrConfig, p.Name)
		}
		if p.Endpoint != "" {
			if err := checkAddress(p.Endpoint, false); err != nil {
				return fmt.Errorf("endpoint of peer %q: %w", p.Name, err)
			}
		}
		names[p.Name], prints[p.Fingerprint] = true, p.Name
	}
	return nil
}

// checkAddress checks the form of host:port. An empty host and port 0 make sense
// only for listening.
func checkAddress(s string, listen bool) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("%w %q: not host:port, such as gw.example.net:4747 or [2001:db8::1]:4747", ErrAddress, s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !listen {
		return fmt.Errorf("%w %q: port %q is not a number from 1 to 65535", ErrAddress, s, port)
	}
	if host == "" && !listen {
		return fmt.Errorf("%w %q: no host", ErrAddress, s)
	}
	return nil
}
