package vsock

import (
	"context"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxWrite is how much of a Write is under way at a time, in bytes: what a stream counts is 32
// bits wide.
const maxWrite = 1 << 30

// A conn is a stream with a guest of a port, as a net.Conn. It has CloseWrite, SetLinger(0)
// for a Close that resets, and WaitRead, and no deadlines. What it returns are errors of
// package unix: ECONNRESET when the guest has reset it or has gone, EPIPE when the guest does
// not receive any more.
type conn struct {
	session       *session
	stream        *stream // guarded by the port's mu
	local, remote Addr
	hard          bool // Close resets; guarded by the port's mu

	writing sync.Mutex // one Write at a time
}

var _ net.Conn = (*conn)(nil)

// newConn makes a conn of a stream that is about to be held. The port's mu is held.
func newConn(s *session, st *stream) *conn {
	st.changed.L = &s.port.mu
	return &conn{
		session: s, stream: st,
		local:  Addr{CID: hostCID, Port: st.local},
		remote: Addr{Guest: s.port.name, CID: s.port.cid, Port: st.peer},
	}
}

func (c *conn) lock()   { c.session.port.mu.Lock() }
func (c *conn) unlock() { c.session.port.mu.Unlock() }

// awaitOpen waits for the guest's answer to a stream that was dialed. On an error it is
// closed.
func (c *conn) awaitOpen(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		c.lock()
		defer c.unlock()
		c.stream.changed.Broadcast()
	})
	defer stop()
	c.lock()
	defer c.unlock()
	for c.stream.phase == connecting && ctx.Err() == nil {
		c.stream.changed.Wait()
	}
	err := c.stream.err
	if c.stream.phase == connecting {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.session.close(c.stream, true)
	}
	return err
}

// WaitRead returns when Read would. It holds no buffer meanwhile.
func (c *conn) WaitRead() {
	c.lock()
	defer c.unlock()
	c.waitRead()
}

func (c *conn) waitRead() {
	for !c.stream.readable() {
		c.stream.changed.Wait()
	}
}

func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.lock()
	defer c.unlock()
	c.waitRead()
	n, err := c.stream.read(b)
	c.session.table.ready(c.stream)
	c.session.say()
	return n, err
}

// Write returns when the driver has taken all of b, as far as the guest gives credit.
func (c *conn) Write(b []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.lock()
	defer c.unlock()
	for {
		if err := c.stream.writable(); err != nil || len(b) == n {
			return n, err
		}
		n += c.write(b[n:min(len(b), n+maxWrite)])
	}
}

// write writes at most maxWrite bytes, and fewer only if the stream is not writable any more.
func (c *conn) write(b []byte) int {
	s := c.stream
	before := s.sent
	s.out = b
	c.session.table.ready(s)
	c.session.say()
	for len(s.out) > 0 {
		s.changed.Wait()
	}
	return int(s.sent - before)
}

// CloseWrite ends what is written: the guest reads it, and the end of file behind it.
func (c *conn) CloseWrite() error {
	c.lock()
	defer c.unlock()
	if err := c.stream.writable(); err != nil && err != unix.EPIPE {
		return err
	}
	c.stream.end(noSend)
	c.session.table.ready(c.stream)
	c.session.say()
	c.stream.changed.Broadcast()
	return nil
}

// SetLinger with 0 has Close reset the stream, as that of net.TCPConn.
func (c *conn) SetLinger(sec int) error {
	c.lock()
	defer c.unlock()
	c.hard = sec == 0
	return nil
}

// Close ends both directions. What was written is with the driver already.
func (c *conn) Close() error {
	c.lock()
	defer c.unlock()
	if !c.stream.held {
		return net.ErrClosed
	}
	c.session.close(c.stream, c.hard)
	c.stream.changed.Broadcast()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline returns os.ErrNoDeadline, and so do the other two: Close ends what waits.
func (c *conn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *conn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
