package tunnel

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/quic-go/quic-go"
)

// A Tunnel is this gateway's end of the lanes to all of its peers.
type Tunnel struct {
	cfg      Config
	cert     tls.Certificate
	instance [8]byte // tells this run of the gateway from those before
	known    map[Fingerprint]*Peer
	peers    []*Peer
	refused  refused

	udp       *net.UDPConn // or nil
	transport *quic.Transport
	quicLn    *quic.Listener
	tcpLn     *net.TCPListener // or nil
	halfTCP   halfOpen
	halfQUIC  atomic.Int32

	ctx    context.Context // ends with the tunnel
	cancel context.CancelFunc
	wg     sync.WaitGroup
	closed sync.Once

	spawning sync.Mutex // held while wg grows from outside of wg
	closing  bool
}

// New checks the configuration, binds the sockets and starts listening. Peers
// are called when a lane is asked for. The error matches [ErrConfig],
// [ErrAddress], [ErrInUse] or [ErrListen].
func New(cfg Config) (*Tunnel, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Tunnel{cfg: cfg, known: map[Fingerprint]*Peer{}, refused: refused{log: cfg.Logger}}
	if t.cert, err = certificate(cfg.Key); err != nil {
		return nil, err
	}
	rand.Read(t.instance[:]) // never fails
	t.ctx, t.cancel = context.WithCancel(context.Background())
	for _, pc := range cfg.Peers {
		p := newPeer(t, pc)
		t.peers = append(t.peers, p)
		t.known[pc.Fingerprint] = p
	}
	if cfg.Listen != "" {
		if err := t.listen(); err != nil {
			t.Close()
			return nil, err
		}
	}
	if slices.Contains(cfg.Carriers, Plain) {
		cfg.Logger.Warn("carrier plain is in use: nothing is encrypted and peers are not authenticated; use it only inside another VPN")
	}
	for _, p := range t.peers {
		if p.cfg.Endpoint != "" {
			t.wg.Go(p.dialLoop)
		}
	}
	return t, nil
}

// allows reports whether the configuration allows a carrier.
func (t *Tunnel) allows(c Carrier) bool { return slices.Contains(t.cfg.Carriers, c) }

// bindAttempts is how often a free port is looked for that both UDP and TCP have. On a
// host on which half of the ports were taken 1 of 65,536 starts would fail.
const bindAttempts = 16

func (t *Tunnel) listen() error {
	for attempt := 1; ; attempt++ {
		err := t.bind()
		if err == nil {
			break
		}
		_, port, _ := net.SplitHostPort(t.cfg.Listen)
		if port != "0" || attempt == bindAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return listenError(t.cfg.Listen, err)
		}
	}
	if t.udp != nil {
		if err := t.listenQUIC(); err != nil {
			return fmt.Errorf("%w %s: %w", ErrListen, t.cfg.Listen, err)
		}
	}
	if t.tcpLn != nil {
		t.wg.Go(t.acceptTCP)
	}
	return nil
}

// bind opens the sockets that the carriers need, all or none, on one port.
func (t *Tunnel) bind() error {
	addr := t.cfg.Listen
	if t.allows(TLS) || t.allows(Plain) {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return err
		}
		t.tcpLn = ln.(*net.TCPListener)
		host, _, _ := net.SplitHostPort(addr)
		addr = net.JoinHostPort(host, fmt.Sprint(t.tcpLn.Addr().(*net.TCPAddr).Port))
	}
	if t.allows(QUIC) {
		udp, err := net.ListenPacket("udp", addr)
		if err != nil {
			if t.tcpLn != nil {
				t.tcpLn.Close()
				t.tcpLn = nil
			}
			return err
		}
		t.udp = udp.(*net.UDPConn)
	}
	return nil
}

func listenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: %s: another program, perhaps another sheaf, listens there: %w", ErrInUse, addr, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w %s: this machine has no such address: %w", ErrAddress, addr, err)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("%w %s: %w", ErrAddress, addr, err)
	}
	return fmt.Errorf("%w %s: %w", ErrListen, addr, err)
}

// Addr returns the address listened on, of UDP if QUIC is allowed and else of
// TCP, or nil.
func (t *Tunnel) Addr() net.Addr {
	switch {
	case t.udp != nil:
		return t.udp.LocalAddr()
	case t.tcpLn != nil:
		return t.tcpLn.Addr()
	}
	return nil
}

// Fingerprint returns what this gateway is known by.
func (t *Tunnel) Fingerprint() Fingerprint { return t.cfg.Key.Fingerprint() }

// Refused returns how many calls of strangers and of things that are not
// gateways were turned away.
func (t *Tunnel) Refused() uint64 { return t.refused.count() }

// Peer returns the peer of that name, or nil.
func (t *Tunnel) Peer(name string) *Peer {
	for _, p := range t.peers {
		if p.cfg.Name == name {
			return p
		}
	}
	return nil
}

// Close ends all lanes and connections, tells the peers, closes the sockets and
// waits for every goroutine. Blocked calls return errors that match [ErrClosed].
// It may be called twice.
func (t *Tunnel) Close() error {
	t.closed.Do(func() {
		t.spawning.Lock()
		t.closing = true
		t.spawning.Unlock()
		t.cancel()
		if t.tcpLn != nil {
			t.tcpLn.Close()
		}
		var g sync.WaitGroup
		for _, p := range t.peers {
			g.Go(p.close)
		}
		g.Wait()
		if t.quicLn != nil {
			t.quicLn.Close()
		}
		if t.transport != nil {
			t.transport.Close()
		}
		if t.udp != nil {
			t.udp.Close()
		}
	})
	t.wg.Wait()
	return nil
}

// spawn runs f in a goroutine that Close waits for, unless the tunnel is closing.
func (t *Tunnel) spawn(f func()) {
	t.spawning.Lock()
	defer t.spawning.Unlock()
	if !t.closing {
		t.wg.Go(f)
	}
}

// A header opens every lane, written by the end that dialed.
type header struct {
	class    Class
	instance [8]byte
	epoch    uint64
}

const (
	laneVersion = 1             // of the header's form; frames have versions of their own
	headerLen   = 1 + 1 + 8 + 8 // version, class, instance, epoch
)

func appendHeader(dst []byte, h header) []byte {
	dst = append(dst, laneVersion, byte(h.class))
	dst = append(dst, h.instance[:]...)
	return binary.BigEndian.AppendUint64(dst, h.epoch)
}

// readHeader reads exactly a header. The error matches ErrProtocol where the
// bytes are not one.
func readHeader(r io.Reader) (h header, err error) {
	var b [headerLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	if err := checkVersion(b[0]); err != nil {
		return header{}, err
	}
	if h.class = Class(b[1]); h.class >= NumClasses {
		return header{}, fmt.Errorf("%w: lane of class %d: %w", ErrProtocol, b[1], ReasonProtocol)
	}
	copy(h.instance[:], b[2:])
	h.epoch = binary.BigEndian.Uint64(b[10:])
	return h, nil
}

// checkVersion returns an error that matches ErrProtocol and ReasonVersion unless
// the other end has the same form of headers.
func checkVersion(there byte) error {
	if there == laneVersion {
		return nil
	}
	older := "this one"
	if there < laneVersion {
		older = "the other one"
	}
	return fmt.Errorf("%w: %w: lanes of version %d here, %d there; upgrade %s", ErrProtocol, ReasonVersion, laneVersion, there, older)
}
