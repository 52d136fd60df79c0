package tunnel

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// A stream is what a carrier gives to a lane.
type stream interface {
	io.Reader
	io.Writer
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// close ends the stream behind what was written, without waiting for it, and
	// tells the other end why, if the carrier can.
	close(why Reason) error
	// stopped returns why the other end takes no more, ReasonClosed where it did not
	// say.
	stopped() Reason
	// abort ends both directions at both ends at once, and never blocks.
	abort(Reason)
}

// A Lane is one reliable, ordered byte stream in each direction between two
// gateways, of one class, for one epoch. One goroutine may read while another
// one writes; every other method may be called at any time. Whoever got it from
// [Peer.Lane] owns it and must Close or Reset it, or take the next one.
type Lane struct {
	peer    *Peer
	conn    *quicConn // the QUIC connection, or nil
	pulse   *pulse    // of the connection, where this end can call; or nil
	stream  stream
	class   Class
	carrier Carrier
	epoch   uint64 // grows from lane to lane of the gateway that dialed it; the same at both ends
	dialed  bool   // by this end
	since   time.Time
	remote  net.Addr

	ended atomic.Pointer[laneEnd]
}

// laneEnd is why a lane is over, the same for every call that follows.
type laneEnd struct{ err error }

// Read reads up to len(p) bytes as soon as there is one. The error is io.EOF
// where the other end has closed the lane, or declined it without a reason,
// [os.ErrDeadlineExceeded] after the read deadline, with which the lane stays
// usable, and otherwise a *[PeerError] that matches [ErrReset] or, after a Close at
// this end, [ErrClosed].
func (l *Lane) Read(p []byte) (int, error) {
	if end := l.ended.Load(); end != nil {
		return 0, l.peerError("read", end.err)
	}
	n, err := l.stream.Read(p)
	if n > 0 && l.pulse != nil {
		l.pulse.reads()
	}
	if err != nil {
		err = l.failed("read", err)
	}
	return n, err
}

// Write sends p, which is borrowed until it returns. It blocks while the network
// or the other end's reader cannot take more. After the write deadline the error
// is [os.ErrDeadlineExceeded]: the first n bytes will be delivered, the lane
// stays usable and the rest may be written later. Other errors are as for Read.
func (l *Lane) Write(p []byte) (int, error) {
	if end := l.ended.Load(); end != nil {
		return 0, l.peerError("write", end.err)
	}
	l.sends()
	n, err := l.stream.Write(p)
	if err != nil {
		err = l.failed("write", err)
	}
	return n, err
}

// SetReadDeadline ends reads at t, also one that is blocked now. The zero time
// is never.
func (l *Lane) SetReadDeadline(t time.Time) error { return l.stream.SetReadDeadline(t) }

// SetWriteDeadline ends writes at t, also one that is blocked now. The zero time
// is never.
func (l *Lane) SetWriteDeadline(t time.Time) error { return l.stream.SetWriteDeadline(t) }

// Reset ends the epoch at both ends at once: what was not delivered is dropped
// and blocked calls return. The other end is told the [Reason] inside the given
// error, if any, by the carriers that can. It never blocks. Only the first call
// of Reset or Close does anything.
func (l *Lane) Reset(reason error) {
	r := reasonOf(reason)
	l.sends()
	l.end(r, &ResetError{Reason: r, Err: reason})
}

// Narrowed reports whether the host knows that the path to the peer has become too
// narrow for the packets that carry the lane. What was written may then be lost for
// good, however often it is sent again. It asks the kernel, which takes some
// microseconds.
func (l *Lane) Narrowed() bool { return l.conn != nil && l.conn.narrowed() }

// Suspect tells that nothing got through over the lane, which may have ended. Its QUIC
// connection is given up, and the other lane with it, if its packets are larger than
// those of a new one and either the path is known to be too narrow for them, or it
// answers, so that smaller ones pass. Both ends then see [ReasonPath]. It never blocks.
func (l *Lane) Suspect() {
	if l.conn != nil {
		l.peer.suspect(l.conn)
	}
}

// Close ends the lane behind what was written: the other end reads all of it and
// then io.EOF. What the other end sent and was not read is dropped. It does not
// wait. Over TCP what the other end has not read after 3 s is lost.
func (l *Lane) Close() error { return l.close(ReasonClosed) }

func (l *Lane) close(why Reason) error {
	if l.ended.CompareAndSwap(nil, &laneEnd{ErrClosed}) {
		l.peer.forget(l)
		return l.stream.close(why)
	}
	return nil
}

// sends tells a QUIC connection's pulse that something has to be acknowledged. Over
// TCP, where it would cost a system call, the engine's stall finds out.
func (l *Lane) sends() {
	if l.conn != nil && l.pulse != nil {
		l.pulse.sends()
	}
}

// Decline ends the lane as Close does, because the two ends do not understand each
// other: the other end still reads what was written, and behind it the [Reason]
// inside the given error, if any, with the carriers that can tell. The next lane of
// the class is not opened by this end before a second has passed since this one
// began, after each further one that is declined twice as long, up to 30 s, or when
// there is a new connection.
func (l *Lane) Decline(reason error) error {
	l.peer.declined(l.class)
	why := reasonOf(reason)
	if why == ReasonUnknown {
		why = ReasonClosed
	}
	return l.close(why)
}

// Carrier returns what the lane runs over.
func (l *Lane) Carrier() Carrier { return l.carrier }

// RemoteAddr returns the other end's address, which for QUIC may change.
func (l *Lane) RemoteAddr() net.Addr {
	if l.conn != nil {
		return l.conn.RemoteAddr()
	}
	return l.remote
}

// Overhead returns about what a carrier packet costs in bytes on top of the
// lane's bytes in it, IP header and acknowledgements that ride along included.
func (l *Lane) Overhead() int {
	n := overheadQUIC
	switch l.carrier {
	case TLS:
		n = overheadTLS
	case Plain:
		n = overheadPlain
	}
	if isIPv6(l.RemoteAddr()) {
		n += 20
	}
	return n
}

// What a packet with one small frame costs over IPv4, in bytes. QUIC as measured
// by TestOverhead, 59.9 to 60.6; where no answer carries an acknowledgement
// within 25 ms, a bare one, about 50, comes on top. TCP: IP 20, TCP with timestamps
// 32; TLS adds 5 for the record, 1 for its type and 16 for the tag. A bare
// acknowledgement is 52.
const (
	overheadQUIC  = 60
	overheadPlain = 52
	overheadTLS   = overheadPlain + 22
)

// end resets the lane, unless it is over, and reports whether it was not.
func (l *Lane) end(code Reason, err error) bool {
	if !l.ended.CompareAndSwap(nil, &laneEnd{err}) {
		return false
	}
	l.stream.abort(code)
	l.peer.forget(l)
	return true
}

// failed turns a stream's error into the lane's.
func (l *Lane) failed(op string, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && l.ended.Load() == nil {
		return os.ErrDeadlineExceeded
	}
	if err == io.EOF && l.ended.Load() == nil {
		why := l.stream.stopped()
		if why == ReasonClosed {
			return io.EOF
		}
		err = &ResetError{Reason: why, Remote: true}
	}
	reset := resetOf(err)
	// The other end takes no more: its last bytes may still be unread here, so only
	// writing is over. If it has reset the lane, reading will tell.
	if _, stopped := errors.AsType[*quic.StreamError](err); stopped && reset.Remote && op == "write" && l.ended.Load() == nil {
		return l.peerError(op, reset)
	}
	l.end(ReasonUnknown, reset)
	return l.peerError(op, l.ended.Load().err)
}

func (l *Lane) peerError(op string, err error) error {
	return &PeerError{l.peer.cfg.Name, op + " " + l.class.String() + " lane", err}
}

func isIPv6(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.IP.To4() == nil
	case *net.TCPAddr:
		return a.IP.To4() == nil
	}
	return false
}
