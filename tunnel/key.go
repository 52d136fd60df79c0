package tunnel

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// Key is a gateway's Ed25519 private key. The zero Key is not usable. Printing
// one shows its fingerprint only.
type Key struct{ private ed25519.PrivateKey }

// GenerateKey makes a new key from the system's random source.
func GenerateKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Key{}, fmt.Errorf("tunnel: generate key: %w", err)
	}
	return Key{private}, nil
}

// maxKeyFile is the largest key file read, in bytes; a real one has 119.
const maxKeyFile = 16 << 10

// LoadKey reads a key from a file in PEM with a PKCS #8 block, as [Key.Save] and
// "openssl genpkey -algorithm ed25519" write it. The error matches
// [ErrPermissions] where the file's mode gives others access, [ErrKey] where it
// holds something else, and [ErrLoadKey] where the system does not let it be read.
func LoadKey(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrLoadKey, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrLoadKey, err)
	}
	if !info.Mode().IsRegular() {
		return Key{}, fmt.Errorf("%w: %s is not a regular file", ErrKey, path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return Key{}, fmt.Errorf("%w: %s has mode %04o; run: chmod 600 %s", ErrPermissions, path, mode, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrLoadKey, err)
	}
	if len(b) > maxKeyFile {
		return Key{}, fmt.Errorf("%w: %s is larger than %d bytes", ErrKey, path, maxKeyFile)
	}
	block, _ := pem.Decode(b)
	switch {
	case block == nil:
		return Key{}, fmt.Errorf("%w: %s has no PEM block", ErrKey, path)
	case block.Type != "PRIVATE KEY":
		return Key{}, fmt.Errorf("%w: %s has a PEM block %q, not \"PRIVATE KEY\"", ErrKey, path, block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("%w: %s: %w", ErrKey, path, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, fmt.Errorf("%w: %s has a key of type %T", ErrKey, path, parsed)
	}
	return Key{private}, nil
}

// Save writes the key to a new file of mode 0600. An existing file is never
// overwritten: the error then matches [fs.ErrExist].
func (k Key) Save(path string) error {
	if !k.usable() {
		return fmt.Errorf("%w: the key is empty", ErrKey)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return fmt.Errorf("tunnel: save key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("tunnel: save key: %w; a key is never overwritten: move it away or choose another name", err)
	}
	if err != nil {
		return fmt.Errorf("tunnel: save key: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path) // a part of a key is of no use
		return fmt.Errorf("tunnel: save key: %w", err)
	}
	return nil
}

// Fingerprint returns what the key's owner is known by.
func (k Key) Fingerprint() Fingerprint {
	if !k.usable() {
		return Fingerprint{}
	}
	return fingerprintOf(k.private.Public().(ed25519.PublicKey))
}

// String returns the fingerprint: the private half is never printed.
func (k Key) String() string { return "key with fingerprint " + k.Fingerprint().String() }

// GoString keeps %#v from showing the private half.
func (k Key) GoString() string { return "tunnel.Key(" + k.Fingerprint().String() + ")" }

func (k Key) usable() bool { return len(k.private) == ed25519.PrivateKeySize }

// derive returns a secret of 32 bytes for one purpose, the same in every run.
func (k Key) derive(purpose string) (secret [32]byte) {
	b, err := hkdf.Key(sha256.New, k.private.Seed(), nil, "sheaf "+purpose, len(secret))
	if err != nil {
		panic("tunnel: 32 bytes are within the limits of HKDF: " + err.Error())
	}
	copy(secret[:], b)
	return secret
}

func fingerprintOf(public ed25519.PublicKey) Fingerprint { return sha256.Sum256(public) }
