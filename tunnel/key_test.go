package tunnel

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	k := newKey(t)
	if err := k.Save(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := LoadKey(path)
	if err != nil || got.Fingerprint() != k.Fingerprint() {
		t.Errorf("%v, %v", got, err)
	}
	if err := newKey(t).Save(path); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("overwrite: %v", err)
	}
	if got, err := LoadKey(path); err != nil || got.Fingerprint() != k.Fingerprint() {
		t.Errorf("after the attempt: %v, %v", got, err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o644, 0o610} {
		os.Chmod(path, mode)
		if _, err := LoadKey(path); !errors.Is(err, ErrPermissions) || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	os.Chmod(path, 0o400)
	if _, err := LoadKey(path); err != nil {
		t.Errorf("mode 0400: %v", err)
	}
}

func TestKeyGarbage(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"empty":   nil,
		"text":    []byte("hello"),
		"huge":    make([]byte, maxKeyFile+1),
		"other":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}),
		"der":     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte{1, 2, 3}}),
		"ecdsa":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ecDER}),
		"openssl": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadKey(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := LoadKey(dir); err == nil {
		t.Error("a directory is a key")
	}
	if err := (Key{}).Save(filepath.Join(dir, "zero")); !errors.Is(err, ErrKey) {
		t.Errorf("empty key: %v", err)
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	k := newKey(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		s := fmt.Sprintf(verb, k)
		if !strings.Contains(s, k.Fingerprint().String()) || len(s) > 100 {
			t.Errorf("%s: %s", verb, s)
		}
	}
	if s := fmt.Sprintf("%+v", struct{ K Key }{k}); len(s) > 100 {
		t.Errorf("inside a struct: %s", s)
	}
}
