package link_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"os"
	"sync"
	"testing"

	"sheaf/netstack/link"
	"sheaf/netstack/link/linktest"
)

// A streamGuest is QEMU with -netdev stream.
type streamGuest struct {
	listener *net.UnixListener // server=on

	mu     sync.Mutex
	conn   *net.UnixConn
	killed bool

	out []byte
	in  *bufio.Reader
}

// dialStream starts QEMU with server=off.
func dialStream(path string) (linktest.Guest, error) {
	g := &streamGuest{in: bufio.NewReaderSize(nil, 1<<16)}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	g.conn = c
	g.in.Reset(c)
	return g, nil
}

// serveStream starts QEMU with server=on. It unlinks what is at the path, as QEMU does.
func serveStream(path string) (linktest.Guest, error) {
	os.Remove(path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &streamGuest{listener: l, in: bufio.NewReaderSize(nil, 1<<16)}, nil
}

// link returns the connection, and waits for one where QEMU listens and has none.
func (g *streamGuest) link() (*net.UnixConn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.killed {
		return nil, net.ErrClosed
	}
	if g.conn != nil {
		return g.conn, nil
	}
	c, err := g.listener.AcceptUnix()
	if err != nil {
		return nil, err
	}
	g.conn = c
	g.in.Reset(c)
	return c, nil
}

// lost drops a connection that has ended, so that QEMU with server=on has another.
func (g *streamGuest) lost(c *net.UnixConn, err error) error {
	if g.listener == nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == c && !g.killed {
		g.conn = nil
		c.Close()
	}
	return nil
}

func (g *streamGuest) Send(frame []byte) error {
	c, err := g.link()
	if err != nil {
		return err
	}
	g.out = binary.BigEndian.AppendUint32(g.out[:0], uint32(len(frame)))
	g.out = append(g.out, frame...)
	if _, err = c.Write(g.out); err != nil {
		return g.lost(c, err)
	}
	return nil
}

func (g *streamGuest) Receive(buf []byte) (int, error) {
	for {
		c, err := g.link()
		if err != nil {
			return 0, err
		}
		var n int
		head, err := g.in.Peek(4)
		if err == nil {
			n = int(binary.BigEndian.Uint32(head))
			g.in.Discard(4)
			_, err = io.ReadFull(g.in, buf[:n])
		}
		if err == nil {
			return n, nil
		}
		if err := g.lost(c, err); err != nil {
			return 0, err
		}
	}
}

func (g *streamGuest) Kill() {
	if g.listener != nil {
		g.listener.SetUnlinkOnClose(false) // a killed QEMU leaves its socket
		g.listener.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.killed = true
	if g.conn != nil {
		g.conn.Close()
	}
}

// raw sends bytes as they are.
func raw(b ...byte) func(linktest.Guest) error {
	return func(g linktest.Guest) error {
		c, err := g.(*streamGuest).link()
		if err == nil {
			_, err = c.Write(b)
		}
		return err
	}
}

func stream(dial bool) linktest.Kind {
	start := dialStream
	if dial {
		start = serveStream
	}
	return linktest.Kind{
		Open: func(path string) (link.Link, error) {
			return link.OpenStream(link.Config{Path: path, Dial: dial})
		},
		Start:        start,
		Dials:        dial,
		Outlives:     dial,
		SecondServed: true,
		Rubbish: map[string]func(linktest.Guest) error{
			"a length of 0":                        raw(0, 0, 0, 0),
			"a length past QEMU's buffers":         raw(0, 1, 0x10, 1),
			"a length of 4 GiB":                    raw(0xff, 0xff, 0xff, 0xff),
			"one of them behind a frame too short": raw(0, 0, 0, 1, 7, 0, 0, 0, 0),
		},
		Torn: map[string]func(linktest.Guest) error{
			"a length":                 raw(0, 0),
			"a frame":                  raw(0, 0, 0, 60, 1, 2, 3),
			"before a frame":           raw(0, 0, 0, 60),
			"a frame that is too long": raw(0, 1, 0, 0, 1, 2, 3),
		},
	}
}

func TestStream(t *testing.T) {
	t.Run("listen", func(t *testing.T) { linktest.Run(t, stream(false)) })
	t.Run("dial", func(t *testing.T) { linktest.Run(t, stream(true)) })
}

func BenchmarkStream(b *testing.B) {
	b.Run("up", func(b *testing.B) { linktest.BenchmarkUp(b, stream(false)) })
	b.Run("down", func(b *testing.B) { linktest.BenchmarkDown(b, stream(false)) })
}
