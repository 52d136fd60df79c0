package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
	"golang.org/x/time/rate"

	"sheaf/engine/wire"
	"sheaf/netstack"
	"sheaf/parsers"
	"sheaf/tunnel"
)

// A Port is where packets come from and go to.
type Port interface {
	// Read fills bufs with packets, at least one, and sizes with their lengths.
	Read(bufs [][]byte, sizes []int) (n int, err error)
	// Write takes packets, borrowed for the call.
	Write(packets [][]byte) error
	BatchSize() int
	Close() error
}

// A Gateway joins a port to the peers' lanes.
type Gateway struct {
	cfg         *Config
	log         *slog.Logger
	registry    *parsers.Registry
	fingerprint tunnel.Fingerprint
	tunnel      *tunnel.Tunnel
	port        Port
	device      *netstack.TUN   // the port, where it is a device
	stack       *netstack.Stack // the port, in userspace
	router      *router
	peers       map[string]*peer
	since       time.Time
	instance    [8]byte // random, of this run
	control     net.Listener
	metrics     *http.Server   // nil without
	scrape      net.Listener   // of metrics
	closers     []func() error // undone in reverse

	out        sync.Mutex // of port.Write
	routes     sync.Mutex // of changes to the router's table
	unroutable atomic.Uint64
	malformed  atomic.Uint64 // what the port read that is no IP packet
	replies    *replies      // of ICMP errors; route's
	reply      []byte        // one of them, kept for the next

	undelivered rate.Sometimes // bounds what the log says of packets that the port refuses
}

// A peer is another gateway.
type peer struct {
	name     string
	tunnel   *tunnel.Peer
	lanes    [tunnel.NumClasses]*laneRunner
	mismatch mismatch // of the two ends, if any
	allowed  atomic.Pointer[bart.Lite]
	refused  atomic.Uint64
}

// New returns a Gateway that is set up but does not run yet: it holds the
// device, the addresses and routes, and the sockets. Close gives all of it back.
func New(cfg *Config, log *slog.Logger) (*Gateway, error) {
	g := &Gateway{
		cfg: cfg, log: log, peers: make(map[string]*peer), since: time.Now(),
		replies: newReplies(), undelivered: rate.Sometimes{First: 1, Interval: 10 * time.Second},
	}
	_, _ = rand.Read(g.instance[:]) // never fails
	if err := g.setUp(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *Gateway) setUp() (err error) {
	c := g.cfg
	if g.registry, err = c.registry(); err != nil {
		return err
	}
	key, err := tunnel.LoadKey(c.Key)
	if err != nil {
		return err
	}
	g.fingerprint = key.Fingerprint()
	control := c.Control
	if control == "" {
		control = DefaultControl
	}
	if control != noControl {
		if g.control, err = listenControl(control); err != nil {
			return err
		}
		g.closers = append(g.closers, g.control.Close)
	}
	if c.Metrics != "" {
		if g.metrics, g.scrape, err = g.listenMetrics(c.Metrics); err != nil {
			return err
		}
		g.closers = append(g.closers, g.scrape.Close)
	}
	tc := tunnel.Config{Key: key, Listen: c.Listen, Logger: g.log, DialTimeout: 5 * time.Second, BackoffMax: 5 * time.Second}
	if tc.Carriers, err = c.carriers(); err != nil {
		return err
	}
	for _, p := range c.Peers {
		f, err := tunnel.ParseFingerprint(p.Fingerprint)
		if err != nil {
			return err
		}
		if f == g.fingerprint {
			return fmt.Errorf("[[peer]] %q: the fingerprint is this gateway's own; it needs the peer's", p.Name)
		}
		tc.Peers = append(tc.Peers, tunnel.PeerConfig{Name: p.Name, Fingerprint: f, Endpoint: p.Endpoint})
	}
	if g.tunnel, err = tunnel.New(tc); err != nil {
		return err
	}
	g.closers = append(g.closers, g.tunnel.Close)
	if err := g.openPort(); err != nil {
		return err
	}
	g.router = newRouter(g.registry)
	for i := range c.Peers {
		if err := g.addPeer(&c.Peers[i]); err != nil {
			return err
		}
	}
	return g.dropStale()
}

// openPort opens the device or the userspace stack.
func (g *Gateway) openPort() (err error) {
	c := g.cfg
	if c.TUN != nil {
		g.device, err = netstack.OpenTUN(netstack.TUNConfig{
			Name: c.TUN.Name, Addresses: c.TUN.Address.list(), MTU: c.TUN.MTU,
			Offload: c.TUN.Offload == nil || *c.TUN.Offload, Fallback: g.fallback(),
		})
		if err != nil {
			return err
		}
		g.port = g.device
		g.closers = append(g.closers, g.device.Close)
		return nil
	}
	if g.stack, err = netstack.NewStack(netstack.StackConfig{Addresses: c.Address.list()}); err != nil {
		return err
	}
	g.port = g.stack
	g.closers = append(g.closers, g.stack.Close)
	if t := c.Terminate; t != nil {
		servers, err := t.servers()
		if err != nil {
			return err
		}
		_, err = g.stack.Terminate(netstack.TerminateConfig{
			Prefixes: t.Prefixes.list(), ProxyProtocol: t.Proxy,
			Map: func(a netip.AddrPort) netip.AddrPort {
				if to, ok := servers[a]; ok {
					return to
				}
				return a
			},
		})
		if err != nil {
			return fmt.Errorf("[terminate]: %w", err)
		}
	}
	for _, f := range c.Forward {
		to, err := netip.ParseAddrPort(f.To)
		if err != nil {
			return fmt.Errorf("[[forward]]: to = %q: expected ADDR:PORT", f.To)
		}
		_, err = g.stack.Forward(context.Background(), netstack.ForwardConfig{
			From: f.From, To: to, Changed: func(err error) { g.noteForward(f, err) },
		})
		if err != nil {
			return fmt.Errorf("[[forward]]: %w", err)
		}
	}
	return nil
}

// noteForward logs that a forward's server answers or, with err, does not.
func (g *Gateway) noteForward(f Forward, err error) {
	if err != nil {
		g.log.Warn("server does not answer, connections are refused until it does", "from", f.From, "to", f.To, "err", err)
		return
	}
	g.log.Info("server answers", "from", f.From, "to", f.To)
}

func (g *Gateway) addPeer(pc *Peer) error {
	lane, err := g.cfg.lane(g.registry)
	if err != nil {
		return err
	}
	p := &peer{name: pc.Name, tunnel: g.tunnel.Peer(pc.Name)}
	p.allowed.Store(&bart.Lite{})
	limit := g.cfg.Queue.Bytes
	if limit == 0 {
		limit = 4 << 20
	}
	hole := &blackHole{}
	for i := range p.lanes {
		class := tunnel.Class(i)
		l := &laneRunner{
			peer: p.name, class: class, lane: lane, mismatch: &p.mismatch,
			accept:    func(packets [][]byte) { g.deliver(p, packets) },
			stall:     g.cfg.Stall.or(2 * time.Second),
			clock:     func() time.Duration { return time.Since(g.since) },
			queue:     newQueue(limit, g.cfg.Queue.Time.or(500*time.Millisecond)),
			blackHole: hole,
			log:       g.log,
			self:      ownHello(g.instance, g.stack != nil),
		}
		if g.stack != nil {
			l.opened = g.stack.Retry
		}
		l.open = func(ctx context.Context) (stream, error) {
			s, err := p.tunnel.Lane(ctx, class)
			if err != nil {
				return nil, err
			}
			l.overhead.Store(int64(s.Overhead()))
			return s, nil
		}
		p.lanes[i] = l
	}
	g.peers[p.name] = p
	for _, a := range pc.Allowed {
		if err := g.AddRoute(Route{Prefix: a.Prefix, Peer: p.name}); err != nil {
			return err
		}
	}
	return nil
}

// Run carries packets until ctx ends or the port fails.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, p := range g.peers {
		for _, l := range p.lanes {
			all.Go(func() { l.run(ctx) })
		}
	}
	if g.control != nil {
		server := &http.Server{Handler: g.controlHandler(), ReadHeaderTimeout: 10 * time.Second}
		all.Go(func() { _ = server.Serve(g.control) })
		defer server.Close()
	}
	if g.metrics != nil {
		all.Go(func() { _ = g.metrics.Serve(g.scrape) })
		defer g.metrics.Close()
	}
	if g.device != nil {
		all.Go(func() { g.device.Keep(g.repaired) })
	}
	stop := context.AfterFunc(ctx, func() { _ = g.port.Close() })
	defer stop()
	err := g.pump()
	stopped := ctx.Err() != nil
	cancel()
	_ = g.port.Close()
	_ = g.tunnel.Close()
	if g.control != nil {
		_ = g.control.Close()
	}
	if g.scrape != nil {
		_ = g.scrape.Close()
	}
	all.Wait()
	if stopped && closed(err) {
		return nil
	}
	return err
}

// closed tells whether err is that of something closed, and no fault.
func closed(err error) bool {
	return errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrClosed)
}

// Close undoes all that New did. It may be called more than once.
func (g *Gateway) Close() error {
	var all error
	for _, c := range slices.Backward(g.closers) {
		if err := c(); err != nil && !closed(err) {
			all = errors.Join(all, err)
		}
	}
	g.closers = nil
	return all
}

// pump reads the port until it fails.
func (g *Gateway) pump() error {
	n := g.port.BatchSize()
	bufs, sizes := make([][]byte, n), make([]int, n)
	for i := range bufs {
		bufs[i] = make([]byte, wire.MaxPacket)
	}
	for {
		got, err := g.port.Read(bufs, sizes)
		now := time.Since(g.since)
		for i := range got {
			g.route(now, bufs[i][:sizes[i]])
		}
		if err != nil {
			return fmt.Errorf("read packets: %w", err)
		}
	}
}

// route queues a packet, borrowed for the call, for its lane.
func (g *Gateway) route(now time.Duration, packet []byte) {
	_, dst, ok := addresses(packet)
	if !ok {
		g.malformed.Add(1)
		return
	}
	p := g.router.to(dst)
	if p == nil {
		g.unroutable.Add(1)
		g.refuse(now, packet)
		return
	}
	l := p.lanes[g.router.class(packet)]
	if l.health.away(now) > l.stall {
		g.refuse(now, packet)
		return
	}
	l.queue.put(now, packet)
}

// refuse answers a packet that cannot be carried as a router would.
func (g *Gateway) refuse(now time.Duration, packet []byte) {
	// As from where the packet was going: the kernel takes no packet from its own
	// addresses that comes from outside.
	_, from, ok := addresses(packet)
	if !ok || !g.replies.allow(now, packet) {
		return
	}
	if b := netstack.AppendUnreachable(g.reply[:0], packet, netstack.NoRoute, from); b != nil {
		g.reply = b
		g.out.Lock()
		_ = g.port.Write([][]byte{b})
		g.out.Unlock()
	}
}

// deliver hands out packets that a peer sent, if it may send them.
func (g *Gateway) deliver(p *peer, packets [][]byte) {
	allowed := p.allowed.Load()
	keep := packets[:0]
	for _, b := range packets {
		src, _, ok := addresses(b)
		if !ok || !allowed.Contains(src) && !g.router.reports(p, b) {
			p.refused.Add(1)
			continue
		}
		keep = append(keep, b)
	}
	if len(keep) == 0 {
		return
	}
	g.out.Lock()
	err := g.port.Write(keep)
	g.out.Unlock()
	if err != nil && !closed(err) {
		g.undelivered.Do(func() { g.log.Warn("packets not delivered", "peer", p.name, "packets", len(keep), "err", err) })
	}
}

// AddRoute routes a prefix to a peer, which may then also send from it.
func (g *Gateway) AddRoute(r Route) error {
	g.routes.Lock()
	defer g.routes.Unlock()
	p := g.peers[r.Peer]
	switch {
	case p == nil:
		return fmt.Errorf("no peer %q; there are %s", r.Peer, strings.Join(g.peerNames(), ", "))
	case !r.Prefix.IsValid() || r.Prefix != r.Prefix.Masked():
		return fmt.Errorf("%v is no prefix like 10.2.0.0/24", r.Prefix)
	}
	table := g.router.table.Load()
	if other, ok := table.Get(r.Prefix); ok {
		if other == p {
			return g.restore()
		}
		return fmt.Errorf("%v already lies behind peer %q", r.Prefix, other.name)
	}
	if g.device != nil {
		if err := g.device.AddRoute(r.Prefix); err != nil {
			return err
		}
	}
	g.router.table.Store(table.InsertPersist(r.Prefix, p))
	p.allowed.Store(p.allowed.Load().InsertPersist(r.Prefix))
	return nil
}

// DelRoute ends the route of a prefix.
func (g *Gateway) DelRoute(r Route) error {
	g.routes.Lock()
	defer g.routes.Unlock()
	table := g.router.table.Load()
	p, ok := table.Get(r.Prefix)
	if !ok || r.Peer != "" && r.Peer != p.name {
		return fmt.Errorf("%v is not routed to peer %q", r.Prefix, r.Peer)
	}
	if g.device != nil {
		if err := g.device.DelRoute(r.Prefix); err != nil {
			return err
		}
	}
	g.router.table.Store(table.DeletePersist(r.Prefix))
	p.allowed.Store(p.allowed.Load().DeletePersist(r.Prefix))
	return nil
}

// Routes returns the routes in the order of their prefixes.
func (g *Gateway) Routes() []Route {
	routes := []Route{}
	for prefix, p := range g.router.table.Load().AllSorted() {
		routes = append(routes, Route{Prefix: prefix, Peer: p.name})
	}
	return routes
}

func (g *Gateway) peerNames() []string {
	var names []string
	for _, p := range g.sortedPeers() {
		names = append(names, p.name)
	}
	return names
}

func (g *Gateway) sortedPeers() []*peer {
	var all []*peer
	for _, p := range g.peers {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *peer) int { return strings.Compare(a.name, b.name) })
	return all
}

// Addr returns the address on which the gateway listens for peers.
func (g *Gateway) Addr() net.Addr { return g.tunnel.Addr() }
