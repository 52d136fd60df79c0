package model

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A limit below the body's length is an error and appends nothing.
func TestBodyLimit(t *testing.T) {
	const base, body = `{"t":21.5,"n":99}`, `{"t":21.5,"n":100,"more":"text"}`
	var c Coder
	c.Write(nil)
	if _, err := new(Body).Code(&c, nil, planned([]byte(base), []byte(body), 0)); err != nil {
		t.Fatal(err)
	}
	control := c.Finish()
	for limit := range len(body) {
		c.Read(control)
		got, err := new(Body).Code(&c, []byte("dst"), &Edit{Base: []byte(base), Limit: limit})
		if err != ErrBody || string(got) != "dst" {
			t.Errorf("limit %d: %q, %v", limit, got, err)
		}
	}
}

// What no writer writes is an error, and appends nothing (SPEC.md section 8).
func TestBodyErrors(t *testing.T) {
	// kind says, at the first token of a base, what becomes of it
	kind := func(m *Body, c *Coder, of tokenKind, kind editKind) (h uint32) {
		var x bodyContext
		h = x.hash(of)
		if !c.Bool(m.text.at(h), kind == editSame) {
			m.codeKind(c, h, kind)
		}
		return h
	}
	insert := func(m *Body, c *Coder, n uint64) {
		var x bodyContext
		c.Bool(&m.tail, false)
		m.text.Uint(c, x.hash(tokenOther)+uint32(editInsert)<<8, n)
	}
	for _, tt := range []struct {
		name  string
		base  string
		forge func(m *Body, c *Coder)
		bad   bool
	}{
		{"a number becomes 0", "5", func(m *Body, c *Coder) {
			m.difference(c, kind(m, c, tokenNumber, editNumber)+0x1000193, -5)
		}, false},
		{"a number below 0", "5", func(m *Body, c *Coder) {
			m.difference(c, kind(m, c, tokenNumber, editNumber)+0x1000193, -6)
		}, true},
		{"a number longer than the limit", "5", func(m *Body, c *Coder) {
			m.difference(c, kind(m, c, tokenNumber, editNumber)+0x1000193, 99_999_999)
		}, true},
		{"a number in place of a word", "a", func(m *Body, c *Coder) { kind(m, c, tokenWord, editNumber) }, true},
		{"the same, longer than the limit", "12345678", func(m *Body, c *Coder) { kind(m, c, tokenNumber, editSame) }, true},
		{"a token replaced by nothing", "a", func(m *Body, c *Coder) {
			m.text.Uint(c, kind(m, c, tokenWord, editReplace)+uint32(editReplace)<<8, 0)
		}, false},
		{"nothing inserted", "", func(m *Body, c *Coder) { insert(m, c, 0) }, true},
		{"more inserted than the limit", "", func(m *Body, c *Coder) { insert(m, c, 8) }, true},
		{"a length of 64 bits", "", func(m *Body, c *Coder) { insert(m, c, 1<<64-1) }, true},
		{"a length of 63 bits", "", func(m *Body, c *Coder) { insert(m, c, 1<<63-1) }, true},
		{"a kind beyond the last is the end", "a", func(m *Body, c *Coder) { kind(m, c, tokenWord, 8) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Coder
			c.Write(nil)
			m := new(Body)
			tt.forge(m, &c)
			c.Bool(&m.tail, true) // so that it would end well
			c.Read(c.Finish())
			got, err := new(Body).Code(&c, []byte("dst"), &Edit{Base: []byte(tt.base), Limit: 7})
			if tt.bad && (err != ErrBody || string(got) != "dst") || !tt.bad && err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// Plain bytes have to be among the frame's literals, all of them.
func TestBodyLacksLiterals(t *testing.T) {
	body := make([]byte, 40)
	rand.NewChaCha8([32]byte{9}).Read(body)
	var c Coder
	c.Write(nil)
	if _, err := new(Body).Code(&c, nil, planned(nil, body, 0)); err != nil || !bytes.Equal(c.Literals, body) {
		t.Fatalf("%d literals, %v", len(c.Literals), err)
	}
	control := c.Finish()
	for n := range len(body) + 1 {
		c.Read(control)
		c.Literals = body[:n]
		got, err := new(Body).Code(&c, nil, &Edit{Limit: len(body)})
		if n < len(body) && (err != ErrBody || got != nil) || n == len(body) && !bytes.Equal(got, body) {
			t.Errorf("%d of %d literals: %x, %v", n, len(body), got, err)
		}
	}
}
