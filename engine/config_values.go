package engine

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

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
