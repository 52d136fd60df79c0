package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var update = flag.Bool("update", false, "rewrite what the vectors in testdata expect")

// A vector is a block of lines "key: value" in a file of testdata. Blocks are
// parted by empty lines; a line that begins with # is a comment.
type vector struct {
	name, spec string
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
	b, err := os.ReadFile("SPEC.md")
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

func TestFrameVectors(t *testing.T) {
	forVectors(t, "frames.txt", func(t *testing.T, v *vector) []byte {
		f := Frame{Control: unhex(t, v.get("control")), Literals: unhex(t, v.get("literals"))}
		if packet := v.get("packet"); packet != "" {
			f.Digest.AddVerbatim(unhex(t, packet))
		} else if digest, err := strconv.ParseUint(v.get("digest"), 16, 32); err != nil {
			t.Fatal(err)
		} else {
			f.Digest = Digest(digest)
		}
		if s := v.get("coding"); s != "" {
			n, err := strconv.ParseUint(s, 10, 8)
			if err != nil {
				t.Fatal(err)
			}
			f.Coding = Coding(n)
		}
		b := AppendFrame(nil, f)
		got, n, err := ParseFrame(append(bytes.Clone(b), "more"...))
		if err != nil || n != len(b) {
			t.Fatalf("%d bytes of %d, %v", n, len(b), err)
		}
		if diff := cmp.Diff(f, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for cut := range b {
			if _, _, err := ParseFrame(b[:cut]); err != ErrShort {
				t.Errorf("cut at %d: %v", cut, err)
			}
		}
		return b
	})
}

func TestHelloVectors(t *testing.T) {
	forVectors(t, "hello.txt", func(t *testing.T, v *vector) []byte {
		var h Hello
		if _, err := fmt.Sscan(v.get("versions"), &h.Min, &h.Max); err != nil {
			t.Fatal(err)
		}
		l := &h.Limits
		if _, err := fmt.Sscan(v.get("limits"), &l.Flows, &l.Templates, &l.Bodies, &l.Packets, &l.Bytes); err != nil {
			t.Fatal(err)
		}
		copy(h.Instance[:], unhex(t, v.get("instance")))
		h.Ends = v.get("ends") == "true"
		b := AppendHello(nil, h)
		if got, n, err := ParseHello(b); err != nil || n != len(b) || got != h {
			t.Errorf("%+v became %+v, %d bytes, %v", h, got, n, err)
		}
		return b
	})
}

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
