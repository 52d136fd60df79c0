package netstack

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Each side may go on sending after the other has ended.
func TestTLSFrontHalfClose(t *testing.T) {
	ended := make(chan bool)
	ft := newFront(t, func(c *net.TCPConn) {
		if b, err := io.ReadAll(c); err == nil && string(b) == "question" {
			<-ended
			_, _ = io.WriteString(c, "answer")
		}
	}, nil)
	c, _ := ft.dial(t, ft.client())
	_, _ = io.WriteString(c, "question")
	_ = c.CloseWrite()
	ended <- true
	if b, err := io.ReadAll(c); err != nil || string(b) != "answer" {
		t.Errorf("%q, %v", b, err)
	}
	waitFor(t, "the end", func() bool { return ft.front.Stats().Active == 0 })

	got := make(chan []byte, 10)
	ft = newFront(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "greeting")
		_ = c.CloseWrite()
		b, _ := io.ReadAll(c)
		got <- b
	}, nil)
	<-got
	c, raw := ft.dial(t, ft.client())
	if b, err := io.ReadAll(c); err != nil || string(b) != "greeting" {
		t.Errorf("%q, %v", b, err)
	}
	if n, err := raw.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after close_notify came %d bytes and %v, want a FIN", n, err)
	}
	_, _ = io.WriteString(c, "too late for you")
	_ = c.Close()
	if b := <-got; string(b) != "too late for you" {
		t.Errorf("%q", b)
	}
}

// A FIN where a record ends is an end of file, inside of a record a fault.
func TestTLSFrontFIN(t *testing.T) {
	type end struct {
		b   []byte
		err error
	}
	got := make(chan end, 10)
	ft := newFront(t, func(c *net.TCPConn) {
		b, err := io.ReadAll(c)
		got <- end{b, err}
	}, nil)
	<-got
	for _, tt := range []struct {
		tail string
		want error
	}{{"", nil}, {"\x17\x03\x03\x00\x20abc", unix.ECONNRESET}} {
		c, raw := ft.dial(t, ft.client())
		if _, err := io.WriteString(c, "whole"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(raw, tt.tail)
		_ = raw.CloseWrite()
		if e := <-got; tt.want == nil && string(e.b) != "whole" || !errors.Is(e.err, tt.want) {
			t.Errorf("%q: the server got %q, %v", tt.tail, e.b, e.err)
		}
	}
}

// A record that comes in pieces is waited for without harm to the connection.
func TestTLSFrontRecordInPieces(t *testing.T) {
	ft := newFront(t, echo, nil)
	raw := dial(t, ft.addr)
	pieces := &slowly{Conn: raw}
	c := tls.Client(pieces, ft.client())
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	pieces.apart = true
	echoOnce(t, c, "a word that comes in pieces")
}

// A connection that waits holds no chunk: it waits outside of crypto/tls, which would have
// one to read into.
func TestTLSFrontWaitsWithoutBuffer(t *testing.T) {
	ft := newFront(t, echo, nil)
	c, _ := ft.dial(t, ft.client())
	_, _ = io.WriteString(c, "hello")
	if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the connection to wait", func() bool {
		for _, g := range goroutines() {
			if strings.Contains(g, "(*tlsEnd).receive") && strings.Contains(g, "(*stackEnd).await") {
				return !strings.Contains(g, "(*stackConn).Read")
			}
		}
		return false
	})
}

// slowly sends byte by byte.
type slowly struct {
	net.Conn
	apart bool
}

func (s *slowly) Write(b []byte) (int, error) {
	if !s.apart {
		return s.Conn.Write(b)
	}
	for i := range b {
		if _, err := s.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		time.Sleep(time.Millisecond)
	}
	return len(b), nil
}

// A client that does not read slows the server down.
func TestTLSFrontBackpressure(t *testing.T) {
	stalled := make(chan int, 1)
	ft := newFront(t, func(c *net.TCPConn) {
		sent, block := 0, make([]byte, 64<<10)
		for {
			_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			n, err := c.Write(block)
			sent += n
			if err != nil {
				stalled <- sent
				return
			}
		}
	}, nil)
	select {
	case <-stalled: // of the connection that found the server
	case <-time.After(5 * time.Second):
		t.Fatal("the first connection goes on")
	}
	c, _ := ft.dial(t, ft.client())
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-stalled:
		if n < 64<<10 || n > 64<<20 {
			t.Errorf("stalled after %d bytes", n)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the server is not slowed down")
	}
}
