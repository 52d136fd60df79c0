package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// helloTimeout bounds the wait for a peer's Hello. Chosen, not measured: 16 round
// trips by satellite (600 ms), which leaves room for three losses in a row.
const helloTimeout = 10 * time.Second

// ErrSilent tells that the peer opened a lane and said nothing on it.
var ErrSilent = fmt.Errorf("no Hello within %v: %w", helloTimeout, tunnel.ReasonStalled)

// Handshake tells whether this program and the one at the other end of a new lane
// understand each other, and why not: the error is a [wire.VersionError], matches
// [wire.ErrHello], [ErrNoHello] or [ErrSilent], or is the lane's. It takes 10 s at
// most. Nothing else can be done with the lane afterwards.
func Handshake(l *tunnel.Lane) error {
	_, _, err := handshake(l, ownHello([8]byte{}, false))
	return err
}

// ownHello is what this program says in the run that instance stands for; ends is
// whether connections end with the run ([wire.Hello]).
func ownHello(instance [8]byte, ends bool) wire.Hello {
	return wire.Hello{Min: wire.Version, Max: wire.Version, Limits: wire.DefaultLimits, Instance: instance, Ends: ends}
}

// handshake exchanges Hellos and returns the peer's, and the limits agreed on. An
// error has the [tunnel.Reason] that the peer is to be told.
func handshake(s stream, own wire.Hello) (theirs wire.Hello, limits wire.Limits, err error) {
	deadline := time.Now().Add(helloTimeout)
	_ = s.SetReadDeadline(deadline)
	_ = s.SetWriteDeadline(deadline)
	_, unsent := s.Write(wire.AppendHello(nil, own))
	// A peer that declined first takes no Hello, and has left its own, which says why.
	theirs, err = readHello(s)
	if err != nil && unsent != nil && !errors.Is(err, wire.ErrHello) {
		return theirs, limits, noHello(own, unsent)
	}
	if errors.Is(err, wire.ErrHello) {
		return theirs, limits, fmt.Errorf("%w: %w: %w", ErrPeer, tunnel.ReasonProtocol, err)
	}
	if err != nil {
		return theirs, limits, noHello(own, err)
	}
	_, limits, err = wire.Negotiate(own, theirs)
	if e, ok := errors.AsType[*wire.VersionError](err); ok {
		return theirs, limits, fmt.Errorf("%w: %w", tunnel.ReasonVersion, e)
	}
	if err != nil {
		return theirs, limits, fmt.Errorf("%w: %w: %w", ErrPeer, tunnel.ReasonLimit, err)
	}
	if unsent != nil {
		return theirs, limits, noHello(own, unsent)
	}
	_ = s.SetReadDeadline(time.Time{})
	return theirs, limits, nil
}

// readHello reads a Hello, and nothing behind it where the peer can be agreed with:
// one of version 1 is shorter, and may have begun a frame in its last 9 bytes' place.
// Other bytes are known from the first of them, and no more are waited for.
func readHello(s io.Reader) (wire.Hello, error) {
	var buf [wire.HelloLen]byte
	for n := 0; ; {
		h, _, err := wire.ParseHello(buf[:n])
		if err == nil || !errors.Is(err, wire.ErrShort) {
			return h, err
		}
		got, err := s.Read(buf[n:])
		n += got
		if got == 0 && err != nil {
			return wire.Hello{}, err
		}
	}
}

// ErrNoHello tells that the peer ended a lane in place of a Hello, and did not say
// why.
var ErrNoHello = errors.New("the peer ended the lane in place of a Hello; it may be of another version")

// noHello says why there is no Hello of the peer's. A peer that does not agree says
// why when it declines the lane, over QUIC, and leaves its own Hello behind. Only
// programs of version 1 reset the lane at once: over QUIC as if for a digest, which
// cannot be meant where there was no frame yet, and over TCP without a reason.
func noHello(own wire.Hello, err error) error {
	reset, ok := errors.AsType[*tunnel.ResetError](err)
	if ok && reset.Remote {
		switch reset.Reason {
		case tunnel.ReasonCorrupt:
			return fmt.Errorf("%w: %w", tunnel.ReasonVersion, &wire.VersionError{Here: own.Versions(), There: wire.Versions{Min: 1, Max: 1}})
		case tunnel.ReasonVersion, tunnel.ReasonProtocol, tunnel.ReasonLimit:
			return fmt.Errorf("%w: %w", wire.ErrHello, err)
		case tunnel.ReasonUnknown:
			return fmt.Errorf("%w: %w", ErrNoHello, err)
		}
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSilent
	case err == io.EOF:
		return fmt.Errorf("%w: %w", ErrNoHello, err)
	}
	return fmt.Errorf("handshake: %w", err)
}

// isMismatch tells whether an epoch did not begin because the two ends do not
// understand each other, as far as is known: versions, limits, or no Hello at all.
func isMismatch(why error) bool { return errors.Is(why, wire.ErrHello) || errors.Is(why, ErrNoHello) }

// A mismatch remembers what two ends do not agree on, of all lanes and attempts, so
// that it is told once. Its zero value is none.
type mismatch struct {
	mu   sync.Mutex
	told error
}

// news notes why the ends do not understand each other, and reports whether the log
// has not said so yet, in the same words. A lane without a Hello is no news to who
// knows why.
func (m *mismatch) news(err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told != nil && (m.told.Error() == err.Error() || errors.Is(err, ErrNoHello)) {
		return false
	}
	m.told = err
	return true
}

// agreed notes that the ends agree, and reports whether they did not.
func (m *mismatch) agreed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	had := m.told != nil
	m.told = nil
	return had
}

// why returns what the ends do not agree on, or nil.
func (m *mismatch) why() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told
}
