package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"sheaf/engine"
)

// An optional key in an example is behind a # and no space.
var optional = regexp.MustCompile(`(?m)^#(\S.*)$`)

// keysOf adds the paths of all keys that a configuration can have.
func keysOf(t reflect.Type, under string, add func(string)) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if name == "" || name == "-" {
			continue
		}
		name = under + name
		add(name)
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			keysOf(inner, name+".", add)
		}
	}
}

// keysIn adds the paths of all keys that are in a file.
func keysIn(table map[string]any, under string, add func(string)) {
	for k, v := range table {
		add(under + k)
		switch v := v.(type) {
		case map[string]any:
			keysIn(v, under+k+".", add)
		case []any:
			for _, e := range v {
				if inner, ok := e.(map[string]any); ok {
					keysIn(inner, under+k+".", add)
				}
			}
		}
	}
}

// TestExamples holds that each example can be used, as it is and with its
// optional keys, and that together they show every key there is.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.toml"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	shown := map[string]bool{}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		if _, err := engine.ParseConfig(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := optional.ReplaceAll(b, []byte("$1"))
		if _, err := engine.ParseConfig(all); err != nil {
			t.Errorf("%s with its optional keys: %v", name, err)
		}
		var table map[string]any
		if err := toml.Unmarshal(all, &table); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		keysIn(table, "", func(k string) { shown[k] = true })
		if strings.HasPrefix(name, "minimal-") {
			if n := bytes.Count(b, []byte("\n")); n > 12 {
				t.Errorf("%s has %d lines, want at most 12", name, n)
			}
			continue
		}
		explained(t, name, string(b))
	}
	var all []string
	keysOf(reflect.TypeFor[engine.Config](), "", func(k string) { all = append(all, k) })
	if len(all) < 30 || !slices.Contains(all, "peer.allowed") || !slices.Contains(all, "queue.bytes") {
		t.Fatalf("the keys are %q", all)
	}
	for _, k := range all {
		if !shown[k] {
			t.Errorf("no example shows %s", k)
		}
	}
}

// explained holds that each key of an example has a comment before it, but for
// those that follow another one directly.
func explained(t *testing.T, name, text string) {
	t.Helper()
	key := regexp.MustCompile(`^#?[\w".:]+ = `)
	before := ""
	for i, line := range strings.Split(text, "\n") {
		if key.MatchString(line) && (before == "" || strings.HasPrefix(before, "[")) && !strings.HasPrefix(line, "name = ") &&
			!strings.HasPrefix(line, `"`) {
			t.Errorf("%s:%d: %s has no comment", name, i+1, line)
		}
		before = line
	}
}

// TestUnit holds what the service must and must not be able to do.
func TestUnit(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "sheaf.service"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for _, want := range []string{
		"ExecStart=/usr/bin/sheaf up -c /etc/sheaf/sheaf.toml", "ExecReload=/bin/kill -HUP $MAINPID", "DeviceAllow=/dev/net/tun rw", "DevicePolicy=closed",
		"CapabilityBoundingSet=CAP_NET_ADMIN", "ProtectSystem=strict", "ReadWritePaths=" + filepath.Dir(engine.DefaultControl), "NoNewPrivileges=yes",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %s", want)
		}
	}
	if bytes.Contains(b, []byte("\nPrivateDevices=yes")) {
		t.Error("PrivateDevices takes the device away")
	}
}
