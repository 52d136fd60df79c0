package tunnel

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A lane over TCP is a connection of its own. The dialing end writes
//
//	TLS    header
//	plain  magic, its fingerprint, the fingerprint it wants, header
//
// and the other one answers with the version and a Reason of one byte each; 0
// accepts the lane.
const (
	plainMagic = "sheaf/1p"
	plainLen   = len(plainMagic) + 32 + 32
	answerLen  = 2
)

// Handshakes in progress, in all and from one address. Chosen, not measured: a peer
// makes maxCalls at a time at most.
const (
	maxHalfTCP     = 128
	maxHalfPerAddr = 16
)

// maxSegment is the largest TCP segment of a lane, without its headers: packets are
// then as large as the first ones of QUIC, minPacket with IP and UDP. A path that
// drops larger ones without a word, or comes to do so, does not matter; the kernel
// finds out only where net.ipv4.tcp_mtu_probing is on, and the first message of TLS
// is already larger than 1,300 bytes. Segments of 1,448 bytes would save 0.7 % of a
// bulk transfer.
const maxSegment = minPacket + 8 - 20

// halfOpen counts handshakes that have not shown yet who is calling.
type halfOpen struct {
	mu  sync.Mutex
	all int
	by  map[netip.Addr]int
}

func (h *halfOpen) enter(a netip.Addr) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all >= maxHalfTCP || h.by[a] >= maxHalfPerAddr {
		return false
	}
	if h.by == nil {
		h.by = map[netip.Addr]int{}
	}
	h.all++
	h.by[a]++
	return true
}

func (h *halfOpen) leave(a netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all--
	if h.by[a]--; h.by[a] == 0 {
		delete(h.by, a)
	}
}

// acceptTCP is the listening side.
func (t *Tunnel) acceptTCP() {
	pause := backoff{min: 5 * time.Millisecond, max: time.Second}
	for {
		conn, err := t.tcpLn.AcceptTCP()
		if err != nil {
			if t.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			t.cfg.Logger.Error("accept", "err", err) // out of files, most likely
			pause.wait(t.ctx, nil)
			continue
		}
		pause.reset()
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
		if !t.halfTCP.enter(from) {
			t.refused.note(conn.RemoteAddr(), errors.New("too many handshakes in progress"))
			conn.Close()
			continue
		}
		t.wg.Go(func() {
			defer t.halfTCP.leave(from)
			if err := t.serveTCP(conn); err != nil {
				resetTCP(conn)
			}
		})
	}
}

// serveTCP finds out who calls and for what, and offers the lane to that peer.
// The caller closes the connection if there is an error.
func (t *Tunnel) serveTCP(conn *net.TCPConn) error {
	stop := context.AfterFunc(t.ctx, func() { resetTCP(conn) })
	defer stop()
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	tuneTCP(conn)

	carrier, rw, noted := TLS, net.Conn(conn), false
	note := func(from net.Addr, err error) {
		t.refused.note(from, err)
		noted = true
	}
	var claimed Fingerprint
	var err error
	if t.allows(Plain) {
		carrier = Plain
		claimed, err = t.readPlain(conn)
	} else {
		tc := tls.Server(conn, t.listenTLS(note))
		rw = tc
		if err = tc.HandshakeContext(t.ctx); err == nil {
			claimed, err = fingerprintIn(tc.ConnectionState())
		}
	}
	var h header
	if err == nil {
		h, err = readHeader(rw)
	}
	p := t.known[claimed]
	if err == nil && p == nil {
		err = fmt.Errorf("%w: fingerprint %v", ErrUnknownPeer, claimed)
	}
	if err != nil {
		// A peer that made several calls gives up those that it does not choose.
		if !noted && (p == nil || errors.Is(err, ErrProtocol)) {
			note(conn.RemoteAddr(), err)
		}
		if errors.Is(err, ErrProtocol) || errors.Is(err, ErrUnknownPeer) {
			t.answer(rw, carrier, reasonOf(err), true)
			return rw.Close()
		}
		return err
	}
	l := newTCPLane(p, tcpCall{carrier, conn, rw}, h, false)
	if err := p.admits(l, h); err != nil {
		t.answer(rw, carrier, reasonOf(err), true)
		return rw.Close()
	}
	if err := t.answer(rw, carrier, 0, false); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	if !stop() {
		return ErrClosed
	}
	l.serve()
	if err := p.offer(l, h); err != nil {
		l.stream.abort(reasonOf(err))
	}
	return nil
}

// readPlain reads who a plain caller claims to be.
func (t *Tunnel) readPlain(r io.Reader) (claimed Fingerprint, err error) {
	var b [plainLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return claimed, err
	}
	own := t.Fingerprint()
	n := copy(claimed[:], b[len(plainMagic):]) + len(plainMagic)
	switch {
	case string(b[:len(plainMagic)]) != plainMagic:
		return claimed, fmt.Errorf("%w: carrier plain is expected here", ErrProtocol)
	case !bytes.Equal(b[n:], own[:]):
		return claimed, fmt.Errorf("%w: the caller wants another gateway, %v", ErrUnknownPeer, Fingerprint(b[n:]))
	}
	return claimed, nil
}

// answer accepts or refuses a lane.
func (t *Tunnel) answer(w io.Writer, c Carrier, why Reason, refuse bool) error {
	var b []byte
	if c == Plain {
		own := t.Fingerprint()
		b = append(b, own[:]...)
	}
	if refuse && why == 0 {
		why = ReasonProtocol
	}
	_, err := w.Write(append(b, laneVersion, byte(why)))
	return err
}

// A tcpCall is a connection on which this end has not asked for a lane yet. Until
// then it means nothing to the other one, which ends it after a while.
type tcpCall struct {
	carrier Carrier
	conn    *net.TCPConn
	rw      net.Conn // conn, or TLS over it
}

// dialTCP calls the endpoint. A TLS peer has proved its key when it returns, and
// may still refuse this end's.
func (p *Peer) dialTCP(ctx context.Context, c call) (*tcpCall, error) {
	raw, err := (&net.Dialer{Control: limitSegment}).DialContext(ctx, "tcp", p.cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	c.answered()
	conn := raw.(*net.TCPConn)
	tuneTCP(conn)
	if c.carrier != TLS {
		return &tcpCall{c.carrier, conn, conn}, nil
	}
	conf := p.t.dialTLS(p.cfg.Fingerprint)
	conf.ServerName = "" // nothing about this network is said in the clear
	tc := tls.Client(conn, conf)
	if err := tc.HandshakeContext(ctx); err != nil {
		resetTCP(conn)
		return nil, err
	}
	return &tcpCall{TLS, conn, tc}, nil
}

// open asks for a lane.
func (c *tcpCall) open(ctx context.Context, p *Peer, h header) (*Lane, error) {
	stop := context.AfterFunc(ctx, func() { resetTCP(c.conn) })
	defer stop()
	err := p.openTCP(c.rw, c.carrier, h)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		resetTCP(c.conn)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	l := newTCPLane(p, *c, h, true)
	l.serve()
	return l, nil
}

// openTCP writes the header and reads the answer.
func (p *Peer) openTCP(rw io.ReadWriter, c Carrier, h header) error {
	var b []byte
	if c == Plain {
		own := p.t.Fingerprint()
		b = append(b, plainMagic...)
		b = append(b, own[:]...)
		b = append(b, p.cfg.Fingerprint[:]...)
	}
	if _, err := rw.Write(appendHeader(b, h)); err != nil {
		return err
	}
	if c == Plain {
		var got Fingerprint
		if _, err := io.ReadFull(rw, got[:]); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		if got != p.cfg.Fingerprint {
			return fmt.Errorf("%w: the gateway there has the fingerprint %v, expected %v", ErrWrongKey, got, p.cfg.Fingerprint)
		}
	}
	var answer [answerLen]byte
	if _, err := io.ReadFull(rw, answer[:]); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case answer[0] != laneVersion:
		return checkVersion(answer[0])
	case answer[1] != 0:
		return fmt.Errorf("%w: %w", ErrRefused, Reason(answer[1]))
	}
	return nil
}

// newTCPLane dresses a connection as a lane that this end asked for, or the peer.
func newTCPLane(p *Peer, c tcpCall, h header, dialed bool) *Lane {
	s := newTCPStream(p.t.ctx, c.conn, c.rw)
	l := &Lane{
		peer: p, stream: s, class: h.class, carrier: c.carrier,
		epoch: h.epoch, dialed: dialed, since: time.Now(), remote: c.conn.RemoteAddr(),
	}
	if conn := s.probed(); conn != nil && p.cfg.Endpoint != "" {
		l.pulse = newPulse(conn)
	}
	return l
}

// serve does what a lane over TCP needs beside its reader and writer.
func (l *Lane) serve() {
	t, s := l.peer.t, l.stream.(*tcpStream)
	t.spawn(s.pump)
	if l.pulse != nil {
		t.spawn(func() { l.pulse.feel(l.heed) })
	}
}

// heed ends a lane over TCP that its pulse says is lost.
func (l *Lane) heed(v verdict) {
	if v == lost {
		l.end(ReasonLost, &ResetError{Reason: ReasonLost})
	}
}

// keepTCP is when a connection without a packet is asked for a sign of life.
var keepTCP = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: time.Second, Count: 3}

// tuneTCP makes a connection send at once, notice a dead network within 20 s where
// nothing is sent, and keep little that is not sent yet.
func tuneTCP(conn *net.TCPConn) {
	conn.SetNoDelay(true)
	conn.SetKeepAliveConfig(keepTCP)
	limitUnsent(conn, maxUnsent)
}

// resetTCP closes a connection in a way that the other end sees at once.
func resetTCP(conn *net.TCPConn) {
	conn.SetLinger(0)
	conn.Close()
}
