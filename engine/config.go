package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"sheaf/engine/aggregate"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/tunnel"
)

// A Config is a gateway's configuration file, TOML. Every key that is not
// written has the default that its comment gives.
type Config struct {
	Key        string     `toml:"key"`        // path of the private key, from `sheaf keygen`
	Listen     string     `toml:"listen"`     // host:port for peers that call; empty: none can
	Control    string     `toml:"control"`    // path of the control socket; default /run/sheaf.sock
	Metrics    string     `toml:"metrics"`    // host:port for Prometheus; empty: none
	Log        string     `toml:"log"`        // debug, info, warn or error; default info
	Carrier    []string   `toml:"carrier"`    // in order of preference: quic, tls, plain; default quic, tls
	Window     Duration   `toml:"window"`     // how long a segment may wait for others like it; default 5ms
	Quiet      Duration   `toml:"quiet"`      // what ends a burst; default 1ms
	AckWait    Duration   `toml:"ack_wait"`   // how long what only acknowledges may wait; default 25ms
	Stall      Duration   `toml:"stall"`      // without progress for so long an epoch ends; default 2s
	Queue      Queue      `toml:"queue"`      // before the encoder
	Similarity []string   `toml:"similarity"` // event, name, length, content; default all
	Compress   any        `toml:"compress"`   // zstd level 1 to 22, or "off"; default 3
	Protocols  []string   `toml:"protocols"`  // NAME@PORT, beyond the well-known ports
	TUN        *TUN       `toml:"tun"`        // the device; without it [[forward]] and [terminate] are the ends
	Address    Prefixes   `toml:"address"`    // without [tun]: what [[forward]] connects from
	Peers      []Peer     `toml:"peer"`
	Forward    []Forward  `toml:"forward"`
	Terminate  *Terminate `toml:"terminate"`
}

// TUN is the [tun] table.
type TUN struct {
	Name     string   `toml:"name"`     // default: the first free sheafN
	Address  Prefixes `toml:"address"`  // of the gateway inside the tunnel, one or more
	MTU      int      `toml:"mtu"`      // default 1500
	Offload  *bool    `toml:"offload"`  // let the kernel hand over large segments; default true
	Fallback string   `toml:"fallback"` // refuse or route: packets to allowed while no gateway runs; default refuse
}

// A Peer is a [[peer]] table: another gateway.
type Peer struct {
	Name        string   `toml:"name"`
	Fingerprint string   `toml:"fingerprint"`
	Endpoint    string   `toml:"endpoint"` // host:port; empty: the peer calls
	Allowed     Prefixes `toml:"allowed"`  // what lies behind it: routed to it, and all it may send from
}

// A Forward is a [[forward]] table: a local listener whose connections go
// through the tunnel, without a device and without root.
type Forward struct {
	From string `toml:"from"` // tcp:HOST:PORT or unix:PATH
	To   string `toml:"to"`   // ADDR:PORT behind the peer
}

// Terminate is the [terminate] table: connections out of the tunnel to these
// addresses end at the gateway, which connects on with ordinary sockets.
type Terminate struct {
	Prefixes Prefixes          `toml:"prefixes"`
	Map      map[string]string `toml:"map"`   // ADDR:PORT to ADDR:PORT of the server, where they differ
	Proxy    bool              `toml:"proxy"` // PROXY protocol v2 tells the broker the client's address
}

// Queue bounds what waits before the encoder of a lane; past it the oldest
// packets are dropped.
type Queue struct {
	Bytes int      `toml:"bytes"` // default 4 MiB
	Time  Duration `toml:"time"`  // default 500ms
}

// A Duration is written like 5ms; 0 means none at all.
type Duration struct {
	time.Duration
	Set bool
}

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil && string(b) == "0" {
		err = nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is no duration like 5ms or 2s", b)
	case v < 0 || v > time.Hour:
		return fmt.Errorf("%q is not between 0 and 1h", b)
	}
	d.Duration, d.Set = v, true
	return nil
}

// or returns the duration, or def where it is not written.
func (d Duration) or(def time.Duration) time.Duration {
	if d.Set {
		return d.Duration
	}
	return def
}

// lane returns the duration as an aggregate.Config wants it: negative for none.
func (d Duration) lane() time.Duration {
	if d.Set && d.Duration == 0 {
		return -1
	}
	return d.Duration
}

// A Prefix is written like 10.2.0.0/24; an address is a prefix of its own.
type Prefix struct{ netip.Prefix }

// UnmarshalText parses a prefix or an address.
func (p *Prefix) UnmarshalText(b []byte) (err error) {
	p.Prefix, err = parsePrefix(string(b))
	return err
}

// Prefixes is a list of them, or a single one.
type Prefixes []Prefix

// UnmarshalTOML takes a string or an array of strings.
func (p *Prefixes) UnmarshalTOML(b []byte) error {
	doc := append([]byte("v = "), b...)
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		var list struct{ V []Prefix }
		err := toml.Unmarshal(doc, &list)
		*p = list.V
		return plain(err)
	}
	var one struct{ V Prefix }
	err := toml.Unmarshal(doc, &one)
	*p = Prefixes{one.V}
	return plain(err)
}

// plain takes the place out of an error about a part of a file: it is not the
// place in the file.
func plain(err error) error {
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		return errors.New(strings.TrimPrefix(decode.Error(), "toml: "))
	}
	return err
}

// list returns the prefixes as the other packages have them.
func (p Prefixes) list() []netip.Prefix {
	out := make([]netip.Prefix, len(p))
	for i := range p {
		out[i] = p[i].Prefix
	}
	return out
}

func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.Prefix{}, fmt.Errorf("%q is no prefix like 10.2.0.0/24", s)
}

// compression returns the level that compress = v means, as aggregate.Config
// wants it.
func compression(v any) (int, error) {
	switch n, ok := v.(int64); {
	case v == nil:
		return 0, nil
	case v == "off":
		return -1, nil
	case ok && n >= 1 && n <= 22:
		return int(n), nil
	}
	return 0, fmt.Errorf(`compress = %v: expected "off" or a zstd level from 1 to 22`, v)
}

// ErrConfig tells that a configuration cannot be used. The message says where
// and why.
var ErrConfig = errors.New("configuration")

// What fallback can be: packets to allowed are refused while no gateway runs, or go
// where other routes lead.
const (
	fallbackRefuse = "refuse"
	fallbackRoute  = "route"
)

// noControl is what control is set to for no control socket.
const noControl = "off"

// LoadConfig reads and checks a configuration file. Relative paths in it are
// relative to its folder.
func LoadConfig(path string) (*Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	c, err := ParseConfig(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range [...]*string{&c.Key, &c.Control} {
		if *p != "" && *p != noControl && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return c, nil
}

// ParseConfig parses and checks a configuration. An unknown key is an error
// with its line.
func ParseConfig(b []byte) (*Config, error) {
	var c Config
	dec := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields().EnableUnmarshalerInterface()
	if err := dec.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrConfig, explain(err))
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &c, nil
}

// explain makes one line of a TOML error, with the line it is about.
func explain(err error) string {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		e := strict.Errors[0]
		line, _ := e.Position()
		return fmt.Sprintf("line %d: unknown key %q", line, strings.Join(e.Key(), "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		return fmt.Sprintf("line %d, column %d: %v", line, column, strings.TrimPrefix(decode.Error(), "toml: "))
	}
	return err.Error()
}

func (c *Config) check() error {
	if c.Key == "" {
		return errors.New(`key is missing: the path of a key that "sheaf keygen" made`)
	}
	if c.Listen != "" {
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			return fmt.Errorf("listen = %q: expected HOST:PORT or :PORT", c.Listen)
		}
	}
	if c.Metrics != "" {
		if _, _, err := net.SplitHostPort(c.Metrics); err != nil {
			return fmt.Errorf("metrics = %q: expected HOST:PORT or :PORT", c.Metrics)
		}
	}
	var level slog.Level
	if c.Log != "" && level.UnmarshalText([]byte(c.Log)) != nil {
		return fmt.Errorf("log = %q: expected debug, info, warn or error", c.Log)
	}
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
		case len(p.Allowed) == 0:
			return fmt.Errorf("[[peer]] %q: allowed is missing: the prefixes that lie behind it", p.Name)
		case p.Endpoint == "" && c.Listen == "":
			return fmt.Errorf("[[peer]] %q has no endpoint, and this gateway does not listen: neither could call the other", p.Name)
		}
		names[p.Name] = true
		if _, err := tunnel.ParseFingerprint(p.Fingerprint); err != nil {
			return fmt.Errorf("[[peer]] %q: fingerprint: %w", p.Name, err)
		}
		if p.Endpoint != "" {
			if host, port, err := net.SplitHostPort(p.Endpoint); err != nil || host == "" || port == "" {
				return fmt.Errorf("[[peer]] %q: endpoint = %q: expected HOST:PORT", p.Name, p.Endpoint)
			}
		}
		for _, a := range p.Allowed {
			if a.Prefix != a.Masked() {
				return fmt.Errorf("[[peer]] %q: allowed %v has bits past its length: did you mean %v?", p.Name, a.Prefix, a.Masked())
			}
			if slices.Contains(seen, a.Prefix) {
				return fmt.Errorf("[[peer]] %q: allowed %v is already another peer's", p.Name, a.Prefix)
			}
			seen = append(seen, a.Prefix)
		}
	}
	if c.TUN == nil && len(c.Forward) == 0 && c.Terminate == nil {
		return errors.New("nothing to carry: needs [tun], or without root [[forward]] or [terminate]")
	}
	if len(c.Forward) > 0 && len(c.Address) == 0 {
		return errors.New("[[forward]] needs address, what it connects from, for example 10.99.0.1")
	}
	for i, f := range c.Forward {
		if _, err := netip.ParseAddrPort(f.To); err != nil {
			return fmt.Errorf("[[forward]] %d: to = %q: expected ADDR:PORT", i+1, f.To)
		}
	}
	if c.Terminate != nil {
		if len(c.Terminate.Prefixes) == 0 {
			return errors.New("[terminate]: prefixes is missing: the addresses to stand in for")
		}
		if _, err := c.Terminate.servers(); err != nil {
			return err
		}
	}
	if c.TUN != nil {
		if len(c.Forward) > 0 || c.Terminate != nil {
			return errors.New("[tun] excludes [[forward]] and [terminate]")
		}
		if len(c.TUN.Address) == 0 {
			return errors.New("[tun]: address is missing, for example 10.99.0.1/24")
		}
		if m := c.TUN.MTU; m != 0 && (m < 576 || m > 65000) {
			return fmt.Errorf("[tun]: mtu = %d is not between 576 and 65000", m)
		}
		if f := c.TUN.Fallback; f != "" && f != fallbackRefuse && f != fallbackRoute {
			return fmt.Errorf("[tun]: fallback = %q: expected %s or %s", f, fallbackRefuse, fallbackRoute)
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

// servers returns where the servers are that are not at their own address.
func (t *Terminate) servers() (map[netip.AddrPort]netip.AddrPort, error) {
	m := make(map[netip.AddrPort]netip.AddrPort)
	for from, to := range t.Map {
		f, err := netip.ParseAddrPort(from)
		if err != nil {
			return nil, fmt.Errorf("[terminate]: map: %q: expected ADDR:PORT", from)
		}
		if m[f], err = netip.ParseAddrPort(to); err != nil {
			return nil, fmt.Errorf("[terminate]: map: %q: expected ADDR:PORT", to)
		}
	}
	return m, nil
}

// carriers returns the carriers in order of preference.
func (c *Config) carriers() ([]tunnel.Carrier, error) {
	var out []tunnel.Carrier
	for _, name := range c.Carrier {
		v, err := tunnel.ParseCarrier(name)
		if err != nil {
			return nil, fmt.Errorf("carrier: %w", err)
		}
		out = append(out, v)
	}
	return out, nil
}

// registry returns the protocols with the configured bindings.
func (c *Config) registry() (*parsers.Registry, error) {
	reg := builtin.Registry()
	for _, s := range c.Protocols {
		b, err := parsers.ParseBinding(s)
		if err == nil {
			err = reg.Bind(b)
		}
		if err != nil {
			return nil, fmt.Errorf("protocols: %w", err)
		}
	}
	return reg, nil
}

// lane returns how lanes merge.
func (c *Config) lane(reg *parsers.Registry) (aggregate.Config, error) {
	a := aggregate.Config{
		Window: c.Window.lane(), Quiet: c.Quiet.lane(), AckWait: c.AckWait.lane(),
		Registry: reg,
	}
	var err error
	if a.Compression, err = compression(c.Compress); err != nil {
		return a, err
	}
	for _, s := range c.Similarity {
		bit, ok := map[string]aggregate.Similarity{
			"event": aggregate.ByEvent, "name": aggregate.ByName, "length": aggregate.ByLength,
			"content": aggregate.ByContent, "none": aggregate.ByNothing,
		}[s]
		if !ok {
			return a, fmt.Errorf("similarity: %q is none of event, name, length, content, none", s)
		}
		a.Similarity |= bit
	}
	return a, nil
}
