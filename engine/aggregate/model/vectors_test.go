package model

import (
	"bytes"
	"testing"

	"sheaf/engine/wire/wiretest"
)

// Each vector is a control field of its own: what its operations write to it, all
// models being untaught, and that they read the same from it.
func TestControlVectors(t *testing.T) {
	for _, file := range []string{"coder.txt", "ints.txt", "columns.txt", "text.txt", "members.txt", "bodies.txt"} {
		t.Run(file, func(t *testing.T) {
			wiretest.Run(t, "../../wire/SPEC.md", file, func(t *testing.T, v *wiretest.Vector) []byte {
				var ops []op
				for _, line := range v.All("do") {
					o, err := parseOp(line)
					if err != nil {
						t.Fatal(err)
					}
					ops = append(ops, o)
				}
				m := new(taught)
				got, literals := writeScript(ops, m.reset())
				readScript(t, ops, got, literals, m.reset())
				if want := v.Bytes(t, "literals"); !bytes.Equal(literals, want) {
					t.Errorf("literals %x, want %x", literals, want)
				}
				return got
			})
		})
	}
}
