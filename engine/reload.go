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

var (
	peerTable   = regexp.MustCompile(`(?m)^\s*\[\[\s*peer\s*\]\]`)
	anyTable    = regexp.MustCompile(`(?m)^\s*\[`)
	allowedLine = regexp.MustCompile(`(?m)^(\s*allowed\s*=\s*\[)([^\]]*)\]`)
	allowedItem = regexp.MustCompile(`["']([^"'\n]*)["'][ \t]*(?:,[ \t]*)?`)
)

// SaveRoute adds a route to its peer's allowed in a configuration file, whose
// comments and order stay as they are.
func SaveRoute(path string, r Route) error { return save(path, r, true) }

// ForgetRoute removes a route from its peer's allowed in a configuration file,
// like SaveRoute. A route that is not there is none to remove.
func ForgetRoute(path string, r Route) error { return save(path, r, false) }

func save(path string, r Route, want bool) error {
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
	had := cfg.Peers[i].Allowed
	if slices.Contains(had, Prefix{r.Prefix}) == want {
		return nil
	}
	if !want && len(had) == 1 {
		return fmt.Errorf("%w: %s: nothing else lies behind [[peer]] %q: remove the peer by hand", ErrConfig, path, r.Peer)
	}
	edit, do, more := withAllowed, "add %q to", 1
	if !want {
		edit, do, more = withoutAllowed, "remove %q from", -1
	}
	text, ok := editAllowed(string(b), i, r.Prefix, edit)
	if ok {
		// whatever the text looked like: what was written must read as meant
		again, err := ParseConfig([]byte(text))
		ok = err == nil && slices.Contains(again.Peers[i].Allowed, Prefix{r.Prefix}) == want &&
			len(again.Peers[i].Allowed) == len(had)+more
	}
	if !ok {
		return fmt.Errorf("%w: %s: could not "+do+" allowed of [[peer]] %q; do it by hand", ErrConfig, path, r.Prefix, r.Peer)
	}
	return replaceFile(path, []byte(text))
}

// editAllowed edits what is between the brackets of allowed of the i-th [[peer]]
// in a TOML text.
func editAllowed(text string, i int, prefix netip.Prefix, edit func(string, netip.Prefix) string) (string, bool) {
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
	from, to := start+m[4], start+m[5]
	return text[:from] + edit(text[from:to], prefix) + text[to:], true
}

func withAllowed(list string, prefix netip.Prefix) string {
	at, comma := 0, ""
	if items := allowedItem.FindAllStringSubmatchIndex(list, -1); len(items) > 0 {
		at, comma = items[len(items)-1][3]+1, ", "
	}
	return list[:at] + fmt.Sprintf("%s%q", comma, prefix) + list[at:]
}

func withoutAllowed(list string, prefix netip.Prefix) string {
	for _, m := range allowedItem.FindAllStringSubmatchIndex(list, -1) {
		var p Prefix
		if err := p.UnmarshalText([]byte(list[m[2]:m[3]])); err != nil || p.Prefix != prefix {
			continue
		}
		before, after := list[:m[0]], list[m[1]:]
		if strings.TrimSpace(after) == "" { // the last: its comma is the one before it
			before = strings.TrimRight(before, ", \t")
		}
		return before + after
	}
	return list
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
