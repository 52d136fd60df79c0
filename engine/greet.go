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

// helloTimeout bounds the wait for a peer's Hello.
const helloTimeout = 10 * time.Second

// ErrSilent tells that the peer opened a lane and said nothing on it.
var ErrSilent = fmt.Errorf("no greeting within %v: %w", helloTimeout, tunnel.ReasonStalled)

// Greet tells whether this program and the one at the other end of a new lane
// understand each other, and why not: the error is a [wire.VersionError],
// matches [wire.ErrHello] or [ErrSilent], or is the lane's. It takes 10 s at most.
// Nothing else can be done with the lane afterwards.
func Greet(l *tunnel.Lane) error {
	_, _, err := greet(l, ownHello([8]byte{}, false))
	return err
}

// ownHello is what this program says in a run of that instance, of which
// connections end with it or not.
func ownHello(instance [8]byte, ends bool) wire.Hello {
	return wire.Hello{Min: wire.Version, Max: wire.Version, Limits: wire.DefaultLimits, Instance: instance, Ends: ends}
}

// greet exchanges Hellos and returns the peer's, and the limits agreed on.
func greet(s stream, own wire.Hello) (theirs wire.Hello, limits wire.Limits, err error) {
	deadline := time.Now().Add(helloTimeout)
	_ = s.SetReadDeadline(deadline)
	_ = s.SetWriteDeadline(deadline)
	if _, err = s.Write(wire.AppendHello(nil, own)); err != nil {
		return theirs, limits, rebuffed(own, err)
	}
	theirs, err = readHello(s)
	if errors.Is(err, wire.ErrHello) {
		return theirs, limits, fmt.Errorf("%w: %w: %w", ErrPeer, tunnel.ReasonProtocol, err)
	}
	if err != nil {
		return theirs, limits, rebuffed(own, err)
	}
	_, limits, err = wire.Negotiate(own, theirs)
	if e, ok := errors.AsType[*wire.VersionError](err); ok {
		return theirs, limits, fmt.Errorf("%w: %w", tunnel.ReasonVersion, e)
	}
	if err != nil {
		return theirs, limits, fmt.Errorf("%w: %w: %w", ErrPeer, tunnel.ReasonLimit, err)
	}
	_ = s.SetReadDeadline(time.Time{})
	return theirs, limits, nil
}

// readHello reads a Hello, and nothing behind it where the peer can be agreed with:
// one of version 1 is shorter, and may have begun a frame in its last 9 bytes' place.
// What is none is told from its first bytes, and not waited for.
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

// ErrRebuffed tells that the peer ended a lane in place of a greeting, and did not
// say why.
var ErrRebuffed = errors.New("the peer ended the lane in place of a greeting; it may be of another version")

// rebuffed says why there is no Hello of the peer's. One that does not agree
// leaves its own behind; only programs of version 1 reset the lane at once: over
// QUIC as if for a digest, which cannot be meant where there was no frame yet, and
// over TCP without a reason.
func rebuffed(own wire.Hello, err error) error {
	reset, ok := errors.AsType[*tunnel.ResetError](err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSilent
	case ok && reset.Remote && reset.Reason == tunnel.ReasonCorrupt:
		return fmt.Errorf("%w: %w", tunnel.ReasonVersion, &wire.VersionError{Here: own.Versions(), There: wire.Versions{Min: 1, Max: 1}})
	case err == io.EOF, ok && reset.Remote && reset.Reason == tunnel.ReasonUnknown:
		return fmt.Errorf("%w: %w", ErrRebuffed, err)
	}
	return fmt.Errorf("greeting: %w", err)
}

// discordant tells whether an epoch did not begin because the two ends do not
// understand each other, as far as is known.
func discordant(why error) bool { return errors.Is(why, wire.ErrHello) || errors.Is(why, ErrRebuffed) }

// A discord remembers what two ends do not agree on, of all lanes and attempts, so
// that it is told once. Its zero value is one of nothing.
type discord struct {
	mu   sync.Mutex
	told error
}

// news notes why the ends do not understand each other, and reports whether that
// was not known. A rebuff is no news to who knows why.
func (d *discord) news(err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.told != nil && (d.told.Error() == err.Error() || errors.Is(err, ErrRebuffed)) {
		return false
	}
	d.told = err
	return true
}

// settle notes that the ends agree, and reports whether they did not.
func (d *discord) settle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	had := d.told != nil
	d.told = nil
	return had
}

// why returns what the ends do not agree on, or nil.
func (d *discord) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.told
}
