package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Reload makes the routes those of another configuration, without touching a
// lane. Nothing else can change while a gateway runs: where the configurations
// differ in their peers, nothing is done and the error says so.
func (g *Gateway) Reload(cfg *Config) error {
	want := make(map[netip.Prefix]string)
	for _, p := range cfg.Peers {
		if g.peers[p.Name] == nil {
			return fmt.Errorf("%w: [[peer]] %q is new: restart the gateway to add or remove peers", ErrConfig, p.Name)
		}
		for _, a := range p.Allowed {
			want[a.Prefix] = p.Name
		}
	}
	if len(cfg.Peers) != len(g.peers) {
		return fmt.Errorf("%w: a [[peer]] is gone: restart the gateway to add or remove peers", ErrConfig)
	}
	var all error
	for _, r := range g.Routes() {
		if want[r.Prefix] != r.Peer {
			all = errors.Join(all, g.DelRoute(r))
		} else {
			delete(want, r.Prefix)
		}
	}
	for prefix, name := range want {
		all = errors.Join(all, g.AddRoute(Route{Prefix: prefix, Peer: name}))
	}
	return all
}

// Describe says in a line what the gateway is.
func (g *Gateway) Describe() string {
	var parts []string
	if g.device != nil {
		parts = append(parts, "device "+g.device.Name())
	}
	if a := g.Addr(); a != nil {
		parts = append(parts, "listening on "+a.String())
	}
	for _, p := range g.sortedPeers() {
		n := 0
		for _, r := range g.Routes() {
			if r.Peer == p.name {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("peer %s with %d routes", p.name, n))
	}
	return strings.Join(parts, ", ")
}

var (
	peerTable   = regexp.MustCompile(`(?m)^\s*\[\[\s*peer\s*\]\]`)
	anyTable    = regexp.MustCompile(`(?m)^\s*\[`)
	allowedLine = regexp.MustCompile(`(?m)^(\s*allowed\s*=\s*\[)([^\]]*)\]`)
)

// SaveRoute adds a route to its peer's allowed in a configuration file, whose
// comments and order stay as they are.
func SaveRoute(path string, r Route) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	cfg, err := ParseConfig(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	i := slices.IndexFunc(cfg.Peers, func(p Peer) bool { return p.Name == r.Peer })
	if i < 0 {
		return fmt.Errorf("%w: %s has no [[peer]] %q", ErrConfig, path, r.Peer)
	}
	if slices.Contains(cfg.Peers[i].Allowed, Prefix{r.Prefix}) {
		return nil
	}
	text, ok := addAllowed(string(b), i, r.Prefix)
	if ok {
		// whatever the text looked like: what was written must read as meant
		again, err := ParseConfig([]byte(text))
		ok = err == nil && slices.Contains(again.Peers[i].Allowed, Prefix{r.Prefix}) &&
			len(again.Peers[i].Allowed) == len(cfg.Peers[i].Allowed)+1
	}
	if !ok {
		return fmt.Errorf("%w: %s: could not add to allowed of [[peer]] %q; add %q by hand", ErrConfig, path, r.Peer, r.Prefix)
	}
	return replaceFile(path, []byte(text))
}

// addAllowed adds a prefix to allowed of the i-th [[peer]] in a TOML text.
func addAllowed(text string, i int, prefix netip.Prefix) (string, bool) {
	tables := peerTable.FindAllStringIndex(text, -1)
	if i >= len(tables) {
		return "", false
	}
	start, end := tables[i][1], len(text)
	if next := anyTable.FindStringIndex(text[start:]); next != nil {
		end = start + next[0]
	}
	m := allowedLine.FindStringSubmatchIndex(text[start:end])
	if m == nil {
		return "", false
	}
	at := start + m[5] // the end of what is in the brackets
	inside := strings.TrimRight(text[start+m[4]:at], " \t\r\n")
	comma := ", "
	if inside == "" || strings.HasSuffix(inside, ",") {
		comma = ""
	}
	at = start + m[4] + len(inside)
	return text[:at] + fmt.Sprintf("%s%q", comma, prefix) + text[at:], true
}

// replaceFile writes a file as a whole or not at all.
func replaceFile(path string, b []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".sheaf-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
