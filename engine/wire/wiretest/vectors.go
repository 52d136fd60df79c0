// Package wiretest runs the golden vectors: files in the testdata of the packages
// that write a part of a frame, which say what bytes come of what values. Each vector
// cites the section of SPEC.md that it is about, so that a second implementation can
// be held to the same files.
package wiretest

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the vectors in testdata expect")

// A Vector is a block of lines "key: value". Blocks are parted by empty lines; a line
// that begins with # is a comment. Every block has
//
//	name: what it shows
//	spec: the section of SPEC.md
//	hex:  the bytes expected
//
// and else what its package reads.
type Vector struct {
	name, spec, hex string
	line            int         // of hex in the file, from 1
	fields          [][2]string // other keys and values, in turn
}

// All returns the values of a key, in turn.
func (v *Vector) All(key string) (values []string) {
	for _, f := range v.fields {
		if f[0] == key {
			values = append(values, f[1])
		}
	}
	return values
}

// Get returns the value of a key, empty where the vector has none.
func (v *Vector) Get(key string) string {
	if all := v.All(key); len(all) > 0 {
		return all[0]
	}
	return ""
}

// Bytes returns the value of a key that is in hexadecimal.
func (v *Vector) Bytes(t testing.TB, key string) []byte {
	t.Helper()
	b, err := hex.DecodeString(v.Get(key))
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return b
}

// Run runs check as a test for every vector of testdata/file; check returns the bytes
// that come of the vector. Spec is the path of SPEC.md. With -update, the file gets
// these bytes instead of being compared with them.
func Run(t *testing.T, spec, file string, check func(t *testing.T, v *Vector) []byte) {
	path := filepath.Join("testdata", file)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(spec)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	vectors, err := read(lines, sections(string(text)))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			got := hex.EncodeToString(check(t, v))
			if *update {
				lines[v.line-1] = "hex: " + got
			} else if got != v.hex {
				t.Errorf("%s:%d: bytes %s, want %s", path, v.line, got, v.hex)
			}
		})
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the vectors of a file. Sections are those that they may cite.
func read(lines []string, sections map[string]bool) (all []*Vector, err error) {
	fresh := true
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			fresh = true
			continue
		}
		if line[0] == '#' {
			continue
		}
		if fresh {
			all = append(all, new(Vector))
			fresh = false
		}
		v := all[len(all)-1]
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
			return nil, fmt.Errorf("line %d: no key", i+1)
		case key == "name":
			v.name = value
		case key == "spec":
			v.spec = value
		case key == "hex":
			v.hex, v.line = value, i+1
		default:
			v.fields = append(v.fields, [2]string{key, value})
		}
	}
	for _, v := range all {
		switch {
		case v.name == "" || v.line == 0:
			return nil, fmt.Errorf("vector %q: needs a name and hex", v.name)
		case !sections[v.spec]:
			return nil, fmt.Errorf("vector %q: SPEC.md has no section %q", v.name, v.spec)
		}
	}
	return all, nil
}

// sections returns the numbers of SPEC.md's headings.
func sections(spec string) map[string]bool {
	all := make(map[string]bool)
	for line := range strings.Lines(spec) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "#") {
			all[strings.TrimSuffix(f[1], ".")] = true
		}
	}
	return all
}
