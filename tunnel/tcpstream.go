package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxUnsent is how many bytes are taken from a writer before the kernel has them,
// and how many the kernel takes (on Linux) before it has sent them. It is one record of
// TLS (RFC 8446 section 5.1).
const maxUnsent = 16 << 10

// closeTime is how long Close lets the other end take in what was written, and
// hurryTime how long once the whole tunnel closes. Chosen, not measured.
const (
	closeTime = 3 * time.Second
	hurryTime = 300 * time.Millisecond
)

// A tcpStream is a lane's connection. Writes go through a buffer and a goroutine
// of their own, because crypto/tls does not survive a write that misses its
// deadline, and a lane has to.
type tcpStream struct {
	ctx  context.Context // ends with the tunnel
	over context.Context // ends with the stream
	end  context.CancelFunc
	tcp  *net.TCPConn
	rw   net.Conn // tcp, or TLS over it

	reading sync.Mutex

	mu       sync.Mutex
	buf      []byte // written, not yet taken by pump; at most maxUnsent
	err      error  // why nothing can be written any more
	closing  bool
	deadline time.Time
	changed  chan struct{} // wakes writers: closed and replaced
	work     chan struct{} // wakes pump; capacity 1
}

func newTCPStream(ctx context.Context, tcp *net.TCPConn, rw net.Conn) *tcpStream {
	over, end := context.WithCancel(context.Background())
	return &tcpStream{ctx: ctx, over: over, end: end, tcp: tcp, rw: rw, changed: make(chan struct{}), work: make(chan struct{}, 1)}
}

// Read reads. The kernel tells of a reset once, to the reader or to the writer:
// if pump was told, the reader sees what looks like an orderly end, and crypto/tls
// takes it for one.
func (s *tcpStream) Read(p []byte) (int, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.isClosing() {
		return 0, ErrClosed
	}
	n, err := s.rw.Read(p)
	if err == io.EOF && s.wasReset() {
		err = syscall.ECONNRESET
	}
	return n, err
}

func (s *tcpStream) SetReadDeadline(t time.Time) error { return s.rw.SetReadDeadline(t) }

func (s *tcpStream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = t
	s.wakeWriters()
	return nil
}

// Write hands p to pump, blocking while it has maxUnsent bytes.
func (s *tcpStream) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var timer *time.Timer
	for {
		expired := !s.deadline.IsZero() && !time.Now().Before(s.deadline)
		switch {
		case s.err != nil:
			return n, s.err
		case s.closing:
			return n, ErrClosed
		case expired:
			return n, os.ErrDeadlineExceeded
		}
		if k := min(len(p)-n, maxUnsent-len(s.buf)); k > 0 {
			s.buf = append(s.buf, p[n:n+k]...)
			n += k
			s.wakePump()
		}
		if n == len(p) {
			return n, nil
		}
		var expiry <-chan time.Time
		if !s.deadline.IsZero() {
			if timer == nil {
				timer = time.NewTimer(time.Until(s.deadline))
				defer timer.Stop()
			} else {
				timer.Reset(time.Until(s.deadline))
			}
			expiry = timer.C
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-expiry:
		}
		s.mu.Lock()
	}
}

func (s *tcpStream) wakeWriters() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *tcpStream) wakePump() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// pump writes what Write has taken, until the stream is closed or fails.
func (s *tcpStream) pump() {
	var out []byte
	for range s.work {
		s.mu.Lock()
		out, s.buf = s.buf, out[:0]
		closing, err := s.closing, s.err
		s.wakeWriters()
		s.mu.Unlock()
		if err != nil {
			return
		}
		if closing {
			hurry := context.AfterFunc(s.ctx, func() { s.tcp.SetDeadline(time.Now().Add(hurryTime)) })
			defer hurry()
		}
		if len(out) > 0 {
			if _, err := s.rw.Write(out); err != nil {
				s.stop(err)
				if closing {
					resetTCP(s.tcp)
				}
				return
			}
		}
		if closing {
			s.finish()
			return
		}
	}
}

// finish says that nothing follows, and lets the other end take in the rest:
// closing at once would reset the connection if anything came in unread.
func (s *tcpStream) finish() {
	s.setDrainDeadline()
	if tc, ok := s.rw.(*tls.Conn); ok {
		tc.CloseWrite()
	}
	s.tcp.CloseWrite()
	io.Copy(io.Discard, s.tcp)
	s.stop(ErrClosed)
	s.tcp.Close()
}

// setDrainDeadline waits until a blocked Read has noticed the deadline that Close
// has set, and puts a later one in its place.
func (s *tcpStream) setDrainDeadline() {
	s.reading.Lock()
	defer s.reading.Unlock()
	wait := closeTime
	if s.ctx.Err() != nil {
		wait = hurryTime
	}
	s.tcp.SetReadDeadline(time.Now().Add(wait))
}

func (s *tcpStream) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// stop makes Write fail with err.
func (s *tcpStream) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.end()
	}
	s.wakeWriters()
	s.wakePump()
}

// close lets pump write the rest and then end the connection. It cannot tell why.
func (s *tcpStream) close(Reason) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.tcp.SetReadDeadline(time.Now()) // a blocked Read returns
	s.tcp.SetWriteDeadline(time.Now().Add(closeTime))
	s.wakeWriters()
	s.wakePump()
	return nil
}

// stopped implements stream: over TCP nobody says.
func (s *tcpStream) stopped() Reason { return ReasonClosed }

// abort cannot tell the other end why: TCP has no room for it.
func (s *tcpStream) abort(Reason) {
	s.stop(net.ErrClosed)
	resetTCP(s.tcp)
}

// isReset tells whether err says that the other end has given up the connection.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF)
}
