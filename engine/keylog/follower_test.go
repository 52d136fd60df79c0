package keylog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// A log is a key log in a folder of its own, and the Store that follows it.
type log struct {
	t    *testing.T
	path string
	s    *Store
	f    *Follower
	told []string // what Changed was told
}

// memory returns a folder on a tmpfs, where there is one: the file systems of disks keep
// blocks for what they expect to come.
func memory(t *testing.T) string {
	t.Helper()
	var where unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &where); err != nil || where.Type != unix.TMPFS_MAGIC {
		t.Skipf("/dev/shm is no tmpfs: %v", err)
	}
	folder, err := os.MkdirTemp("/dev/shm", "keylog")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// newLog follows a file that has a text, or is not there where it is empty. Nothing is
// read by itself: time stands still in the bubble until a test sleeps.
func newLog(t *testing.T, text string, empty bool) *log {
	t.Helper()
	l := &log{t: t, path: filepath.Join(t.TempDir(), "keys"), s: NewStore(0)}
	if text != "" {
		l.append(text)
	}
	l.f = l.s.Follow(FileConfig{Path: l.path, Empty: empty, Changed: func(s FileStatus) { l.told = append(l.told, said(s.Fault)) }})
	return l
}

func said(err error) string {
	if err == nil {
		return "well"
	}
	return err.Error()
}

// append writes to the end of the file at the path, as whoever logs keys does.
func (l *log) append(text string) {
	l.t.Helper()
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		l.t.Fatal(err)
	}
}

// do fails the test if err is not nil.
func (l *log) do(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// knows looks, and holds that these connections are known, and no others up to 20.
func (l *log) knows(want ...int) {
	l.t.Helper()
	l.f.Look()
	var got []int
	for n := range 20 {
		l.s.mu.Lock()
		at := l.s.known[*random(n)]
		l.s.mu.Unlock()
		if at != nil {
			got = append(got, n)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("known are %v, expected %v; %+v", got, want, l.f.Status())
	}
}

// follow runs a test in which time passes only where it sleeps.
func follow(t *testing.T, text string, empty bool, test func(*testing.T, *log)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, text, empty)
		defer l.s.Close()
		test(t, l)
		if b := l.s.Stats().Bad; b != 0 {
			t.Errorf("%d bad lines", b)
		}
	})
}

func TestFollowGrowth(t *testing.T) {
	follow(t, tls13(1), false, func(t *testing.T, l *log) {
		if s := l.f.Status(); s.Fault != nil || s.Bytes != uint64(len(tls13(1))) || !s.Grew.Equal(time.Now()) {
			t.Errorf("%+v", s)
		}
		time.Sleep(10 * time.Second)
		l.append(tls12(2))
		l.knows(1, 2)
		if s := l.f.Status(); !s.Grew.Equal(time.Now()) || s.Opened != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A line is read once its end is there, in however many pieces it came.
func TestFollowPartialLine(t *testing.T) {
	for _, empty := range []bool{false, true} {
		follow(t, tls12(1), empty, func(t *testing.T, l *log) {
			line := tls12(2)
			for i := range len(line) {
				l.knows(1)
				l.append(line[i : i+1])
			}
			l.knows(1, 2)
		})
	}
}

// A connection that is not known has its file looked into at once, without waiting.
func TestSecretsLooks(t *testing.T) {
	follow(t, tls12(1), false, func(t *testing.T, l *log) {
		for n := range looksAtOnce / 2 { // each asks once before, in vain
			n += 2
			if l.s.Secrets(random(n)).Master != nil {
				t.Fatalf("connection %d is known before it began", n)
			}
			l.append(tls12(n))
			if l.s.Secrets(random(n)).Master == nil {
				t.Fatalf("connection %d, which the file has, is not known", n)
			}
		}
	})
}

// The secrets of a connection come in several lines: what is there is not taken for all.
func TestSecretsLooksForTheRest(t *testing.T) {
	follow(t, lineOf(1, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 32)+"\n", false, func(t *testing.T, l *log) {
		if got := l.s.Secrets(random(1)); got.ClientHandshake == nil || got.ServerTraffic != nil {
			t.Fatal("not what the file has")
		}
		l.append(tls13(1))
		if got := l.s.Secrets(random(1)); got.ServerTraffic == nil || got.ClientTraffic == nil {
			t.Error("the rest was not looked for")
		}
	})
}

// However often nobody knows a connection, files are looked into so many times a second.
func TestLooksAreBounded(t *testing.T) {
	follow(t, "", false, func(t *testing.T, l *log) {
		for range looksAtOnce {
			l.s.Secrets(random(1))
		}
		l.append(tls12(1))
		if l.s.Secrets(random(1)).Master != nil {
			t.Error("looked once more than it may")
		}
		time.Sleep(time.Second / looksPerSecond)
		if l.s.Secrets(random(1)).Master == nil {
			t.Error("did not look a while later")
		}
	})
}

// Nobody asks, and the file is read all the same.
func TestFollowPolls(t *testing.T) {
	follow(t, "", false, func(t *testing.T, l *log) {
		l.append(tls12(1))
		time.Sleep(2 * pollInterval)
		if l.s.Stats().Kept != 1 {
			t.Error("the file was not read")
		}
	})
}

func TestFollowRotation(t *testing.T) {
	follow(t, tls12(1), false, func(t *testing.T, l *log) {
		old, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
		l.do(err)
		defer old.Close()
		l.append(tls12(2)) // not read before the rotation
		l.do(os.Rename(l.path, l.path+".1"))
		l.append(tls12(3))
		l.knows(1, 2, 3)
		_, err = old.WriteString(tls12(4)) // whoever has it open does not know
		l.do(err)
		l.knows(1, 2, 3, 4)
		time.Sleep(rotatedFor - time.Second)
		_, err = old.WriteString(tls12(5))
		l.do(err)
		l.knows(1, 2, 3, 4, 5)
		time.Sleep(rotatedFor + time.Second)
		_, err = old.WriteString(tls12(6))
		l.do(err)
		l.knows(1, 2, 3, 4, 5)
		if len(l.f.rotated) != 0 {
			t.Error("the old file is still open")
		}
		if s := l.f.Status(); s.Opened != 2 || s.Fault != nil {
			t.Errorf("%+v", s)
		}
	})
}

// At the bound of files that are no longer at the path all are read; past it the oldest
// is not.
func TestRotatedAreBounded(t *testing.T) {
	follow(t, tls12(0), false, func(t *testing.T, l *log) {
		for n := 1; n <= maxRotated; n++ {
			l.do(os.Rename(l.path, fmt.Sprint(l.path, ".", n-1)))
			l.append(tls12(n))
			l.f.Look()
		}
		path := l.path
		l.path = path + ".0"
		l.append(tls12(10))
		l.knows(0, 1, 2, 3, 4, 10)
		l.do(os.Rename(path, path+".4"))
		l.path = path
		l.append(tls12(5))
		l.knows(0, 1, 2, 3, 4, 5, 10)
		l.path = path + ".0"
		l.append(tls12(11))
		l.path = path + ".1"
		l.append(tls12(12))
		l.knows(0, 1, 2, 3, 4, 5, 10, 12)
	})
}

func TestFollowRemoval(t *testing.T) {
	follow(t, tls12(1), false, func(t *testing.T, l *log) {
		l.do(os.Remove(l.path))
		l.knows(1)
		if s := l.f.Status(); !errors.Is(s.Fault, fs.ErrNotExist) {
			t.Errorf("%v", s.Fault)
		}
		l.append(tls12(2))
		l.knows(1, 2)
		if len(l.told) != 2 || !strings.Contains(l.told[0], "no such file") || l.told[1] != "well" {
			t.Errorf("told %q", l.told)
		}
	})
}

// A file that is cut is read from its beginning, also where it has grown past where it
// was read before anybody looked.
func TestFollowTruncation(t *testing.T) {
	for _, empty := range []bool{false, true} {
		follow(t, tls13(1), empty, func(t *testing.T, l *log) {
			l.append("CLIENT_RANDOM 12") // a line that never ends
			l.knows(1)
			l.do(os.Truncate(l.path, 0))
			l.append(tls12(2))
			l.knows(1, 2)
			l.do(os.Truncate(l.path, 0))
			l.append(tls12(3) + tls12(4))
			l.knows(1, 2, 3, 4)
		})
	}
}

// A program without O_APPEND goes on at its own offset after somebody cut the file: the
// hole before it is no line.
func TestFollowHole(t *testing.T) {
	follow(t, tls12(1), false, func(t *testing.T, l *log) {
		f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
		l.do(err)
		defer f.Close()
		l.do(os.Truncate(l.path, 0))
		l.f.Look()
		_, err = f.WriteAt([]byte(tls12(2)), 1<<40)
		l.do(err)
		l.knows(1, 2)
		if n := l.f.Status().Bytes; n > 1<<20 {
			t.Errorf("%d bytes of a hole were read", n)
		}
	})
}

// A file that others may read or write is refused, whenever that comes about; once it is
// mended it is read on.
func TestRefusesOthers(t *testing.T) {
	for _, tt := range []struct {
		mode    os.FileMode
		refused bool
	}{{0o600, false}, {0o640, false}, {0o620, false}, {0o660, false}, {0o604, true}, {0o602, true}, {0o601, true}, {0o644, true}, {0o666, true}} {
		follow(t, tls12(1), false, func(t *testing.T, l *log) {
			l.do(os.Chmod(l.path, tt.mode))
			l.append(tls12(2))
			if !tt.refused {
				l.knows(1, 2)
				return
			}
			l.knows(1)
			if s := l.f.Status(); !errors.Is(s.Fault, ErrRefused) || !strings.Contains(said(s.Fault), "chmod 600 "+l.path) {
				t.Errorf("mode %o: %v", tt.mode, s.Fault)
			}
			l.do(os.Chmod(l.path, 0o600))
			l.knows(1, 2)
			if s := l.f.Status(); s.Opened != 1 || s.Bytes != uint64(2*len(tls12(1))) {
				t.Errorf("%+v", s)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // from the first
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(tls12(1)), 0o644); err != nil {
			t.Fatal(err)
		}
		s := NewStore(0)
		defer s.Close()
		if f := s.Follow(FileConfig{Path: path}); !errors.Is(f.Status().Fault, ErrRefused) || s.Stats().Kept != 0 {
			t.Errorf("%+v, %+v", f.Status(), s.Stats())
		}
	})
}

// What is no file of its own at the path is refused, and nothing waits for it.
func TestRefusesOtherThings(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		make       func(path string) error
	}{
		{"symbolic link", "is a symbolic link", func(path string) error {
			return errors.Join(os.WriteFile(path+".elsewhere", []byte(tls12(1)), 0o600), os.Symlink(path+".elsewhere", path))
		}},
		{"folder", "is not a regular file", func(path string) error { return os.Mkdir(path, 0o700) }},
		{"pipe", "is not a regular file", func(path string) error { return unix.Mkfifo(path, 0o600) }},
		{"a folder for anybody", "anybody may make files in", func(path string) error {
			return errors.Join(os.WriteFile(path, []byte(tls12(1)), 0o600), os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}
			s := NewStore(0)
			defer s.Close()
			if f := s.Follow(FileConfig{Path: path}); !errors.Is(f.Status().Fault, ErrRefused) || !strings.Contains(said(f.Status().Fault), tt.want) {
				t.Errorf("%v", f.Status().Fault)
			}
			if s.Stats().Kept != 0 {
				t.Error("it was read")
			}
		})
	}
}

// Whether a file is in memory only is told.
func TestOnDisk(t *testing.T) {
	path := filepath.Join(memory(t), "keys")
	if err := os.WriteFile(path, []byte(tls12(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := NewStore(0)
	defer s.Close()
	if s.Follow(FileConfig{Path: path}).Status().OnDisk {
		t.Error("a file on a tmpfs is said to be on a disk")
	}
	if f, err := openFile("/proc/self/mounts", false); err == nil || f != nil {
		t.Error("a file that everybody may read was opened")
	}
}

// Inspect finds what a Follower would, and takes nothing out of the file.
func TestInspect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if s := Inspect(FileConfig{Path: path}); !errors.Is(s.Fault, fs.ErrNotExist) {
		t.Errorf("%+v", s)
	}
	l := &log{t: t, path: path}
	l.append(tls12(1))
	wrote := time.Date(2026, 12, 1, 1, 2, 3, 0, time.UTC)
	l.do(os.Chtimes(path, wrote, wrote))
	if s := Inspect(FileConfig{Path: path, Empty: true}); s.Fault != nil || !s.Grew.Equal(wrote) {
		t.Errorf("%+v", s)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != tls12(1) {
		t.Errorf("the file was changed: %v", err)
	}
	l.do(os.Chmod(path, 0o644))
	if s := Inspect(FileConfig{Path: path}); !errors.Is(s.Fault, ErrRefused) {
		t.Errorf("%+v", s)
	}
}

// Only the end of a large file is read when it is opened.
func TestBacklogIsBounded(t *testing.T) {
	for _, tt := range []struct {
		more int64 // between the first line and the others
		want []int
	}{{0, []int{1, 2}}, {1, []int{2}}} {
		synctest.Test(t, func(t *testing.T) {
			l := &log{t: t, path: filepath.Join(t.TempDir(), "keys"), s: NewStore(0)}
			l.append(tls12(1))
			f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
			l.do(err)
			_, err = f.WriteAt([]byte("\n"+tls12(2)), maxBacklog-int64(len(tls12(2)))-1+tt.more)
			l.do(errors.Join(err, f.Close()))
			l.f = l.s.Follow(FileConfig{Path: l.path})
			defer l.s.Close()
			l.knows(tt.want...)
		})
	}
}

// What was read is gone from the file, and what was not is not.
func TestEmpty(t *testing.T) {
	follow(t, tls13(1), true, func(t *testing.T, l *log) {
		begun := "CLIENT_RANDOM "
		l.append(tls13(2) + begun)
		l.knows(1, 2)
		b, err := os.ReadFile(l.path)
		l.do(err)
		if got := strings.Trim(string(b), "\x00"); got != begun || len(b) != 2*len(tls13(1))+len(begun) {
			t.Errorf("the file of %d bytes has %q", len(b), got)
		}
		l.append(strings.TrimPrefix(tls12(3), begun) + tls12(4))
		l.knows(1, 2, 3, 4)
		if got, want := l.f.Status().Bytes, uint64(2*len(tls13(1))+2*len(tls12(1))); got != want {
			t.Errorf("%d bytes were read, of %d", got, want)
		}
		b, err = os.ReadFile(l.path)
		l.do(err)
		if got := strings.Trim(string(b), "\x00"); got != "" {
			t.Errorf("the file still has %q", got)
		}
		// Another run finds an empty file, and reads on.
		other := NewStore(0)
		defer other.Close()
		f := other.Follow(FileConfig{Path: l.path, Empty: true})
		l.append(tls12(5))
		f.Look()
		if n := other.Stats(); n.Kept != 1 || n.Bad != 0 || other.Secrets(random(5)).Master == nil {
			t.Errorf("%+v", n)
		}
	})
}

// The blocks of what was emptied are free: a file does not grow for ever.
func TestEmptyFreesBlocks(t *testing.T) {
	l := &log{t: t, path: filepath.Join(memory(t), "keys"), s: NewStore(0)}
	l.f = l.s.Follow(FileConfig{Path: l.path, Empty: true})
	defer l.s.Close()
	for range 100 {
		l.append(strings.Repeat(tls12(2), 100))
		l.f.Look()
	}
	var s unix.Stat_t
	l.do(unix.Stat(l.path, &s))
	if s.Size < 1<<20 || s.Blocks*512 > 64<<10 {
		t.Errorf("%d bytes take %d", s.Size, s.Blocks*512)
	}
}

// A file that may be read and not written is told of, where it is to be emptied.
func TestEmptyNeedsToWrite(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	l := newLog(t, tls12(1), false)
	l.do(os.Chmod(l.path, 0o400))
	s := NewStore(0)
	defer s.Close()
	if f := s.Follow(FileConfig{Path: l.path, Empty: true}); !errors.Is(f.Status().Fault, fs.ErrPermission) {
		t.Errorf("%v", f.Status().Fault)
	}
}

// Writers that append at full speed, with O_APPEND and one write a line, while the file
// is read and emptied: nothing is lost, nothing is cut.
func TestEmptyLosesNothing(t *testing.T) {
	const writers, each = 4, 3000
	l := &log{t: t, path: filepath.Join(memory(t), "keys"), s: NewStore(0)}
	l.f = l.s.Follow(FileConfig{Path: l.path, Empty: true})
	defer l.s.Close()
	l.append("# made before the others write\n")
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			for n := range each {
				if _, err := f.WriteString(tls12(w*each + n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for looking := true; looking; {
		select {
		case <-done:
			looking = false
		default:
		}
		l.f.Look()
	}
	l.f.Look()
	if n := l.s.Stats(); n.Lines != writers*each || n.Kept != writers*each || n.Bad != 0 {
		t.Errorf("of %d lines %+v", writers*each, n)
	}
	b, err := os.ReadFile(l.path)
	if err != nil || strings.Trim(string(b), "\x00") != "" {
		t.Errorf("the file was not emptied: %v", err)
	}
}

// A Store is asked, fed and told to forget by many at once.
func TestStoreIsSafeForManyAtOnce(t *testing.T) {
	l := newLog(t, tls12(0), true)
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for n := range 200 {
				l.append(tls12(w*1000 + n))
				l.s.Secrets(random(w*1000 + n))
				l.s.Forget(random(w*1000 + n - 5))
				l.s.Stats()
				l.f.Status()
			}
		})
	}
	all.Wait()
	if err := l.s.Close(); err != nil {
		t.Error(err)
	}
	l.f.Look() // nothing, and no panic
	if n := l.s.Stats(); n.Kept != 0 {
		t.Errorf("%+v", n)
	}
}

// No message about a file or a line tells what is in it.
func TestFaultsTellNoSecret(t *testing.T) {
	const secret = "00112233445566778899aabbccddeeff"
	follow(t, tls12(1), false, func(t *testing.T, l *log) {
		l.append("CLIENT_RANDOM " + secret + "\n")
		l.knows(1)
		l.do(os.Chmod(l.path, 0o666))
		l.knows(1)
		if all := fmt.Sprintf("%+v %q %+v", l.f.Status(), l.told, l.s.Stats()); strings.Contains(all, secret) {
			t.Errorf("%s", all)
		}
		if n := l.s.Stats().Bad; n != 1 {
			t.Errorf("%d bad lines", n)
		}
		l.s.stats.Bad = 0 // follow holds that there are no others
	})
}

func BenchmarkLook(b *testing.B) {
	path := filepath.Join(b.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(tls13(1)), 0o600); err != nil {
		b.Fatal(err)
	}
	s := NewStore(0)
	defer s.Close()
	f := s.Follow(FileConfig{Path: path})
	b.ReportAllocs()
	for b.Loop() {
		f.Look()
	}
}

func BenchmarkAdd(b *testing.B) {
	text := []byte(strings.Repeat(tls13(1), maxLook/len(tls13(1))))
	s := NewStore(0)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Add(text)
	}
}
