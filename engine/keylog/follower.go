package keylog

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pollInterval is between two looks into a file for which nobody asked. Chosen, not
	// measured: what is urgent is asked for, so this only says how long a secret stays
	// in a file that is emptied.
	pollInterval = 100 * time.Millisecond
	// maxLook is how many bytes of a file a look reads at most, so that whoever asked for
	// it does not wait for long: 1 to 3 ms, and the secrets of 300 connections.
	maxLook = 256 << 10
	// rotatedFor is for how long a file that is not at the path any more is read on after
	// it grew last: a program that holds it open goes on writing until somebody tells it
	// (nginx and HAProxy do, until logrotate's signal comes).
	rotatedFor = time.Minute
	// maxRotated bounds how many of these there are. The oldest gives way.
	maxRotated = 4
)

// A FileConfig says which file a Follower reads.
type FileConfig struct {
	Path  string
	Empty bool // punch holes where it has been read; needs the right to write

	// Changed, if there is one, is told whenever Fault changes, also of the first one, by
	// whoever looked.
	Changed func(FileStatus)
}

// A FileStatus tells of a file.
type FileStatus struct {
	Path   string
	Fault  error     // why it is not read, or not emptied; nil: all is well
	Grew   time.Time // when it was last found to have grown; zero: not yet
	Bytes  uint64    // that were read
	Opened uint64    // how many files were found at the path, one after the other
	OnDisk bool      // it is not in memory only, on a tmpfs or ramfs
}

// A Follower reads a key log as it grows. Its methods may be called at once.
type Follower struct {
	cfg   FileConfig
	store *Store
	stop  chan struct{}
	ended sync.WaitGroup

	mu      sync.Mutex
	current *file // at the path, or nil
	rotated []*file
	status  FileStatus
	closed  bool
}

// newFollower returns a Follower that has read what there is.
func newFollower(s *Store, c FileConfig) *Follower {
	f := &Follower{cfg: c, store: s, stop: make(chan struct{}), status: FileStatus{Path: c.Path}}
	f.catchUp()
	f.ended.Go(f.poll)
	return f
}

// Inspect tells of a file what a Follower of it would, and reads nothing. Grew is when
// somebody wrote to it last.
func Inspect(c FileConfig) FileStatus {
	f := &Follower{cfg: c, status: FileStatus{Path: c.Path}}
	f.status.Fault = f.find()
	if t := f.current; t != nil {
		if t.stat.Size > 0 {
			f.status.Grew = time.Unix(t.stat.Mtim.Unix())
		}
		t.close()
	}
	return f.status
}

// poll looks into the file now and then.
func (f *Follower) poll() {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.catchUp()
		}
	}
}

// catchUp looks until there is nothing more to read.
func (f *Follower) catchUp() {
	for f.look() {
		select {
		case <-f.stop:
			return
		default:
		}
	}
}

// Look reads what came since the last look, maxLook bytes at most. Afterwards the Store
// has every line that was in the file when Look was called, if there was not more.
func (f *Follower) Look() { f.look() }

// look tells whether there is more to read.
func (f *Follower) look() (more bool) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return false
	}
	before := f.status
	fault := f.find()
	left := maxLook
	kept := f.rotated[:0]
	for _, r := range f.rotated {
		left -= f.read(r, left)
		if time.Since(r.grew) < rotatedFor {
			kept = append(kept, r)
		} else {
			r.close()
		}
	}
	clear(f.rotated[len(kept):])
	f.rotated = kept
	if c := f.current; c != nil && fault == nil {
		left -= f.read(c, left)
		fault = c.fault()
	}
	f.status.Fault = fault
	after := f.status
	f.mu.Unlock()
	if f.cfg.Changed != nil && text(before.Fault) != text(after.Fault) {
		f.cfg.Changed(after)
	}
	return left <= 0
}

// read reads a file, and accounts for it; it returns how much there was.
func (f *Follower) read(t *file, limit int) int {
	n := t.read(limit, f.store.line)
	if n > 0 {
		t.grew = time.Now()
		f.status.Grew = t.grew
		f.status.Bytes += uint64(n)
	}
	if f.cfg.Empty {
		t.empty()
	}
	return n
}

// find sees to it that current is the file at the path. The error says why there is none.
func (f *Follower) find() error {
	var at unix.Stat_t
	err := unix.Lstat(f.cfg.Path, &at)
	if c := f.current; c != nil {
		if err == nil && at.Dev == c.stat.Dev && at.Ino == c.stat.Ino {
			return refuse(f.cfg.Path, &at) // it may have changed
		}
		f.rotate()
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: f.cfg.Path, Err: err}
	}
	if err := refuse(f.cfg.Path, &at); err != nil {
		return err
	}
	t, err := openFile(f.cfg.Path, f.cfg.Empty)
	if err != nil {
		return err
	}
	f.current = t
	f.status.Opened++
	f.status.OnDisk = t.onDisk
	return nil
}

// rotate puts current aside, to be read on for a while.
func (f *Follower) rotate() {
	if len(f.rotated) == maxRotated {
		f.rotated[0].close()
		f.rotated = append(f.rotated[:0], f.rotated[1:]...)
	}
	f.current.grew = time.Now()
	f.rotated = append(f.rotated, f.current)
	f.current = nil
}

// Status tells of the file.
func (f *Follower) Status() FileStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// close ends the Follower.
func (f *Follower) close() {
	close(f.stop)
	f.ended.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, r := range f.rotated {
		r.close()
	}
	if f.current != nil {
		f.current.close()
	}
	f.rotated, f.current = nil, nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ErrRefused tells that a key log is not read for what it is, or for who may read it.
var ErrRefused = errors.New("key log is refused")

// refuse tells why a file is not read. Whoever may read it could read the connections,
// and whoever may write it could have sheaf look for secrets in vain. Its group may do
// either, since broker and gateway can be different users.
func refuse(path string, s *unix.Stat_t) error {
	switch kind := s.Mode & unix.S_IFMT; {
	case kind == unix.S_IFLNK:
		return fmt.Errorf("%w: %s is a symbolic link; name the file itself", ErrRefused, path)
	case kind != unix.S_IFREG:
		return fmt.Errorf("%w: %s is not a regular file", ErrRefused, path)
	case s.Mode&0o007 != 0:
		return fmt.Errorf("%w: others may read or write %s, mode %04o; run: chmod 600 %s, or 620 with the group of who writes it",
			ErrRefused, path, s.Mode&0o777, path)
	}
	return nil
}
