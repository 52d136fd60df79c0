package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"sheaf/engine"
)

// What --save of "sheaf route" does to a configuration file. A route is added to
// allowed of its peer, or taken out of it, and no other byte changes: comments, order
// and quotes are the owner's. go-toml writes no file that it has read without losing
// comments, but its parser tells where in the text each value is; the package is called
// unstable because a newer version may have other names, which go.mod decides.

// saveRoute adds a route to its peer's allowed in a configuration file. A route that
// is there already stays as it is written.
func saveRoute(path string, r engine.Route) error { return save(path, r, true) }

// forgetRoute takes a route out of its peer's allowed in a configuration file. A route
// that is not there is none to take out; a peer's last one is left, since a peer
// without any is no configuration.
func forgetRoute(path string, r engine.Route) error { return save(path, r, false) }

func save(path string, r engine.Route, want bool) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrConfig, err)
	}
	cfg, err := engine.ParseConfig(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	i := slices.IndexFunc(cfg.Peers, func(p engine.Peer) bool { return p.Name == r.Peer })
	if i < 0 {
		return fmt.Errorf("%w: %s has no [[peer]] %q", engine.ErrConfig, path, r.Peer)
	}
	had := cfg.Peers[i].Allowed
	if slices.Contains(had, engine.Prefix{Prefix: r.Prefix}) == want {
		return nil
	}
	if !want && len(had) == 1 {
		return fmt.Errorf("%w: %s: nothing else lies behind [[peer]] %q: remove the peer by hand", engine.ErrConfig, path, r.Peer)
	}
	do, more := "add %q to", 1
	if !want {
		do, more = "remove %q from", -1
	}
	text, ok := editAllowed(string(b), i, r.Prefix, want)
	if ok {
		// Whatever the text looked like: what is written must read as meant.
		again, err := engine.ParseConfig([]byte(text))
		ok = err == nil && slices.Contains(again.Peers[i].Allowed, engine.Prefix{Prefix: r.Prefix}) == want &&
			len(again.Peers[i].Allowed) == len(had)+more
	}
	if !ok {
		return fmt.Errorf("%w: %s: could not "+do+" allowed of [[peer]] %q; do it by hand", engine.ErrConfig, path, r.Prefix, r.Peer)
	}
	return replaceFile(path, []byte(text))
}

// editAllowed returns a configuration's text with a prefix in allowed of the i-th peer,
// or without it, and whether it has found where.
func editAllowed(text string, i int, prefix netip.Prefix, want bool) (string, bool) {
	value, ok := findAllowed(text, i)
	if !ok || len(value.items) == 0 {
		return "", false
	}
	if want {
		return value.with(text, prefix), true
	}
	at := slices.IndexFunc(value.items, func(it item) bool {
		var p engine.Prefix
		return p.UnmarshalText([]byte(it.value)) == nil && p.Prefix == prefix
	})
	if at < 0 || !value.array {
		return "", false
	}
	return value.without(text, at), true
}

// An allowed is where a peer's allowed is in a text.
type allowed struct {
	items []item
	array bool // the items are between brackets; without them there is one
}

// An item is a string in a text, from its first quote to behind its last.
type item struct {
	value    string
	from, to int
}

// with returns the text with another prefix behind the last.
func (a allowed) with(text string, prefix netip.Prefix) string {
	last := a.items[len(a.items)-1]
	if !a.array {
		return text[:last.from] + "[" + text[last.from:last.to] + fmt.Sprintf(", %q]", prefix) + text[last.to:]
	}
	return text[:last.to] + fmt.Sprintf(", %q", prefix) + text[last.to:]
}

// without returns the text less the item at a place, and one comma: the one behind the
// item, or before the last item. Where a comment is before the last item it stays, with
// the comma before it: TOML allows one behind the last.
func (a allowed) without(text string, at int) string {
	it := a.items[at]
	if at > 0 && at == len(a.items)-1 {
		before := a.items[at-1].to
		if gap := text[before:it.from]; strings.Trim(gap, ", \t\r\n") == "" {
			return text[:before] + text[it.to:]
		}
	}
	between, behind := "", text[it.to:]
	if at := commaBehind(text, it.to); at >= 0 {
		between, behind = text[it.to:at], strings.TrimLeft(text[at+1:], " \t")
	}
	return text[:it.from] + strings.TrimLeft(between, " \t") + behind
}

// commaBehind returns where the comma is that follows an item of an array, behind
// blanks, lines and comments, or -1.
func commaBehind(text string, at int) int {
	for ; at < len(text); at++ {
		switch text[at] {
		case ' ', '\t', '\r', '\n':
		case '#':
			end := strings.IndexByte(text[at:], '\n')
			if end < 0 {
				return -1
			}
			at += end
		case ',':
			return at
		default:
			return -1
		}
	}
	return -1
}

// findAllowed finds allowed of the i-th peer, in a [[peer]] table or in an inline one.
func findAllowed(text string, i int) (found allowed, ok bool) {
	var p unstable.Parser
	p.Reset([]byte(text))
	tables, here, root := 0, false, true // of [[peer]]; in the i-th; in no table yet
	for p.NextExpression() {
		e := p.Expression()
		switch {
		case e.Kind == unstable.ArrayTable && isKey(e, "peer"):
			here, root = tables == i, false
			tables++
		case e.Kind == unstable.Table || e.Kind == unstable.ArrayTable:
			here, root = false, false
		case here && isKey(e, "allowed"):
			return allowedAt(e.Value())
		case root && isKey(e, "peer") && e.Value().Kind == unstable.Array:
			return allowedInline(e.Value(), i)
		}
	}
	return allowed{}, false
}

// allowedInline finds allowed of the i-th of an array of inline tables.
func allowedInline(tables *unstable.Node, i int) (found allowed, ok bool) {
	n := 0
	for it := tables.Children(); it.Next(); n++ {
		for fields := it.Node().Children(); n == i && fields.Next(); {
			if isKey(fields.Node(), "allowed") {
				return allowedAt(fields.Node().Value())
			}
		}
	}
	return allowed{}, false
}

// isKey tells whether the key of a table or of a value is this one, without dots.
func isKey(n *unstable.Node, name string) bool {
	if n.Kind != unstable.KeyValue && n.Kind != unstable.ArrayTable {
		return false
	}
	key := n.Key()
	return key.Next() && string(key.Node().Data) == name && key.IsLast()
}

// allowedAt returns where the strings of a value are; ok is false where there is
// anything else in it.
func allowedAt(value *unstable.Node) (a allowed, ok bool) {
	add := func(n *unstable.Node) bool {
		from := int(n.Raw.Offset)
		a.items = append(a.items, item{string(n.Data), from, from + int(n.Raw.Length)})
		return n.Kind == unstable.String
	}
	if value.Kind != unstable.Array {
		return a, add(value)
	}
	a.array = true
	for it := value.Children(); it.Next(); {
		if !add(it.Node()) {
			return a, false
		}
	}
	return a, true
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
