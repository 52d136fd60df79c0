package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"

	"sheaf/tools/pubsub"
)

// An opensslConn is a connection of TLS 1.3 that OpenSSL's s_client has made. Of a client
// in Go nobody can ask for new keys; s_client takes letters for that from its input.
//
//	client library -- pipes -- s_client -- loopback -- splice -- Conn
type opensslConn struct {
	net.Conn // what s_client speaks through; here for its addresses
	in       io.WriteCloser
	out      io.Reader
	cmd      *exec.Cmd
	end      sync.Once
}

// dialOpenSSL is dial with s_client over it, whose secrets go to the file keyLog. made is
// told of each connection.
func (s *stage) dialOpenSSL(dial pubsub.DialFunc, keyLog string, made func(*opensslConn)) pubsub.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		s.net.serving.Go(func() {
			b, err := l.Accept()
			if err == nil {
				splice(b, c)
			}
		})
		if err := s.net.keep(l); err != nil {
			return nil, err
		}
		o := &opensslConn{Conn: c}
		o.cmd = exec.Command("openssl", "s_client", "-connect", l.Addr().String(), "-servername", brokerName,
			"-tls1_3", "-keylogfile", keyLog, "-quiet", "-no_ign_eof") // quiet and yet with letters
		if o.in, err = o.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		if o.out, err = o.cmd.StdoutPipe(); err != nil {
			return nil, err
		}
		if err := o.cmd.Start(); err != nil {
			return nil, fmt.Errorf("%w, nor a client in OpenSSL: %w", ErrNoBroker, err)
		}
		made(o)
		return o, s.net.keep(o)
	}
}

// updateKeys has the connection use new keys for what it sends, from its next message on,
// and ask the other end for new ones. Nothing may be on the way to s_client, which takes
// the letter for a command only where it begins what was read.
func (o *opensslConn) updateKeys() error {
	_, err := io.WriteString(o.in, "K\n")
	return err
}

// Read implements net.Conn.
func (o *opensslConn) Read(b []byte) (int, error) { return o.out.Read(b) }

// Write implements net.Conn.
func (o *opensslConn) Write(b []byte) (int, error) { return o.in.Write(b) }

// Close implements net.Conn.
func (o *opensslConn) Close() error {
	o.end.Do(func() {
		o.in.Close()
		_ = o.cmd.Process.Kill()
		_ = o.cmd.Wait()
	})
	return o.Conn.Close()
}

// SetDeadline implements net.Conn: there is none.
func (o *opensslConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn: there is none.
func (o *opensslConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn: there is none.
func (o *opensslConn) SetWriteDeadline(time.Time) error { return nil }
