package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What can be wrong with the path of a socket. Errors of Listen and of the kinds that
// are opened wrap one of them where one fits.
var (
	ErrInUse    = errors.New("somebody has a socket there")
	ErrOccupied = errors.New("something else is there")
	ErrPath     = errors.New("not the path of a socket")
)

const (
	// maxPath is the longest path of a socket in bytes: sun_path has 108, and a zero
	// ends it (unix(7)).
	maxPath = 107

	// socketMode lets in the gateway's own user and root: who reaches the socket of a
	// guest is the guest.
	socketMode = 0o600
)

// Listen makes a stream socket at path that listens, for the gateway's own user only
// from its first moment on. A socket that nobody has open any more is replaced; of one
// that somebody has the error is ErrInUse, and of anything else at path ErrOccupied.
// Close of the listener takes the file away.
func Listen(path string) (*net.UnixListener, error) {
	if err := makeWay(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: ownOnly}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l.(*net.UnixListener), nil
}

// listenPacket is Listen for datagrams. Close does not take its file away.
func listenPacket(path string) (*net.UnixConn, error) {
	if err := makeWay(path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: ownOnly}
	c, err := config.ListenPacket(context.Background(), "unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	return c.(*net.UnixConn), nil
}

// ownOnly gives a socket that is not bound yet the mode that its file shall have. Linux
// makes the file with the mode of the socket, less the umask; a umask for that moment
// would be one for all threads, and a chmod afterwards a moment late.
func ownOnly(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), socketMode) }); e != nil {
		return e
	}
	return err
}

// makeWay removes a socket at path that nobody has open.
func makeWay(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("socket: %w", err)
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("socket %s: %w: it is no socket, and stays", path, ErrOccupied)
	}
	switch err := touch(path); {
	case errors.Is(err, unix.ECONNREFUSED):
	case err == nil || errors.Is(err, unix.EPROTOTYPE) || errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("socket %s: %w: stop it, or choose another path", path, ErrInUse)
	default:
		return fmt.Errorf("socket %s: whether somebody has it: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("socket: %w", err)
	}
	return nil
}

// checkPath refuses what the kernel would refuse without a reason, and abstract names:
// those have no mode, and so are anybody's.
func checkPath(path string) error {
	switch {
	case path == "" || strings.HasPrefix(path, "@") || strings.Contains(path, "\x00"):
		return fmt.Errorf("socket %q: %w: give a path in a file system", path, ErrPath)
	case len(path) > maxPath:
		return fmt.Errorf("socket %s: %w: it has %d bytes, more than %d", path, ErrPath, len(path), maxPath)
	}
	return nil
}

// touch says whether somebody has the socket at path open: ECONNREFUSED is nobody. It
// calls as a kind of socket that no hypervisor and no gateway has, so that the kernel
// answers EPROTOTYPE and who listens there sees nothing of it.
func touch(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path})
}
