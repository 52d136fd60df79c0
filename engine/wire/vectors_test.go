package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sheaf/engine/wire/wiretest"
)

func TestFrameVectors(t *testing.T) {
	wiretest.Run(t, "SPEC.md", "frames.txt", func(t *testing.T, v *wiretest.Vector) []byte {
		f := Frame{Control: v.Bytes(t, "control"), Literals: v.Bytes(t, "literals")}
		if v.Get("packet") != "" {
			f.Digest.AddVerbatim(v.Bytes(t, "packet"))
		} else if digest, err := strconv.ParseUint(v.Get("digest"), 16, 32); err != nil {
			t.Fatal(err)
		} else {
			f.Digest = Digest(digest)
		}
		if s := v.Get("coding"); s != "" {
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
	wiretest.Run(t, "SPEC.md", "hello.txt", func(t *testing.T, v *wiretest.Vector) []byte {
		var h Hello
		if _, err := fmt.Sscan(v.Get("versions"), &h.Min, &h.Max); err != nil {
			t.Fatal(err)
		}
		l := &h.Limits
		if _, err := fmt.Sscan(v.Get("limits"), &l.Flows, &l.Templates, &l.Bodies, &l.Packets, &l.Bytes); err != nil {
			t.Fatal(err)
		}
		copy(h.Instance[:], v.Bytes(t, "instance"))
		h.Ends = v.Get("ends") == "true"
		h.Seals = v.Get("seals") == "true"
		b := AppendHello(nil, h)
		if got, n, err := ParseHello(b); err != nil || n != len(b) || got != h {
			t.Errorf("%+v became %+v, %d bytes, %v", h, got, n, err)
		}
		return b
	})
}
