package keylog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxBacklog is how much of a file is read that is there already, from its end: a
	// connection takes up to 900 bytes of key log, so this is more than a Store knows by
	// default, and takes less than a second.
	maxBacklog = 64 << 20
	// markLen is how many of the last bytes are read again with the next ones. A file that
	// was cut and has grown past where it was read ends differently there: half of these
	// are 32 bits of a random or a secret.
	markLen = 16
	// chunkLen is how much is read at a time.
	chunkLen = 64 << 10
)

// A file is one file that a Follower reads, at the path or formerly.
type file struct {
	f      *os.File
	stat   unix.Stat_t // of when it was opened
	onDisk bool
	grew   time.Time

	offset  int64 // what is before it was read
	mark    []byte
	lines   lines
	chunk   []byte // of one read, cleared after it
	punched int64  // what is before it is a hole
	unread  error  // why it cannot be read
	full    error  // why it cannot be emptied
}

// openFile opens a key log, at its beginning or maxBacklog before its end.
func openFile(path string, write bool) (*file, error) {
	folder := filepath.Dir(path)
	var s unix.Stat_t
	if err := unix.Stat(folder, &s); err != nil {
		return nil, &os.PathError{Op: "stat", Path: folder, Err: err}
	}
	if s.Mode&0o002 != 0 {
		// Who makes the file owns it, and could let himself read it at any time.
		return nil, fmt.Errorf("%w: anybody may make files in %s; put %s into a folder of its own, mode 0700 or 0750",
			ErrRefused, folder, filepath.Base(path))
	}
	// What became of the path since it was looked at is not followed, nor waited for.
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	t := &file{f: f, chunk: make([]byte, chunkLen), mark: make([]byte, 0, markLen)}
	if err := t.examine(path); err != nil {
		f.Close()
		return nil, err
	}
	t.offset = max(0, t.stat.Size-maxBacklog)
	return t, nil
}

// examine looks at the file that is open now.
func (t *file) examine(path string) error {
	var where unix.Statfs_t
	fd := int(t.f.Fd())
	if err := unix.Fstat(fd, &t.stat); err != nil {
		return &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	if err := refuse(path, &t.stat); err != nil {
		return err
	}
	if err := unix.Fstatfs(fd, &where); err != nil {
		return &os.PathError{Op: "fstatfs", Path: path, Err: err}
	}
	t.onDisk = where.Type != unix.TMPFS_MAGIC && where.Type != unix.RAMFS_MAGIC
	return nil
}

// data returns where the next bytes are from an offset on that are no hole: what a file
// was emptied of is not read as zeros.
func (t *file) data(from int64) int64 {
	var s unix.Stat_t // taken first: what is written after it is no part of the hole
	if err := unix.Fstat(int(t.f.Fd()), &s); err != nil {
		return from
	}
	to, err := t.f.Seek(from, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // a hole up to the end, or nothing
		return max(from, s.Size)
	case err != nil: // a file system that does not know of holes
		return from
	}
	return to
}

// read gives what came since the last time to line, limit bytes at most, and returns how
// much there was.
func (t *file) read(limit int, line func([]byte, bool)) (total int) {
	t.unread = nil
	for total < limit {
		n, err := t.f.ReadAt(t.chunk[:min(chunkLen, len(t.mark)+limit-total)], t.offset-int64(len(t.mark)))
		got := t.chunk[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			t.unread = err
			return total
		}
		if !bytes.HasPrefix(got, t.mark) { // it was cut, and is perhaps longer again
			clear(got)
			t.lines.reset()
			t.jump(0)
			t.punched = 0
			continue
		}
		fresh := got[len(t.mark):]
		if len(fresh) == 0 {
			clear(got)
			return total
		}
		if fresh[0] == 0 {
			if next := t.data(t.offset); next > t.offset {
				clear(got)
				t.lines.end(line)
				t.jump(next)
				continue
			}
		}
		t.lines.add(fresh, line)
		t.offset += int64(len(fresh))
		total += len(fresh)
		t.mark = append(t.mark[:0], got[max(0, n-markLen):]...)
		clear(got)
	}
	return total
}

// jump has the next read begin at an offset, whatever is before it.
func (t *file) jump(to int64) {
	clear(t.mark)
	t.mark = t.mark[:0]
	t.offset = to
}

// empty punches a hole where whole lines have been read.
func (t *file) empty() {
	end := t.offset - int64(len(t.lines.rest))
	if end <= t.punched {
		return
	}
	// A block is free once a hole covers all of it: the one that the last hole ended in
	// is taken in again.
	begin := t.punched - t.punched%t.stat.Blksize
	err := unix.Fallocate(int(t.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, begin, end-begin)
	if err != nil {
		t.full = fmt.Errorf("%s is not emptied: %w; empty needs a file system with holes: tmpfs, ext4, XFS, Btrfs", t.f.Name(), err)
		return
	}
	t.punched, t.full = end, nil
	// The mark is read again, and what was punched reads as zeros now.
	if from := t.offset - int64(len(t.mark)); from < end {
		clear(t.mark[:end-from])
	}
}

// fault tells why the file is not read, or not emptied.
func (t *file) fault() error {
	if t.unread != nil {
		return t.unread
	}
	return t.full
}

// close closes the file, and clears what is in memory of it.
func (t *file) close() {
	t.lines.reset()
	t.jump(0)
	t.f.Close()
}
