package tunnel

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"
)

// What crypto/tls says of an alert that a TCP peer sent is still what tcpAlert looks
// for: it has no type to tell it by.
func TestAlertsOverTCP(t *testing.T) {
	for want, serve := range map[tls.AlertError]*tls.Config{
		alertBadCertificate: stranger(t, newKey(t), alpn),
		alertNoALPN:         stranger(t, newKey(t), "sheaf/9"),
	} {
		serve.VerifyConnection = func(tls.ConnectionState) error { return errors.New("not this one") }
		ln, err := tls.Listen("tcp", "127.0.0.1:0", serve)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			if conn, err := ln.Accept(); err == nil {
				_ = conn.(*tls.Conn).Handshake()
				conn.Close()
			}
		}()
		conn, err := tls.Dial("tcp", ln.Addr().String(), stranger(t, newKey(t), alpn))
		if err == nil { // in TLS 1.3 the client's end of the handshake may be first
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			_, err = conn.Read(make([]byte, 1))
			conn.Close()
		}
		if got := tcpAlert(err); got != want {
			t.Errorf("%q is alert %d, not %d", err, got, want)
		}
	}
	for _, err := range []error{nil, net.ErrClosed, &net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}, &net.OpError{Op: "local error", Err: alertNoALPN}} {
		if got := tcpAlert(err); got != 0 {
			t.Errorf("%v is alert %d", err, got)
		}
	}
}
