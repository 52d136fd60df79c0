package seal

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func TestSuiteNames(t *testing.T) {
	for _, s := range Suites() {
		if s.String() != tls.CipherSuiteName(uint16(s)) || !s.Known() {
			t.Errorf("%04x is %s, known %v", uint16(s), s, s.Known())
		}
	}
	for s, want := range map[Suite]string{0: "0x0000", 0x1304: "TLS_AES_128_CCM_SHA256", 0xC02D: "0xC02D"} {
		if s.String() != want || s.Known() || s.TLS13() || s.HashLen() != 0 || s.SecretLen() != 0 {
			t.Errorf("%04x is %s, known %v", uint16(s), s, s.Known())
		}
	}
}

// Names of suites that cannot be opened are those of crypto/tls, where it has one.
func TestOtherNames(t *testing.T) {
	had := 0
	for _, s := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		name := otherNames[Suite(s.ID)]
		if name != "" {
			had++
		}
		if name != "" && (name != s.Name || Suite(s.ID).Known()) {
			t.Errorf("%04x is %s, not %s", s.ID, name, s.Name)
		}
	}
	if had < 10 {
		t.Errorf("crypto/tls has %d of %d names", had, len(otherNames))
	}
}

func TestSuiteLengths(t *testing.T) {
	for _, tt := range []struct {
		suite                         Suite
		tls13                         bool
		hash, secret, nonce, overhead int
	}{
		{AES128GCM13, true, 32, 32, 0, 21},
		{AES256GCM13, true, 48, 48, 0, 21},
		{ChaCha20Poly130513, true, 32, 32, 0, 21},
		{ECDSAAES128GCM, false, 32, 16 + 4, 8, 29},
		{RSAAES256GCM, false, 48, 32 + 4, 8, 29},
		{RSAChaCha20Poly1305, false, 32, 32 + 12, 0, 21},
	} {
		k := newKeys(t, tt.suite, 1)
		if s := tt.suite; s.TLS13() != tt.tls13 || s.HashLen() != tt.hash || s.SecretLen() != tt.secret ||
			k.NonceLen() != tt.nonce || k.Overhead() != tt.overhead || k.Suite() != s {
			t.Errorf("%s: 1.3 %v, hash %d, secret %d, nonce %d, overhead %d", s, s.TLS13(), s.HashLen(), s.SecretLen(), k.NonceLen(), k.Overhead())
		}
	}
}

// TestErrorsHoldNoSecret holds which secrets are refused, and that no error tells them.
func TestErrorsHoldNoSecret(t *testing.T) {
	refused := func(name string, err, want error, secret []byte) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", name, err, want)
		}
		for _, text := range []string{string(secret), hex.EncodeToString(secret)} {
			if text != "" && strings.Contains(err.Error(), text) {
				t.Errorf("%s: the error tells the secret", name)
			}
		}
	}
	random := make([]byte, RandomLen)
	for _, s := range Suites() {
		for _, n := range []int{0, s.SecretLen() - 1, s.SecretLen() + 1} {
			material := bytes.Repeat([]byte("s"), n)
			_, err := NewKeys(s, material)
			refused(s.String(), err, ErrSecret, material)
		}
		master := patterned(MasterLen, 1)
		if s.TLS13() {
			_, _, err := Derive12(s, master, random, random)
			refused(s.String(), err, ErrSuite, master)
			continue
		}
		_, err := newKeys(t, s, 1).Next()
		refused(s.String(), err, ErrNoUpdate, patterned(s.SecretLen(), 1))
		_, _, err = Derive12(s, master[1:], random, random)
		refused("master", err, ErrSecret, master[1:])
		_, _, err = Derive12(s, master, random[1:], random)
		refused("client's random", err, ErrSecret, master)
		_, _, err = Derive12(s, master, random, random[1:])
		refused("server's random", err, ErrSecret, master)
	}
	_, err := NewKeys(0xC02D, random)
	refused("unknown suite", err, ErrSuite, random)
	_, _, err = Derive12(0xC02D, patterned(MasterLen, 1), random, random)
	refused("unknown suite", err, ErrSuite, random)
}

// TestMaterialIsACopy holds that keys are of what they were made of, also when that is
// cleared, and can be made again of what they tell.
func TestMaterialIsACopy(t *testing.T) {
	for _, s := range Suites() {
		material := patterned(s.SecretLen(), 1)
		k, err := NewKeys(s, material)
		if err != nil {
			t.Fatal(err)
		}
		clear(material)
		again, err := NewKeys(s, k.Material())
		if err != nil {
			t.Fatal(err)
		}
		record := newKeys(t, s, 1).Seal(nil, head, new([8]byte), []byte("inner"), 1)
		for _, k := range []*Keys{k, again} {
			if _, ok := k.Open(nil, record, 1); !ok {
				t.Errorf("%s: does not open", s)
			}
		}
	}
}

// TestClear holds that nothing of the secret stays in what the keys hold themselves.
func TestClear(t *testing.T) {
	for _, s := range Suites() {
		k := newKeys(t, s, 1)
		k.Seal(nil, head, new([8]byte), []byte("inner"), 1)
		k.XOR(make([]byte, 5), []byte("inner"), 1, new([8]byte), 0)
		material, key := k.material, k.key
		k.Clear()
		k.Clear()
		for name, b := range map[string][]byte{
			"material": material, "key": key, "iv": k.iv[:], "nonce": k.nonce[:],
			"counter": k.counter[:], "stream": k.stream[:],
		} {
			if !bytes.Equal(b, make([]byte, len(b))) {
				t.Errorf("%s: %s is not cleared", s, name)
			}
		}
		if k.Material() != nil || k.aead != nil || k.block != nil {
			t.Errorf("%s: something is held", s)
		}
	}
}

func BenchmarkNewKeys(b *testing.B) {
	for _, s := range []Suite{AES128GCM13, AES256GCM13, ChaCha20Poly130513, ECDSAAES128GCM} {
		b.Run(s.String(), func(b *testing.B) {
			material := patterned(s.SecretLen(), 1)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := NewKeys(s, material); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
