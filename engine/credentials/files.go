package credentials

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// The files of a Config.
const (
	fileCertificate = iota
	fileKey
	fileClientCA
	fileCRL
	numFiles
)

// maxFile is the largest file read, in bytes: a revocation list has some 40 for each
// certificate, and so room for 1.6 million.
const maxFile = 64 << 20

// ErrPermissions tells that others than its owner may read the private key.
var ErrPermissions = errors.New("others may read the private key")

// paths returns where the files are, "" for those that are not.
func (c *Credentials) paths() [numFiles]string {
	return [...]string{fileCertificate: c.cfg.Certificate, fileKey: c.cfg.PrivateKey, fileClientCA: c.cfg.ClientCA, fileCRL: c.cfg.CRL}
}

// An identity is what tells one state of a file from another without reading it. The zero
// identity is that of no file.
type identity struct {
	device, inode uint64
	size          int64
	written       time.Time
}

func identify(info fs.FileInfo) identity {
	id := identity{size: info.Size(), written: info.ModTime()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode = uint64(s.Dev), s.Ino
	}
	return id
}

// changed tells whether any file is not the one that was read.
func (c *Credentials) changed() bool {
	for i, path := range c.paths() {
		var id identity
		if path != "" {
			if info, err := os.Stat(path); err == nil {
				id = identify(info)
			}
		}
		if id != c.seen[i] {
			return true
		}
	}
	return false
}

// readFile reads a file; one that is private must be its owner's alone.
func readFile(path string, private bool) ([]byte, identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, identity{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, identity{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, identity{}, fmt.Errorf("%s is not a regular file", path)
	}
	if mode := info.Mode().Perm(); private && mode&0o077 != 0 {
		return nil, identity{}, fmt.Errorf("%w: %s has mode %04o; run: chmod 600 %s", ErrPermissions, path, mode, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, identity{}, err
	}
	if len(b) > maxFile {
		return nil, identity{}, fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return b, identify(info), nil
}
