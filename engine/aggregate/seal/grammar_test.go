package seal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// grammar are opened payloads behind keys of TLS 1.3, by the rule that each shows: of
// which so many bytes come, or -1 where it is malformed. engine/wire/SPEC.md section 10.3.
var grammar = []struct {
	rule    string
	payload string
	sealed  int
}{
	{"bytes to the end", "\x00abc", 3},
	{"no bytes", "\x00", 0},
	{"nothing", "", 0},
	{"bytes with a length", "\x20\x00\x02ab\x00c", 3},
	{"bytes shorter than their length", "\x20\x00\x03ab", -1},
	{"bytes with another flag", "\x40abc", -1},
	{"bytes whose length is cut", "\x20\x00", -1},
	{"a head that goes on in the next segment", "\x05\x00\x37\x00\x01a\x01\x17\x03\x03\x00", 5 + 2 + 16 + 4},
	{"all of a head", "\x05\x00\x37\x00\x01a\x01\x17\x03\x03\x00\x11", -1},
	{"a head within a record", "\x05\x00\x22\x17\x00\x01\x03a\x01\x17", -1},
	{"a head with a flag", "\x21\x17\x03", -1},
	{"a record without keys", "\x17a", -1},
	{"the first keys", "\x05\x00\x17a", 5 + 2 + 16},
	{"keys with a flag", "\x25\x00\x17a", -1},
	{"keys that were not told", "\x05\x01", -1},
	{"keys without an index", "\x05", -1},
	{"an empty record", "\x05\x00\x17", 5 + 1 + 16},
	{"a record with a length, and another", "\x05\x00\x37\x00\x01a\x17b", 2 * (5 + 2 + 16)},
	{"a record shorter than its length", "\x05\x00\x37\x00\x02a", -1},
	{"a record of each type", "\x05\x00\x34\x00\x01a\x35\x00\x01a\x36\x00\x01a\x37\x00\x01a\x38\x00\x01a", 5 * (5 + 2 + 16)},
	{"a record of type 19", "\x05\x00\x13a", -1},
	{"a record of type 25", "\x05\x00\x19a", -1},
	{"padding", "\x05\x00\x57\x00\x09a", 5 + 2 + 9 + 16},
	{"padding that is cut", "\x05\x00\x57\x00", -1},
	{"a record as long as may be", "\x05\x00\x17" + strings.Repeat("a", 16384), 5 + 16385 + 16},
	{"a record that is longer", "\x05\x00\x17" + strings.Repeat("a", 16385), -1},
	{"padding as long as may be", "\x05\x00\x57\x3f\xffa", 5 + 16385 + 16},
	{"padding that is longer", "\x05\x00\x57\x40\x00a", -1},
	{"a nonce in TLS 1.3", "\x05\x00\x9712345678a", -1},
	{"the next keys", "\x05\x00\x06\x17a", 5 + 2 + 16},
	{"the next keys without any", "\x06", -1},
	{"the next keys with a flag", "\x05\x00\x26", -1},
	{"a number", "\x05\x00\x04\x05\x00\x17a", 5 + 2 + 16},
	{"a number once", "\x05\x00\x24\x05\x00\x17a", 5 + 2 + 16},
	{"a number with another flag", "\x05\x00\x44\x05\x00\x17a", -1},
	{"a number that is cut", "\x05\x00\x04\x80", -1},
	{"a number above 64 bits", "\x05\x00\x04\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00", -1},
	{"a head of four bytes before", "\x05\x00\x04\x00\x04\x17a", 1 + 2 + 16},
	{"a head of five bytes before", "\x05\x00\x04\x00\x05\x17a", -1},
	{"a head that is missing", "\x05\x00\x04\x00", -1},
	{"the beginning of a record", "\x05\x00\x02\x17\x00\x05ab", 5 + 2},
	{"the beginning without keys", "\x02\x17\x00\x05ab", -1},
	{"the beginning that is cut", "\x05\x00\x02\x17\x00", -1},
	{"the beginning of a record as long as may be", "\x05\x00\x02\x17\x40\x01ab", 5 + 2},
	{"the beginning of a longer one", "\x05\x00\x02\x17\x40\x02ab", -1},
	{"a record within a record", "\x05\x00\x02\x17\x00\x05ab\x17", 5 + 3},
	{"the beginning, and a record behind a number", "\x05\x00\x02\x17\x00\x05", 5},
	{"a beginning to its end", "\x05\x00\x02\x17\x00\x02ab", 5 + 2 + 16},
	{"a beginning to its end, and a record", "\x05\x00\x02\x17\x00\x02ab\x17c", 5 + 2 + 16 + 5 + 2 + 16},
	{"a beginning without a plaintext", "\x05\x00\x02\x17\x00\x00", 5 + 16},
	{"some of the tag", "\x05\x00\x22\x17\x00\x02\x03ab", 5 + 2 + 3},
	{"none of the tag", "\x05\x00\x22\x17\x00\x02\x00ab", 5 + 2},
	{"all of the tag", "\x05\x00\x22\x17\x00\x02\x10ab", 5 + 2 + 16},
	{"more than the tag", "\x05\x00\x22\x17\x00\x02\x11ab", -1},
	{"some of the tag before its time", "\x05\x00\x22\x17\x00\x03\x01ab", -1},
	{"a wrong tag", "\x05\x00\x42\x17\x00\x020123456789abcdefab", 5 + 2 + 16},
	{"some of a wrong tag", "\x05\x00\x62\x17\x00\x02\x020xab", 5 + 2 + 2},
	{"a wrong tag that is cut", "\x05\x00\x42\x17\x00\x020123", -1},
	{"a wrong tag before its time", "\x05\x00\x42\x17\x00\x030123456789abcdefab", -1},
	{"more of no record", "\x05\x00\x03ab", -1},
	{"more with a nonce", "\x05\x00\x22\x17\x00\x02\x03ab\x83", -1},
	{"more of a tag", "\x05\x00\x22\x17\x00\x02\x03ab\x23\x05", 5 + 2 + 5},
	{"less of a tag than was there", "\x05\x00\x22\x17\x00\x02\x03ab\x23\x02", -1},
	{"the rest of a tag", "\x05\x00\x22\x17\x00\x02\x03ab\x03", 5 + 2 + 16},
	{"a beginning within a record", "\x05\x00\x22\x17\x00\x02\x03ab\x02\x17\x00\x01a", -1},
	{"a record while the tag is not there", "\x05\x00\x22\x17\x00\x02\x03ab\x17a", -1},
	{"a record instead of the one inside", "\x05\x00\x22\x17\x00\x02\x03ab\x04\x00\x00\x17a", 5 + 2 + 3 + 5 + 2 + 16},
	{"a ticket that was not sent", "\x0701234567", -1},
	{"a ticket with a flag", "\x2701234567", -1},
	{"a name that is cut", "\x070123456", -1},
	{"a ClientHello that is nothing", "\x08", -1},
	{"a ClientHello that is none", "\x08\x00\x16\x03\x03\x00\x04\x01\x00\x00\x00", -1},
	{"a ClientHello with a flag", "\x28\x00a", -1},
	{"an answer to a ClientHello that was not sent", "\x0901234567\x16\x03\x03\x00\x04\x02\x00\x00\x00", -1},
	{"a Finished that was not foretold", "\x0a01234567", -1},
	{"a foretold Finished whose name is cut", "\x0a0123456", -1},
	{"a Finished that says what nobody knows", "\x05\x00\x96\x14\x00\x00\x20", -1},
	{"an item of kind 11", "\x0b", -1},
}

// TestGrammar holds each rule of opened payloads.
func TestGrammar(t *testing.T) {
	for _, tt := range grammar {
		g := newTold(t, seal.AES128GCM13)
		key := sealtest.Key(0, sealtest.Client)
		before := []byte("before")
		b, err := g.Table.Seal(before, &key, []byte(tt.payload))
		switch {
		case tt.sealed < 0:
			if !errors.Is(err, seal.ErrOpened) {
				t.Errorf("%s: %d bytes, %v", tt.rule, len(b), err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.rule, err)
		case !bytes.HasPrefix(b, before) || len(b) != len(before)+tt.sealed:
			t.Errorf("%s: %d bytes, want %d", tt.rule, len(b)-len(before), tt.sealed)
		}
	}
}

// newTold returns a gateway that was told keys of the client's direction.
func newTold(t *testing.T, suite seal.Suite) *sealtest.Gateway {
	t.Helper()
	g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
	key := sealtest.Key(0, sealtest.Client)
	if err := g.Table.Tell(&key, told(first, suite)); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGrammar12 holds the rules that TLS 1.2 with AES-GCM has of its own.
func TestGrammar12(t *testing.T) {
	for _, tt := range []struct {
		rule, payload string
		sealed        int
	}{
		{"a nonce", "\x05\x00\x9712345678a", 5 + 8 + 1 + 16},
		{"a nonce that is cut", "\x05\x00\x971234567", -1},
		{"the nonce that is expected", "\x05\x00\x17a", 5 + 8 + 1 + 16},
		{"padding", "\x05\x00\x57\x00\x01a", -1},
		{"the next keys", "\x05\x00\x06", -1},
		{"the beginning with a nonce", "\x05\x00\x82\x17\x00\x0312345678ab", 5 + 8 + 2},
	} {
		g := newTold(t, seal.RSAAES128GCM)
		key := sealtest.Key(0, sealtest.Client)
		b, err := g.Table.Seal(nil, &key, []byte(tt.payload))
		if tt.sealed < 0 && !errors.Is(err, seal.ErrOpened) || tt.sealed >= 0 && (err != nil || len(b) != tt.sealed) {
			t.Errorf("%s: %d bytes, %v", tt.rule, len(b), err)
		}
	}
}

// What is behind a number that is meant once goes on from what was before it, and so does
// the nonce.
func TestOnceIsOnce(t *testing.T) {
	for _, suite := range []seal.Suite{seal.AES128GCM13, seal.RSAAES128GCM} {
		key := sealtest.Key(0, sealtest.Client)
		seq := func(payloads ...string) (last []byte) {
			g := newTold(t, suite)
			for _, p := range payloads {
				var err error
				if last, err = g.Table.Seal(nil, &key, []byte(p)); err != nil {
					t.Fatal(err)
				}
			}
			return last
		}
		want := seq("\x05\x00\x17a", "\x17b")
		if got := seq("\x05\x00\x17a", "\x24\x09\x00\x37\x00\x01x\x24\x07\x00\x17y", "\x17b"); !bytes.Equal(got, want) {
			t.Errorf("%v: number or nonce differ", suite)
		}
		part := "\x02\x17\x00\x04ab"
		want = seq("\x05\x00"+part, "\x03cd")
		if got := seq("\x05\x00"+part, "\x24\x09\x00\x17x", "\x03cd"); !bytes.Equal(got, want) {
			t.Errorf("%v: what is inside differs", suite)
		}
	}
}

// secrets are what may be told, by rule. engine/wire/SPEC.md section 10.2.
var secrets = []struct {
	rule    string
	secrets string
	ok      bool
}{
	{"nothing", "", true},
	{"keys", string(told(first, seal.AES128GCM13)), true},
	{"keys of the handshake", string(told(2|4, seal.AES256GCM13)), true},
	{"keys of the other direction", string(told(reverse|4|8, seal.ChaCha20Poly130513)), true},
	{"those that are kept", string(told(reverse|4|8|16, seal.ChaCha20Poly130513)), true},
	{"what was told and is kept, and is not", "\x1c", false},
	{"the same with a suite", "\x3c\x13\x01", false},
	{"another flag", string(told(0x80, seal.AES128GCM13)), false},
	{"the name of what is foretold", "\x4001234567", true},
	{"a name that is cut", "\x400123456", false},
	{"a name with another flag", "\x4401234567", false},
	{"a suite that is not known", string(told(first, 0x1304)), false},
	{"no suite", string(append([]byte{first}, make([]byte, 32)...)), false},
	{"the suite of the entry before", string(told(first, seal.AES128GCM13)) + "\x0c" + strings.Repeat("k", 32), true},
	{"material that is too short", string(told(first, seal.AES128GCM13)[:34]), false},
	{"material that is too long", string(told(first, seal.AES128GCM13)) + "\xff", false},
	{"flags only", "\x2e", false},
	{"half a suite", "\x2e\x13", false},
	{"no number", "\x2d\x13\x01", false},
	{"four keys", string(bytes.Repeat(told(4|8, seal.AES128GCM13), 4)), true},
	{"five keys", string(bytes.Repeat(told(4|8, seal.AES128GCM13), 5)), false},
	{"five keys, the last of them first", string(bytes.Repeat(told(4|8, seal.AES128GCM13), 4)) + string(told(first, seal.AES128GCM13)), true},
}

// TestSecrets holds each rule of them.
func TestSecrets(t *testing.T) {
	for _, tt := range secrets {
		g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
		key := sealtest.Key(0, sealtest.Client)
		err := g.Table.Tell(&key, []byte(tt.secrets))
		if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, seal.ErrOpened) {
			t.Errorf("%s: %v", tt.rule, err)
		}
	}
}

// Without anything that was told nothing can be sealed.
func TestSealNeedsAConnection(t *testing.T) {
	g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
	key := sealtest.Key(0, sealtest.Client)
	if _, err := g.Table.Seal(nil, &key, []byte{23, 'a'}); !errors.Is(err, seal.ErrOpened) {
		t.Errorf("error %v", err)
	}
}
