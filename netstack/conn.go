package netstack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// keepalive is how long a connection of the stack is silent before it asks
// whether the other side is still there. Hosts ask for themselves more often
// where it matters to them, and each question crosses the WAN.
const keepalive = 10 * time.Minute

// errNotYet is what read returns where nothing has come. It is a net.Error that passes,
// which crypto/tls takes as one to go on after.
var errNotYet net.Error = notYet{}

type notYet struct{}

func (notYet) Error() string   { return "nothing has come yet" }
func (notYet) Timeout() bool   { return true }
func (notYet) Temporary() bool { return true }

// A stackEnd is a TCP connection of the stack. It does what gonet.TCPConn does,
// and tells a reset from other errors, sends one, and holds no buffer while it
// waits.
type stackEnd struct {
	ep    tcpip.Endpoint
	queue *waiter.Queue

	readEntry, writeEntry waiter.Entry
	readable, writable    chan struct{} // capacity 1

	reader bytes.Reader  // for send
	broken chan struct{} // closed by abort

	ending  sync.Mutex // guards aborted and closed
	aborted bool
	closed  bool
}

func newStackEnd(ep tcpip.Endpoint, queue *waiter.Queue) *stackEnd {
	e := &stackEnd{ep: ep, queue: queue, broken: make(chan struct{})}
	e.readEntry, e.readable = waiter.NewChannelEntry(waiter.ReadableEvents)
	e.writeEntry, e.writable = waiter.NewChannelEntry(waiter.WritableEvents)
	queue.EventRegister(&e.readEntry)
	queue.EventRegister(&e.writeEntry)
	ep.SocketOptions().SetKeepAlive(true)
	idle := tcpip.KeepaliveIdleOption(keepalive)
	ep.SetSockOpt(&idle)
	return e
}

// dialStack connects through the stack. An invalid source lets the stack choose.
func (s *Stack) dialStack(ctx context.Context, source netip.Addr, to netip.AddrPort) (*stackEnd, error) {
	queue := new(waiter.Queue)
	ep, terr := s.stack.NewEndpoint(tcp.ProtocolNumber, networkProtocol(to.Addr()), queue)
	if terr != nil {
		return nil, stackError(terr)
	}
	e := newStackEnd(ep, queue)
	if source.IsValid() {
		terr = ep.Bind(fullAddress(netip.AddrPortFrom(source, 0)))
	}
	if terr == nil {
		terr = ep.Connect(fullAddress(to))
	}
	if _, started := terr.(*tcpip.ErrConnectStarted); started {
		select {
		case <-e.writable:
			terr = ep.LastError()
		case <-ctx.Done():
			e.abort()
			e.close()
			return nil, context.Cause(ctx)
		}
	}
	if terr != nil {
		e.close()
		return nil, stackError(terr)
	}
	return e, nil
}

func (e *stackEnd) receive() (*chunk, int, error) {
	for {
		c := chunks.Get().(*chunk)
		n, err := e.read(c[:])
		if err == nil {
			return c, n, nil
		}
		chunks.Put(c)
		if err == errNotYet {
			err = e.await()
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

// read reads what has come, at most as much as b takes. The error is errNotYet where
// nothing has, and io.EOF where nothing more will.
func (e *stackEnd) read(b []byte) (int, error) {
	w := tcpip.SliceWriter(b)
	res, err := e.ep.Read(&w, tcpip.ReadOptions{})
	switch err.(type) {
	case nil:
		e.ep.ModerateRecvBuf(res.Count)
		return res.Count, nil
	case *tcpip.ErrWouldBlock:
		return 0, errNotYet
	case *tcpip.ErrClosedForReceive:
		return 0, io.EOF
	}
	return 0, stackError(err)
}

// await waits until it is worth reading again.
func (e *stackEnd) await() error {
	select {
	case <-e.readable:
		return nil
	case <-e.broken:
		return os.ErrClosed
	}
}

func (e *stackEnd) send(b []byte) error {
	for len(b) > 0 {
		e.reader.Reset(b)
		n, err := e.ep.Write(&e.reader, tcpip.WriteOptions{})
		b = b[n:]
		switch err.(type) {
		case nil:
			continue
		case *tcpip.ErrWouldBlock:
		default:
			return stackError(err)
		}
		select {
		case <-e.writable:
		case <-e.broken:
			return os.ErrClosed
		}
	}
	return nil
}

func (e *stackEnd) closeWrite() error {
	if err := e.ep.Shutdown(tcpip.ShutdownWrite); err != nil {
		return stackError(err)
	}
	return nil
}

func (e *stackEnd) abort() {
	e.ending.Lock()
	defer e.ending.Unlock()
	if e.aborted || e.closed {
		return
	}
	e.aborted = true
	close(e.broken)
	e.ep.Abort()
}

func (e *stackEnd) close() {
	e.ending.Lock()
	defer e.ending.Unlock()
	e.closed = true
	e.queue.EventUnregister(&e.readEntry)
	e.queue.EventUnregister(&e.writeEntry)
	e.ep.Close()
}

// stackError gives a gVisor error the name that it has on the host.
func stackError(err tcpip.Error) error {
	switch err.(type) {
	case *tcpip.ErrConnectionRefused:
		return unix.ECONNREFUSED
	case *tcpip.ErrConnectionReset, *tcpip.ErrConnectionAborted, *tcpip.ErrAborted:
		return unix.ECONNRESET
	case *tcpip.ErrTimeout:
		return unix.ETIMEDOUT
	case *tcpip.ErrHostUnreachable:
		return unix.EHOSTUNREACH
	case *tcpip.ErrNetworkUnreachable:
		return unix.ENETUNREACH
	case *tcpip.ErrNoPortAvailable:
		return unix.EADDRNOTAVAIL
	}
	return fmt.Errorf("stack: %s", err)
}

// A socketEnd is a connection of the host, or whatever else a dial function or a listener
// returned. It waits without a buffer where the connection is a socket, or has a
// method WaitRead, which returns when Read would.
type socketEnd struct {
	net.Conn
	raw     syscall.RawConn
	poll    func(fd uintptr) bool // reads into got, once there is something
	got     *chunk
	n       int
	err     error
	aborted sync.Once
}

func newSocketEnd(c net.Conn) *socketEnd {
	e := &socketEnd{Conn: c}
	if c, ok := c.(syscall.Conn); ok {
		e.raw, _ = c.SyscallConn()
	}
	if e.raw != nil {
		_ = e.raw.Control(readUrgentInLine)
	}
	e.poll = e.tryRead
	return e
}

// readUrgentInLine keeps a byte that was sent as urgent (RFC 9293 section 3.8.5)
// among the others, where the kernel would set the last one apart and drop those
// before it. The urgency is not carried on, as RFC 6093 allows for.
func readUrgentInLine(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1)
}

func (e *socketEnd) receive() (*chunk, int, error) {
	if e.raw == nil {
		if w, ok := e.Conn.(interface{ WaitRead() }); ok {
			w.WaitRead()
		}
		c := chunks.Get().(*chunk)
		n, err := e.Conn.Read(c[:])
		if n == 0 && err != nil {
			chunks.Put(c)
			return nil, 0, err
		}
		return c, n, nil // an error will be there the next time
	}
	if err := e.raw.Read(e.poll); err != nil {
		return nil, 0, err
	}
	c := e.got
	e.got = nil
	switch {
	case e.err == nil && e.n > 0:
		return c, e.n, nil
	case e.err == nil:
		e.err = io.EOF
	}
	chunks.Put(c)
	return nil, 0, e.err
}

// tryRead reports whether there is something, or never will be.
func (e *socketEnd) tryRead(fd uintptr) bool {
	e.got = chunks.Get().(*chunk)
	for {
		e.n, e.err = unix.Read(int(fd), e.got[:])
		switch e.err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			chunks.Put(e.got)
			e.got = nil
			return false
		}
		return true
	}
}

func (e *socketEnd) send(b []byte) error {
	_, err := e.Conn.Write(b)
	return err
}

func (e *socketEnd) closeWrite() error {
	if c, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	// Without half-close, the end of one direction is the end of both.
	return net.ErrClosed
}

func (e *socketEnd) abort() {
	e.aborted.Do(func() {
		if c, ok := e.Conn.(interface{ SetLinger(int) error }); ok {
			c.SetLinger(0) // close with a reset
		}
		e.Conn.Close()
	})
}

func (e *socketEnd) close() { e.aborted.Do(func() { e.Conn.Close() }) }
