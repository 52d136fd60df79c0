package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"sheaf/engine"
)

// What --save of "sheaf port" does: in a folder a port is a file; in a configuration file
// it is a table, written behind all that is there, or taken out with its lines, and no
// other byte changes.

// portText is a port as it is written.
type portText struct {
	Name    string   `toml:"name,omitempty"`
	At      string   `toml:"at"`
	Dial    bool     `toml:"dial,omitempty"`
	MAC     string   `toml:"mac,omitempty"`
	Address []string `toml:"address,omitempty"`
	CID     uint32   `toml:"cid,omitempty"`
}

// textOf returns a port's keys, with its name or without.
func textOf(p *engine.VMPort, named bool) (string, error) {
	t := portText{At: p.At, Dial: p.Dial, MAC: p.MAC, CID: p.CID}
	if named {
		t.Name = p.Name
	}
	for _, a := range p.Addresses() {
		t.Address = append(t.Address, a.String())
	}
	b, err := toml.Marshal(t)
	return string(b), err
}

// savePort writes a port to a folder of ports or a configuration file. One that is there
// alike stays as it is written.
func savePort(path string, p *engine.VMPort) error {
	if isFolder(path) {
		return savePortFile(filepath.Join(path, p.Name+".toml"), p)
	}
	b, cfg, err := readPorts(path)
	if err != nil {
		return err
	}
	if i := portIndex(cfg, p.Name); i >= 0 {
		if cfg.VM.Ports[i].Same(p) {
			return nil
		}
		return fmt.Errorf("%w: %s has another [[vm.port]] %q: change it by hand", engine.ErrConfig, path, p.Name)
	}
	text, err := textOf(p, true)
	if err != nil {
		return err
	}
	before := strings.TrimRight(string(b), "\n")
	text = before + "\n\n[[vm.port]]\n" + text
	// Whatever the file looked like: what is written must read as meant.
	again, err := engine.ParseConfig([]byte(text))
	if err != nil || len(again.VM.Ports) != len(cfg.VM.Ports)+1 || !again.VM.Ports[len(cfg.VM.Ports)].Same(p) {
		return fmt.Errorf("%w: %s: could not add [[vm.port]] %q; do it by hand", engine.ErrConfig, path, p.Name)
	}
	return replaceFile(path, []byte(text))
}

// forgetPort takes a port out of a folder of ports or a configuration file. One that is
// not there is none to take out.
func forgetPort(path, name string) error {
	if isFolder(path) {
		err := os.Remove(filepath.Join(path, name+".toml"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	b, cfg, err := readPorts(path)
	if err != nil {
		return err
	}
	i := portIndex(cfg, name)
	if i < 0 {
		return nil
	}
	text, ok := withoutPort(string(b), i)
	if ok {
		again, err := engine.ParseConfig([]byte(text))
		ok = err == nil && len(again.VM.Ports) == len(cfg.VM.Ports)-1 && portIndex(again, name) < 0
	}
	if !ok {
		return fmt.Errorf("%w: %s: could not remove [[vm.port]] %q; do it by hand", engine.ErrConfig, path, name)
	}
	return replaceFile(path, []byte(text))
}

// isFolder tells whether there is a folder at a path.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// readPorts reads a configuration file that has guests.
func readPorts(path string) ([]byte, *engine.Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", engine.ErrConfig, err)
	}
	cfg, err := engine.ParseConfig(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if cfg.VM == nil {
		return nil, nil, fmt.Errorf("%w: %s has no [vm]", engine.ErrConfig, path)
	}
	return b, cfg, nil
}

// portIndex returns which [[vm.port]] has a name, -1 if none.
func portIndex(cfg *engine.Config, name string) int {
	return slices.IndexFunc(cfg.VM.Ports, func(p engine.VMPort) bool { return p.Name == name })
}

// savePortFile writes a port to a file of its own.
func savePortFile(path string, p *engine.VMPort) error {
	have, err := engine.LoadPort(path)
	switch {
	case err == nil && have.Same(p):
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is there already, and is another port: change it by hand", path)
	}
	text, err := textOf(p, false)
	if err != nil {
		return err
	}
	// The gateway may look at any moment: a file that ends otherwise is none of its.
	f, err := os.CreateTemp(filepath.Dir(path), ".sheaf-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// withoutPort returns a configuration's text without the lines of the i-th [[vm.port]], and
// whether it has found them. Comments and blank lines behind its last key stay: they are
// before what follows.
func withoutPort(text string, i int) (string, bool) {
	var p unstable.Parser
	p.Reset([]byte(text))
	from, to, n := -1, len(text), 0
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		key := e.Key()
		key.Next()
		start := strings.LastIndexByte(text[:key.Node().Raw.Offset], '\n') + 1
		if from >= 0 {
			to = start
			break
		}
		if e.Kind == unstable.ArrayTable && isPortKey(e) {
			if n == i {
				from = start
			}
			n++
		}
	}
	if from < 0 {
		return "", false
	}
	lines := strings.SplitAfter(text[from:to], "\n")
	last := len(lines)
	for last > 1 {
		if line := strings.TrimSpace(lines[last-1]); line != "" && !strings.HasPrefix(line, "#") {
			break
		}
		last--
	}
	rest := strings.Join(lines[last:], "") + text[to:]
	before := text[:from]
	if strings.HasSuffix(before, "\n\n") { // one blank line between tables, and none at the end
		if rest = strings.TrimPrefix(rest, "\n"); rest == "" {
			before = before[:len(before)-1]
		}
	}
	return before + rest, true
}

// isPortKey tells whether the key of a table is vm.port.
func isPortKey(n *unstable.Node) bool {
	key := n.Key()
	return key.Next() && string(key.Node().Data) == "vm" && key.Next() && string(key.Node().Data) == "port" && key.IsLast()
}
