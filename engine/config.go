package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	TUN        *TUN       `toml:"tun"`        // the device; without it [[forward]], [terminate] and [vm] are the ends
	Address    Prefixes   `toml:"address"`    // without [tun]: what [[forward]] connects from
	Peers      []Peer     `toml:"peer"`
	Forward    []Forward  `toml:"forward"`
	Terminate  *Terminate `toml:"terminate"`
	TLS        []TLS      `toml:"tls"`
	VM         *VM        `toml:"vm"` // virtual machines on this host; alone, or beside [tun] or the others
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
	From string `toml:"from"` // tcp:HOST:PORT, unix:PATH, or of guests vsock:PORT or vsock:/PATH:PORT
	To   string `toml:"to"`   // ADDR:PORT behind the peer
}

// Terminate is the [terminate] table: connections out of the tunnel to these
// addresses end at the gateway, which connects on with ordinary sockets.
type Terminate struct {
	Prefixes Prefixes          `toml:"prefixes"`
	Map      map[string]string `toml:"map"`   // ADDR:PORT to ADDR:PORT of the server, where they differ, or to vsock:GUEST:PORT or vsock:/PATH:PORT
	Proxy    bool              `toml:"proxy"` // PROXY protocol v2 tells the broker the client's address
}

// TLS is a [[tls]] table: servers whose TLS connections are opened, merged and sealed
// again to the same bytes. Connections to servers that no table names are carried as they
// are. Where the secrets come from is one of three: the other gateway tells them, and
// nothing but server is written; a key log that the broker writes; or the gateway is itself
// the TLS server in front of a plain one.
type TLS struct {
	Servers []string `toml:"server"` // ADDR:PORT of the TLS servers, as clients reach them

	KeyLog string `toml:"keylog"` // path of an NSS key log (SSLKEYLOGFILE) that somebody appends to
	Empty  bool   `toml:"empty"`  // empty the key log once it has been read

	To          string   `toml:"to"`          // ADDR:PORT of the plain server that the gateway stands in front of
	Certificate string   `toml:"certificate"` // path of a PEM chain, the server's first; read again when it changes
	PrivateKey  string   `toml:"private_key"` // path of its PEM key
	ClientCA    string   `toml:"client_ca"`   // path of PEM certificates that sign those of clients; empty: none are asked for
	ClientAuth  string   `toml:"client_auth"` // with client_ca: require or request; default require
	CRL         string   `toml:"crl"`         // path of a PEM or DER list of revoked client certificates
	ALPN        []string `toml:"alpn"`        // protocols that the server speaks, the preferred first
	Proxy       bool     `toml:"proxy"`       // PROXY protocol v2 tells the plain server who the client is
}

// Queue bounds what waits before the encoder of a lane; past it the oldest
// packets are dropped.
type Queue struct {
	Bytes int      `toml:"bytes"` // default 4 MiB
	Time  Duration `toml:"time"`  // default 500ms
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
	paths := []*string{&c.Key, &c.Control}
	for i := range c.TLS {
		paths = append(paths, c.TLS[i].paths()...)
	}
	for _, p := range paths {
		if *p != "" && *p != noControl && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	if c.VM != nil {
		c.VM.resolve(filepath.Dir(path))
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
