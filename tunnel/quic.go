package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// handshakeTimeout bounds what a stranger can hold open. Chosen, not measured: eight
	// round trips by satellite (600 ms).
	handshakeTimeout = 5 * time.Second
	// halfOpenProve is the number of QUIC handshakes in progress from which on
	// callers must first prove their address (RFC 9000 section 8.1.2), and
	// halfOpenMax the one from which on they are refused. Chosen, not measured: peers
	// are few, so more than some dozens at a time are strangers.
	halfOpenProve, halfOpenMax = 32, 256
	// maxStreams that a peer may have open at a time: a lane of each class, and
	// some that are being reset.
	maxStreams = 8 * int64(NumClasses)
	// minPacket is the size of the first packets of a connection, without IP and
	// UDP. It passes everywhere, also through IPv6 tunnels and other VPNs.
	minPacket = 1200
)

// quicConfig is tuned for few bytes: lanes often carry one small frame at a time,
// so that what a packet costs is most of what crosses the link.
func (t *Tunnel) quicConfig() *quic.Config {
	return &quic.Config{
		Versions:             []quic.Version{quic.Version1},
		HandshakeIdleTimeout: handshakeTimeout,
		MaxIdleTimeout:       t.cfg.IdleTimeout,
		// Path MTU discovery raises it within a few round trips, and never lowers it
		// again: see quicConn.narrowed.
		InitialPacketSize:              minPacket,
		InitialStreamReceiveWindow:     512 << 10,
		MaxStreamReceiveWindow:         4 << 20,
		InitialConnectionReceiveWindow: 768 << 10,
		MaxConnectionReceiveWindow:     6 << 20, // a lane that is not read leaves room for the other
		EnableDatagrams:                true,    // a pulse asks with one; and see quicConn.packet
		MaxIncomingStreams:             -1,
		MaxIncomingUniStreams:          -1,
	}
}

// listenQUIC starts the listening side.
func (t *Tunnel) listenQUIC() error {
	// The key for stateless resets outlives a restart, so that peers learn of the
	// restart from the answer to their next packet (RFC 9000 section 10.3).
	resetKey := quic.StatelessResetKey(t.cfg.Key.derive("stateless reset"))
	t.transport = &quic.Transport{
		Conn:                newSocket(t.udp, true),
		StatelessResetKey:   &resetKey,
		VerifySourceAddress: func(net.Addr) bool { return t.halfQUIC.Load() >= halfOpenProve },
		ConnContext: func(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
			if t.halfQUIC.Load() >= halfOpenMax {
				return nil, errors.New("too many handshakes in progress")
			}
			return t.countHalfOpen(ctx), nil
		},
	}
	conf := t.quicConfig()
	conf.MaxIncomingStreams = maxStreams
	ln, err := t.transport.Listen(t.listenTLS(t.refused.note), conf)
	if err != nil {
		return err
	}
	t.quicLn = ln
	t.wg.Go(func() {
		for {
			conn, err := ln.Accept(t.ctx)
			if err != nil {
				return
			}
			conn.Context().Value(halfOpenKey{}).(func())()
			t.wg.Go(func() { t.serveQUIC(conn) })
		}
	})
	return nil
}

type halfOpenKey struct{}

// countHalfOpen counts a handshake until it is done, one way or the other. The
// context returned has the function that says so.
func (t *Tunnel) countHalfOpen(ctx context.Context) context.Context {
	t.halfQUIC.Add(1)
	done := sync.OnceFunc(func() { t.halfQUIC.Add(-1) })
	context.AfterFunc(ctx, done)
	return context.WithValue(ctx, halfOpenKey{}, done)
}

// A quicConn is a QUIC connection to a peer.
type quicConn struct {
	*quic.Conn
	dialed    bool        // by this end
	since     time.Time   // when it was taken for the way to the peer
	doubted   bool        // silent, where there should be an answer; under the peer's mu
	pulse     *pulse      // nil at an end that cannot call
	mtu       int         // of the path when the connection began, as the host knew it
	suspected atomic.Bool // a suspect waits for an answer
	release   func()      // what to do when the connection is over
}

func (p *Peer) newQUICConn(conn *quic.Conn, dialed bool) *quicConn {
	k := &quicConn{Conn: conn, dialed: dialed, mtu: pathMTU(conn.RemoteAddr())}
	if p.cfg.Endpoint != "" {
		k.pulse = newPulse(conn)
	}
	return k
}

// serveQUIC runs a connection that a peer dialed. The first thing on it is one
// byte on a unidirectional stream, the version, which tells the peer that its
// key was accepted: the handshake of TLS 1.3 ends before the dialing end can
// know. The connection is taken for the way to the peer when the first lane on it
// is opened: a peer may have dialed several, and that is how it tells which.
func (t *Tunnel) serveQUIC(conn *quic.Conn) {
	print, err := fingerprintIn(conn.ConnectionState().TLS)
	p := t.known[print]
	if err != nil || p == nil { // the handshake has made sure of both
		conn.CloseWithError(quic.ApplicationErrorCode(ReasonUnknown), "")
		return
	}
	k := p.newQUICConn(conn, false)
	if err := p.expect(k); err != nil {
		k.close(reasonOf(err))
		return
	}
	t.wg.Go(func() { k.watch(p) })
	welcome, err := conn.OpenUniStream()
	if err == nil {
		_, err = welcome.Write([]byte{laneVersion})
		welcome.Close()
	}
	for err == nil {
		var s *quic.Stream
		if s, err = conn.AcceptStream(t.ctx); err == nil {
			t.wg.Go(func() { k.serveStream(p, s) })
		}
	}
	if reset := resetOf(err); reset.Remote && reset.Reason == ReasonVersion {
		t.refused.note(conn.RemoteAddr(), fmt.Errorf("%w: peer %q, which does not open lanes of version %d; upgrade the older of the two", reset, p.cfg.Name, laneVersion))
	}
}

// serveStream reads the header of a lane that the peer opened, and offers it.
func (k *quicConn) serveStream(p *Peer, s *quic.Stream) {
	qs := &quicStream{Stream: s}
	s.SetReadDeadline(time.Now().Add(handshakeTimeout))
	h, err := readHeader(s)
	s.SetReadDeadline(time.Time{})
	if errors.Is(err, ErrProtocol) {
		p.t.refused.note(k.RemoteAddr(), err)
	}
	if err == nil {
		if err = p.adopt(k, &h); err != nil {
			k.close(reasonOf(err))
			return
		}
		err = p.offer(k.lane(p, qs, h), h)
	}
	if err != nil {
		qs.abort(reasonOf(err))
	}
}

// open opens a lane on a connection that this end dialed.
func (k *quicConn) open(ctx context.Context, p *Peer, h header) (*Lane, error) {
	s, err := k.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	l := k.lane(p, &quicStream{Stream: s}, h)
	if _, err := s.Write(appendHeader(nil, h)); err != nil {
		l.stream.abort(ReasonUnknown)
		return nil, err
	}
	return l, nil
}

// lane dresses a stream as a lane. Both lanes share one connection, its congestion
// window and its acknowledgements: a connection of its own for bulk would compete
// with the messages for the link, and acknowledge in packets of its own. The
// priorities (RFC 9218) make every packet, new or repaired, take from the
// messages' stream first, however many there are. Bulk is then in front of them
// only in packets that have left, and in the one that is being filled.
func (k *quicConn) lane(p *Peer, s *quicStream, h header) *Lane {
	urgency := int8(1)
	if h.class == ClassBulk {
		urgency = 5
	}
	s.SetPriority(urgency, false)
	return &Lane{peer: p, conn: k, pulse: k.pulse, stream: s, class: h.class, carrier: QUIC, epoch: h.epoch, dialed: k.dialed, since: time.Now()}
}

// watch follows the connection until it is over or given up.
func (k *quicConn) watch(p *Peer) {
	if k.pulse != nil {
		k.pulse.feel(func(v verdict) {
			p.heed(k, v)
			if v == lost {
				k.close(ReasonLost)
			}
		})
	}
	<-k.Context().Done()
	p.dropConn(k, context.Cause(k.Context()))
	if k.release != nil {
		k.release()
	}
}

// close ends the connection and tells the other end why.
func (k *quicConn) close(why Reason) {
	k.CloseWithError(quic.ApplicationErrorCode(why), "")
	if k.release != nil {
		k.release()
	}
}

// dialQUIC calls the endpoint's addresses one after the other. Each call begins with
// another one.
func (p *Peer) dialQUIC(ctx context.Context, c call, sparing bool) (*quicConn, error) {
	addrs, err := p.resolve(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i := range addrs {
		addr := addrs[(c.number+i)%len(addrs)]
		// Share what is left of the time among the addresses that are left.
		deadline, _ := ctx.Deadline()
		sub, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addrs)-i))
		k, err := p.dialAddr(sub, addr, c.answered, sparing)
		cancel()
		if err == nil {
			return k, nil
		}
		errs = append(errs, fmt.Errorf("%v: %w", addr, err))
	}
	return nil, errors.Join(errs...)
}

// dialAddr calls one address, from a socket of its own: a new port gets around
// what a NAT may remember of an old one, and one connection per socket needs only
// the shortest of connection IDs.
func (p *Peer) dialAddr(ctx context.Context, addr netip.AddrPort, answered func(), sparing bool) (*quicConn, error) {
	network := "udp4"
	if addr.Addr().Is6() {
		network = "udp6"
	}
	udp, err := net.ListenUDP(network, nil)
	if err != nil {
		return nil, err
	}
	through := newSocket(udp, false)
	calling := newCallSocket(through, answered, sparing)
	tr := &quic.Transport{Conn: calling, ConnectionIDGenerator: newShortIDs()}
	release := sync.OnceFunc(func() {
		tr.Close()
		udp.Close()
	})
	conf := p.t.quicConfig()
	conf.MaxIncomingUniStreams = 1
	conf.KeepAlivePeriod = p.t.cfg.KeepAlive // from this end only: NATs are on the dialing side
	conn, err := tr.Dial(ctx, net.UDPAddrFromAddrPort(addr), p.t.dialTLS(p.cfg.Fingerprint), conf)
	if err != nil {
		release()
		return nil, err
	}
	k := p.newQUICConn(conn, true)
	k.release = release
	if err := readWelcome(ctx, conn); err != nil {
		why := reasonOf(err)
		if why == ReasonUnknown {
			why = ReasonProtocol
		}
		k.close(why)
		return nil, err
	}
	calling.establish()
	return k, nil
}

func readWelcome(ctx context.Context, conn *quic.Conn) error {
	s, err := conn.AcceptUniStream(ctx)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		s.SetReadDeadline(deadline)
	}
	b, err := io.ReadAll(io.LimitReader(s, 2))
	if err != nil {
		return err
	}
	if len(b) == 0 {
		return fmt.Errorf("%w: no welcome", ErrProtocol)
	}
	return checkVersion(b[0])
}

// A quicStream is a lane's stream.
type quicStream struct {
	*quic.Stream
	writing sync.Mutex // quic-go wants no Close during a Write
}

func (s *quicStream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.Stream.Write(p)
}

// close sends what was written and then the end. The other end may not write any
// more, and is told why (RFC 9000 section 3.5).
func (s *quicStream) close(why Reason) error {
	s.CancelRead(quic.StreamErrorCode(why))
	s.SetWriteDeadline(time.Now()) // a blocked Write returns
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.Stream.Close()
}

// stopped implements stream. What the other end said comes before the end of what
// it wrote, unless its packet was lost.
func (s *quicStream) stopped() Reason {
	if e, ok := errors.AsType[*quic.StreamError](context.Cause(s.Context())); ok && e.Remote {
		return Reason(e.ErrorCode)
	}
	return ReasonClosed
}

func (s *quicStream) abort(why Reason) {
	s.CancelRead(quic.StreamErrorCode(why))
	s.CancelWrite(quic.StreamErrorCode(why))
}

// shortIDs makes connection IDs of one byte for a socket that has one connection:
// they only have to differ from the few others of the same connection that are
// still in use, and the other end puts one into every packet. An empty ID would
// be shorter still, but then quic-go does not see stateless resets.
type shortIDs struct {
	mu   sync.Mutex
	next byte
	perm []int
}

func newShortIDs() *shortIDs { return &shortIDs{perm: rand.Perm(256)} }

// GenerateConnectionID implements [quic.ConnectionIDGenerator].
func (g *shortIDs) GenerateConnectionID() (quic.ConnectionID, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	return quic.ConnectionIDFromBytes([]byte{byte(g.perm[g.next])}), nil
}

// ConnectionIDLen implements [quic.ConnectionIDGenerator].
func (g *shortIDs) ConnectionIDLen() int { return 1 }
