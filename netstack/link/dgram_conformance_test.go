package link_test

import (
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
	"sheaf/netstack/link/linktest"
)

// A dgramGuest is QEMU with -netdev dgram: its socket is connected to nobody.
type dgramGuest struct {
	conn  *net.UnixConn
	raw   syscall.RawConn
	to    unix.SockaddrUnix
	frame []byte
	err   error
	try   func(fd uintptr) bool
}

// bindDgram starts QEMU. It unlinks what is at its own path, as QEMU does; a second one
// has another path.
func bindDgram(path string) (linktest.Guest, error) {
	own := path + ".guest"
	if c, err := net.Dial("unixgram", own); err == nil {
		c.Close()
		own += "2"
	}
	os.Remove(own)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	g := &dgramGuest{conn: c, to: unix.SockaddrUnix{Name: path}}
	g.raw, err = c.SyscallConn()
	g.try = func(fd uintptr) bool {
		g.err = unix.Sendto(int(fd), g.frame, unix.MSG_DONTWAIT, &g.to)
		return g.err != unix.EAGAIN
	}
	return g, err
}

func (g *dgramGuest) Send(frame []byte) error {
	g.frame = frame
	if err := g.raw.Write(g.try); err != nil {
		return err
	}
	if g.err == unix.ECONNREFUSED || g.err == unix.ENOENT {
		return nil // no gateway: QEMU drops the frame
	}
	return g.err
}

func (g *dgramGuest) Receive(buf []byte) (int, error) { return g.conn.Read(buf) }

func (g *dgramGuest) Kill() { g.conn.Close() } // the file stays

func dgram() linktest.Kind {
	return linktest.Kind{
		Open: func(path string) (link.Link, error) {
			return link.OpenDgram(link.Config{Path: path})
		},
		Start:        bindDgram,
		Silent:       true,
		Outlives:     true,
		SecondServed: true,
	}
}

func TestDgram(t *testing.T) { linktest.Run(t, dgram()) }

func BenchmarkDgram(b *testing.B) {
	b.Run("up", func(b *testing.B) { linktest.BenchmarkUp(b, dgram()) })
	b.Run("down", func(b *testing.B) { linktest.BenchmarkDown(b, dgram()) })
}
