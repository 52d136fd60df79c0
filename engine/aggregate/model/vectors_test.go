package model

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the vectors in testdata expect")

// A vector is a block of lines "key: value" in a file of testdata. Blocks are
// parted by empty lines; a line that begins with # is a comment.
type vector struct {
	name, spec string
	do         []op     // what to write into the control field
	field      []string // other keys and values, in turn
	hex        string   // the bytes expected
	line       int      // of hex in the file, from 0
}

func (v *vector) get(key string) string {
	for i := 0; i < len(v.field); i += 2 {
		if v.field[i] == key {
			return v.field[i+1]
		}
	}
	return ""
}

func readVectors(t *testing.T, lines []string) (all []vector) {
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
			all = append(all, vector{line: -1})
			fresh = false
		}
		v := &all[len(all)-1]
		key, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case !ok:
			t.Fatalf("line %d: no key", i+1)
		case key == "name":
			v.name = value
		case key == "spec":
			v.spec = value
		case key == "hex":
			v.hex, v.line = value, i
		case key == "do":
			o, err := parseOp(value)
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			v.do = append(v.do, o)
		default:
			v.field = append(v.field, key, value)
		}
	}
	return all
}

// forVectors runs check on every vector of a file; it returns the bytes that
// the vector should have.
func forVectors(t *testing.T, file string, check func(t *testing.T, v *vector) []byte) {
	path := filepath.Join("testdata", file)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	sections := sectionsOf(t)
	for _, v := range readVectors(t, lines) {
		t.Run(v.name, func(t *testing.T) {
			if v.line < 0 || v.name == "" {
				t.Fatal("a vector needs name: and hex:")
			}
			if !sections[v.spec] {
				t.Errorf("SPEC.md has no section %q", v.spec)
			}
			got := hex.EncodeToString(check(t, &v))
			if *update {
				lines[v.line] = "hex: " + got
			} else if got != v.hex {
				t.Errorf("bytes %s, want %s", got, v.hex)
			}
		})
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sectionsOf returns the numbers of SPEC.md's headings.
func sectionsOf(t *testing.T) map[string]bool {
	b, err := os.ReadFile("../../wire/SPEC.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[0], "#") {
			all[strings.TrimSuffix(f[1], ".")] = true
		}
	}
	return all
}

func TestControlVectors(t *testing.T) {
	for _, file := range []string{"coder.txt", "ints.txt", "columns.txt", "text.txt", "members.txt", "bodies.txt"} {
		t.Run(file, func(t *testing.T) {
			forVectors(t, file, func(t *testing.T, v *vector) []byte {
				m := new(taught)
				got, literals := writeScript(v.do, m.reset())
				readScript(t, v.do, got, literals, m.reset())
				if want := unhex(t, v.get("literals")); !bytes.Equal(literals, want) {
					t.Errorf("literals %x, want %x", literals, want)
				}
				return got
			})
		})
	}
}

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
