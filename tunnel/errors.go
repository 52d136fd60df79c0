package tunnel

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/quic-go/quic-go"
)

var (
	// ErrClosed tells that the lane or the tunnel was closed at this end.
	ErrClosed = errors.New("tunnel: closed")
	// ErrReset is matched by every error that ends a lane other than a Close at
	// this end; see [ResetError] for the reason.
	ErrReset = errors.New("tunnel: lane reset")

	// ErrConfig is matched by everything that [New] finds wrong in a [Config]
	// before it opens a socket.
	ErrConfig = errors.New("tunnel: configuration")
	// ErrAddress tells that an address is not of the form host:port, or cannot
	// be listened on by this machine.
	ErrAddress = errors.New("tunnel: bad address")
	// ErrInUse tells that another program holds the listening port.
	ErrInUse = errors.New("tunnel: port in use")

	// ErrListen tells that the system does not let this program listen on an address.
	ErrListen = errors.New("tunnel: listen on")

	// ErrLoadKey tells that the system does not let a key file be read.
	ErrLoadKey = errors.New("tunnel: load key")
	// ErrKey tells that a file holds no usable private key.
	ErrKey = errors.New("tunnel: not an Ed25519 private key")
	// ErrPermissions tells that a key file can be read by others.
	ErrPermissions = errors.New("tunnel: key file readable by others")
	// ErrFingerprint tells that a text is not a fingerprint.
	ErrFingerprint = errors.New("tunnel: not a fingerprint")

	// ErrWrongKey tells that the gateway which answers is not the one wanted.
	ErrWrongKey = errors.New("tunnel: wrong key")
	// ErrUnknownPeer tells that a gateway called whose key is not configured.
	ErrUnknownPeer = errors.New("tunnel: unknown peer")
	// ErrRefused tells that the peer does not accept this gateway.
	ErrRefused = errors.New("tunnel: refused by the peer")
	// ErrProtocol tells that the other end does not speak this protocol.
	ErrProtocol = errors.New("tunnel: not a sheaf gateway of this version")
)

// Reason says why an epoch or a connection ended. It travels to the other end
// over QUIC. It is an error, so that it can be given to [Lane.Reset], alone or
// wrapped.
type Reason uint32

const (
	ReasonUnknown    Reason = iota // the other end could not or did not say
	ReasonClosed                   // closed by its owner
	ReasonShutdown                 // the gateway stops
	ReasonSuperseded               // a newer lane or connection took its place
	ReasonMoved                    // a preferred carrier became available
	ReasonDuplicate                // both ends dialed; the other connection is kept
	ReasonProtocol                 // not the protocol of this package
	ReasonVersion                  // no common version
	ReasonLost                     // nothing heard from the other end any more
	ReasonRestarted                // the other end has forgotten the connection
	ReasonStalled                  // for the engine: no progress
	ReasonCorrupt                  // for the engine: a digest did not match
	ReasonMalformed                // for the engine: a frame could not be parsed
	ReasonLimit                    // for the engine: a limit was exceeded
	ReasonPath                     // the path has become too narrow for the connection's packets
)

var reasons = [...]string{
	"no reason given", "closed", "the gateway stops", "replaced by a newer one",
	"moved to a preferred carrier", "both ends dialed", "protocol violated",
	"no common version", "nothing heard any more", "the other end restarted", "stalled",
	"digest mismatch", "malformed frame", "limit exceeded", "the path takes no large packets any more",
}

// String returns a few words for people.
func (r Reason) String() string {
	if int64(r) < int64(len(reasons)) {
		return reasons[r]
	}
	return fmt.Sprintf("reason %d", uint32(r))
}

// Error implements error.
func (r Reason) Error() string { return r.String() }

// reasonOf returns the Reason inside err, or ReasonUnknown.
func reasonOf(err error) Reason {
	if r, ok := errors.AsType[Reason](err); ok {
		return r
	}
	return ReasonUnknown
}

// A ResetError is why a lane ended. It matches [ErrReset].
type ResetError struct {
	Reason Reason
	Remote bool  // the other end ended it; otherwise this end or the network
	Err    error // what is known beyond the reason, or nil
}

func (e *ResetError) Error() string {
	s := "reset here: "
	if e.Remote {
		s = "reset by the peer: "
	}
	s += e.Reason.String()
	if e.Err != nil && e.Err != error(e.Reason) {
		s += " (" + e.Err.Error() + ")"
	}
	return s
}

// Unwrap makes errors.Is see ErrReset, the Reason and the cause.
func (e *ResetError) Unwrap() []error { return []error{ErrReset, e.Reason, e.Err} }

// A PeerError is anything that went wrong with one peer.
type PeerError struct {
	Peer string // its configured name
	Op   string // what was being done, such as "dial gw.example:4747"
	Err  error
}

func (e *PeerError) Error() string {
	return fmt.Sprintf("tunnel: peer %q: %s: %v", e.Peer, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// resetOf says in this package's words why a stream or a connection ended.
func resetOf(err error) *ResetError {
	if e, ok := errors.AsType[*ResetError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*quic.StreamError](err); ok {
		return &ResetError{Reason: Reason(e.ErrorCode), Remote: e.Remote}
	}
	if e, ok := errors.AsType[*quic.ApplicationError](err); ok {
		return &ResetError{Reason: Reason(e.ErrorCode), Remote: e.Remote}
	}
	if _, ok := errors.AsType[*quic.StatelessResetError](err); ok {
		return &ResetError{Reason: ReasonRestarted, Remote: true}
	}
	if isReset(err) {
		return &ResetError{Reason: ReasonUnknown, Remote: true, Err: err}
	}
	return &ResetError{Reason: ReasonLost, Err: err}
}

// dialError says what a failed handshake means to whoever reads the log.
func dialError(err error, own Fingerprint) error {
	refused := func() error {
		return fmt.Errorf("%w: it does not know this gateway's key; its configuration needs the fingerprint %v", ErrRefused, own)
	}
	noALPN := func() error {
		return fmt.Errorf("%w: %w: it does not speak %q; if it is one of yours, upgrade the older of the two", ErrProtocol, ReasonVersion, alpn)
	}
	switch {
	case errors.Is(err, ErrWrongKey), errors.Is(err, ErrRefused), errors.Is(err, ErrProtocol):
		return err
	}
	if e, ok := errors.AsType[*quic.TransportError](err); ok && e.Remote && e.ErrorCode.IsCryptoError() {
		switch tls.AlertError(e.ErrorCode & 0xff) {
		case alertBadCertificate:
			return refused()
		case alertNoALPN:
			return noALPN()
		}
	}
	switch tcpAlert(err) {
	case alertBadCertificate:
		return refused()
	case alertNoALPN:
		return noALPN()
	}
	if e, ok := errors.AsType[*quic.ApplicationError](err); ok && e.Remote {
		return fmt.Errorf("%w: %w", ErrRefused, Reason(e.ErrorCode))
	}
	return err
}

// TLS alerts (RFC 8446 section 6, RFC 7301 section 3.2).
const (
	alertBadCertificate tls.AlertError = 42
	alertNoALPN         tls.AlertError = 120
)

// tcpAlert returns which of the alerts above ended a TLS handshake over TCP from the
// other end, or 0. crypto/tls gives a received alert an unexported type there, so its
// text is all that tells; TestAlertsOverTCP holds the text.
func tcpAlert(err error) tls.AlertError {
	e, ok := errors.AsType[*net.OpError](err)
	if !ok || e.Op != "remote error" {
		return 0
	}
	for _, alert := range []tls.AlertError{alertBadCertificate, alertNoALPN} {
		if e.Err.Error() == alert.Error() {
			return alert
		}
	}
	return 0
}
