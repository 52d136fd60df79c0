package link

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// listeners are both ways to make a socket, by what they are called.
var listeners = map[string]func(path string) (interface{ Close() error }, error){
	"stream": func(path string) (interface{ Close() error }, error) { return Listen(path) },
	"dgram":  func(path string) (interface{ Close() error }, error) { return listenPacket(path) },
}

func TestListenWhatIsThere(t *testing.T) {
	for name, listen := range listeners {
		cases := map[string]struct {
			make func(t *testing.T, path string)
			want error
		}{
			"nothing":                   {func(*testing.T, string) {}, nil},
			"a stream socket of a dead": {func(t *testing.T, path string) { stale(t, path, "unix") }, nil},
			"datagrams of a dead":       {func(t *testing.T, path string) { stale(t, path, "unixgram") }, nil},
			"a file":                    {func(t *testing.T, path string) { writeFile(t, path) }, ErrOccupied},
			"a folder":                  {func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, ErrOccupied},
			"a link to a dead socket": {func(t *testing.T, path string) {
				stale(t, path+".to", "unix")
				os.Symlink(path+".to", path)
			}, ErrOccupied},
			"one who listens": {func(t *testing.T, path string) {
				l, err := net.Listen("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
			}, ErrInUse},
			"one who takes datagrams": {func(t *testing.T, path string) {
				c, err := net.ListenPacket("unixgram", path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
			}, ErrInUse},
		}
		for what, c := range cases {
			t.Run(name+"/"+what, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "s")
				c.make(t, path)
				before, _ := os.Lstat(path)
				l, err := listen(path)
				if !errors.Is(err, c.want) {
					t.Fatalf("error %v, want %v", err, c.want)
				}
				if err == nil {
					defer l.Close()
					return
				}
				if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
					t.Errorf("what was there is gone: %v", err)
				}
			})
		}
	}
}

// Whoever listens at a path sees nothing of another who tries to.
func TestListenDoesNotCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := Listen(path); !errors.Is(err, ErrInUse) {
		t.Fatalf("the second one: %v", err)
	}
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		if _, _, err := unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK); err != unix.EAGAIN {
			t.Errorf("accept: %v, want nobody", err)
		}
	})
}

func TestListenPaths(t *testing.T) {
	dir := t.TempDir()
	long := filepath.Join(dir, strings.Repeat("s", maxPath-len(dir)-1))
	for name, listen := range listeners {
		for _, path := range []string{"", "@sheaf", "a\x00b", long + "s"} {
			if l, err := listen(path); !errors.Is(err, ErrPath) {
				t.Errorf("%s %q: error %v", name, path, err)
				if err == nil {
					l.Close()
				}
			}
		}
		l, err := listen(long)
		if err != nil {
			t.Errorf("%s with %d bytes: %v", name, len(long), err)
			continue
		}
		l.Close()
		os.Remove(long)
		if _, err := listen(filepath.Join(dir, "none", "s")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s in no folder: %v", name, err)
		}
	}
}

// Not even for a moment others may use the socket, whatever the umask.
func TestListenModeFromTheFirstMoment(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	for name, listen := range listeners {
		path := filepath.Join(t.TempDir(), "s")
		stop, seen := make(chan struct{}), make(chan map[os.FileMode]bool)
		go func() {
			modes := map[os.FileMode]bool{}
			for {
				if info, err := os.Lstat(path); err == nil {
					modes[info.Mode().Perm()] = true
				}
				select {
				case <-stop:
					seen <- modes
					return
				default:
				}
			}
		}()
		for range 300 {
			l, err := listen(path)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
			os.Remove(path)
		}
		l, err := listen(path)
		if err != nil {
			t.Fatal(err)
		}
		close(stop)
		if modes := <-seen; len(modes) != 1 || !modes[socketMode] {
			t.Errorf("%s: modes %v", name, modes)
		}
		l.Close()
	}
}

func stale(t *testing.T, path, network string) {
	t.Helper()
	if network == "unixgram" {
		c, err := net.ListenPacket(network, path)
		if err != nil {
			t.Fatal(err)
		}
		c.Close() // leaves the file
		return
	}
	l, err := net.ListenUnix(network, &net.UnixAddr{Name: path, Net: network})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
}
