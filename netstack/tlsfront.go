package netstack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// TLSFrontConfig says what a TLSFront is in front of.
type TLSFrontConfig struct {
	// Config returns what serves the next connection. It is called for each, and not
	// modified. Where Proxy is set, its first certificate has its Leaf.
	Config func() *tls.Config

	// To is where the plain server is. It is given to TerminateConfig.Dial.
	To netip.AddrPort

	// Proxy puts a PROXY protocol version 2 header before the bytes of each connection,
	// with the client's address, the one that it wanted, and what TLS says of the
	// client. The server must expect it.
	Proxy bool

	// Failed, if not nil, is called with each handshake that failed, and why. It may be
	// called by several goroutines at once.
	Failed func(client netip.AddrPort, err error)
}

// TLSFrontStats counts since NewTLSFront.
type TLSFrontStats struct {
	Active  int64  `json:"active"`  // connections that are open now
	Opened  uint64 `json:"opened"`  // handshakes that were finished
	Resumed uint64 `json:"resumed"` // of those, the ones that went on with an earlier session
	Failed  uint64 `json:"failed"`  // the others
}

// A TLSFront is the TLS server of one address, in front of a plain server: what a
// Terminator does there beyond carrying bytes. It may be that of several addresses.
//
// The plain server is still dialed first, and the client's TCP connection completed only
// then, so that a refusal is one. The handshake follows. The plain server sees nothing of
// it until it is finished, or a connection that ends without a byte where it fails. End
// of file is a close_notify and a FIN in both directions; a FIN alone is one as well
// where a record ends, since many clients do no better, and otherwise a fault, which
// resets both sides.
type TLSFront struct {
	cfg                     TLSFrontConfig
	active                  atomic.Int64
	opened, resumed, failed atomic.Uint64
}

// NewTLSFront returns a TLSFront for a TerminateConfig.
func NewTLSFront(cfg TLSFrontConfig) *TLSFront { return &TLSFront{cfg: cfg} }

// Stats returns the counters so far.
func (f *TLSFront) Stats() TLSFrontStats {
	return TLSFrontStats{Active: f.active.Load(), Opened: f.opened.Load(), Resumed: f.resumed.Load(), Failed: f.failed.Load()}
}

// serveTLS serves a client whose connection and that of its server are made: it shakes hands
// and carries bytes until both ended. shaken is called when the handshake is over, either
// way.
func (t *Terminator) serveTLS(f *TLSFront, near *stackEnd, socket *socketEnd, ends endpoints, shaken func()) {
	secured, err := t.shake(f, near, socket, ends)
	shaken()
	if err == nil {
		f.active.Add(1)
		t.group.splice(secured, socket)
		f.active.Add(-1)
		return
	}
	f.failed.Add(1)
	t.stack.terminals.failed.Add(1)
	if f.cfg.Failed != nil {
		f.cfg.Failed(ends.client, err)
	}
	near.close() // with a FIN behind the alert that says why
	socket.close()
}

// shake does the handshake, and tells the server of it where it should know.
func (t *Terminator) shake(f *TLSFront, near *stackEnd, socket *socketEnd, ends endpoints) (*tlsEnd, error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, t.cfg.Limits.Handshake, unix.ETIMEDOUT)
	defer cancel()
	cfg := f.cfg.Config()
	raw := &stackConn{end: near, endpoints: ends, waits: true}
	secured := &tlsEnd{stackEnd: near, conn: tls.Server(raw, cfg)}
	if err := secured.conn.HandshakeContext(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	raw.waits = false
	state := secured.conn.ConnectionState()
	if f.cfg.Proxy {
		var leaf *x509.Certificate
		if len(cfg.Certificates) > 0 {
			leaf = cfg.Certificates[0].Leaf
		}
		header, err := appendProxyTLS(nil, ends.client, ends.server, &state, leaf)
		if err == nil {
			_, err = socket.Write(header) // a new connection has room for it
		}
		if err != nil {
			return nil, err
		}
	}
	f.opened.Add(1)
	if state.DidResume {
		f.resumed.Add(1)
	}
	return secured, nil
}

// endpoints are who talks to whom over a connection of the stack.
type endpoints struct{ client, server netip.AddrPort }

// A tlsEnd is a stackEnd whose bytes crypto/tls seals and opens. Like one it holds no
// buffer while it waits, but for what crypto/tls has of a record that is not whole.
type tlsEnd struct {
	*stackEnd
	conn *tls.Conn
}

func (e *tlsEnd) receive() (*chunk, int, error) {
	for {
		c := chunks.Get().(*chunk)
		n, err := e.conn.Read(c[:])
		if n > 0 {
			return c, n, nil // an error will be there the next time
		}
		chunks.Put(c)
		if errors.Is(err, errNotYet) {
			err = e.await()
		}
		if err != nil {
			return nil, 0, err
		}
	}
}

func (e *tlsEnd) send(b []byte) error {
	_, err := e.conn.Write(b)
	return err
}

func (e *tlsEnd) closeWrite() error {
	if err := e.conn.CloseWrite(); err != nil {
		return err
	}
	return e.stackEnd.closeWrite()
}

// A stackConn is a stackEnd as crypto/tls reads and writes it. Deadlines do nothing: who
// ends a connection calls abort, which wakes the others.
type stackConn struct {
	end *stackEnd
	endpoints
	waits bool // Read waits for bytes rather than return errNotYet; while the handshake lasts
}

func (c *stackConn) Read(b []byte) (int, error) {
	for {
		n, err := c.end.read(b)
		if err == errNotYet && c.waits {
			if err = c.end.await(); err == nil {
				continue
			}
		}
		return n, err
	}
}

func (c *stackConn) Write(b []byte) (int, error) {
	if err := c.end.send(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close is what HandshakeContext calls to end a handshake.
func (c *stackConn) Close() error {
	c.end.abort()
	return nil
}

func (c *stackConn) LocalAddr() net.Addr              { return net.TCPAddrFromAddrPort(c.server) }
func (c *stackConn) RemoteAddr() net.Addr             { return net.TCPAddrFromAddrPort(c.client) }
func (c *stackConn) SetDeadline(time.Time) error      { return nil }
func (c *stackConn) SetReadDeadline(time.Time) error  { return nil }
func (c *stackConn) SetWriteDeadline(time.Time) error { return nil }
