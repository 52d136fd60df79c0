package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/gaissmai/bart"

	"sheaf/engine/aggregate"
	"sheaf/engine/aggregate/seal"
	"sheaf/netstack"
	"sheaf/tunnel"
)

// What a key that is not written in the configuration means, beside the defaults of
// the packages below.
const (
	// defaultStall is how long nothing gets through before an epoch ends. Chosen, not
	// measured: three round trips by satellite (600 ms), so that a loss and its repair
	// fit in.
	defaultStall = 2 * time.Second
	// The queue before the encoder. Chosen, not measured: what waits for longer has
	// most likely been sent again by its host (Linux does after 200 ms and a round
	// trip); 4 MiB are 67 Mbit/s for as long.
	defaultQueueBytes = 4 << 20
	defaultQueueTime  = 500 * time.Millisecond
	// maxConnections is how many TLS connections of a lane are opened: one for each
	// context that there can be, by default. A connection takes about 4 kB.
	maxConnections = 1 << 17
	// An attempt to reach a peer, and the pause after many in vain: less than the
	// tunnel's own, since hosts wait whose connections a gateway carries.
	dialTimeout = 5 * time.Second
	backoffMax  = 5 * time.Second
)

// setUp takes hold of what the gateway needs, in this order: what can fail for a
// mistake in the configuration first, then the host's network, whose changes others
// would notice.
func (g *Gateway) setUp() (err error) {
	if g.registry, err = g.cfg.registry(); err != nil {
		return err
	}
	key, err := tunnel.LoadKey(g.cfg.Key)
	if err != nil {
		return err
	}
	g.fingerprint = key.Fingerprint()
	if err := g.openServers(); err != nil {
		return err
	}
	if g.secrets, err = openSecrets(g.cfg.TLS, g.log); err != nil {
		return err
	}
	g.closers = append(g.closers, g.secrets.Close)
	if g.fronts, err = openFronts(g.cfg.TLS, g.secrets.writer, g.log); err != nil {
		return err
	}
	if err := g.openTunnel(key); err != nil {
		return err
	}
	if err := g.openPort(); err != nil {
		return err
	}
	g.router = newRouter(g.registry)
	if g.secrets != nil {
		for server := range g.secrets.served {
			g.router.brokers[server.Port()] = true // what is opened are messages
		}
	}
	for i := range g.cfg.Peers {
		if err := g.addPeer(&g.cfg.Peers[i]); err != nil {
			return err
		}
	}
	return g.dropStale()
}

// openServers opens the control socket and the address for metrics.
func (g *Gateway) openServers() (err error) {
	control := g.cfg.Control
	if control == "" {
		control = DefaultControl
	}
	if control != noControl {
		if g.control, err = listenControl(control); err != nil {
			return err
		}
		g.closers = append(g.closers, g.control.Close)
	}
	if g.cfg.Metrics != "" {
		if g.metrics, g.scrape, err = g.listenMetrics(g.cfg.Metrics); err != nil {
			return err
		}
		g.closers = append(g.closers, g.scrape.Close)
	}
	return nil
}

// openTunnel listens for peers, and is ready to call them.
func (g *Gateway) openTunnel(key tunnel.Key) (err error) {
	tc := tunnel.Config{Key: key, Listen: g.cfg.Listen, Logger: g.log, DialTimeout: dialTimeout, BackoffMax: backoffMax}
	if tc.Carriers, err = g.cfg.carriers(); err != nil {
		return err
	}
	for _, p := range g.cfg.Peers {
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
	return nil
}

// openPort opens the device or the userspace stack, or, where it is alone, the router of
// guests.
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
		return errors.Join(g.openAside(), g.openGuests())
	}
	if len(c.Forward) == 0 && c.Terminate == nil {
		return g.openGuests()
	}
	g.openVsock()
	if g.stack, err = netstack.NewStack(netstack.StackConfig{Addresses: c.Address.list()}); err != nil {
		return err
	}
	g.port = g.stack
	g.closers = append(g.closers, g.stack.Close)
	if err := g.openGuests(); err != nil {
		return err
	}
	if err := g.terminate(c.Terminate); err != nil {
		return err
	}
	for _, f := range c.Forward {
		if err := g.forward(f); err != nil {
			return err
		}
	}
	return nil
}

// openAside opens the stack beside the device, where the gateway is a TLS server.
func (g *Gateway) openAside() (err error) {
	if len(g.fronts) == 0 {
		return nil
	}
	if g.aside, err = openAside(fronts(g.fronts), g.cfg.TUN.MTU); err != nil {
		return fmt.Errorf("[[tls]]: %w", err)
	}
	g.closers = append(g.closers, g.aside.Close)
	return nil
}

// terminate has connections to the addresses of [terminate] end in the stack; t is
// nil where there is no such table.
func (g *Gateway) terminate(t *Terminate) error {
	if t == nil {
		return nil
	}
	servers, sockets, err := t.servers()
	if err != nil {
		return err
	}
	_, err = g.stack.Terminate(netstack.TerminateConfig{
		Prefixes: t.Prefixes.list(), ProxyProtocol: t.Proxy, TLS: fronts(g.fronts), Via: g.via(sockets),
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
	return nil
}

// forward opens the local listener of a [[forward]].
func (g *Gateway) forward(f Forward) error {
	to, err := netip.ParseAddrPort(f.To)
	if err != nil {
		return fmt.Errorf("[[forward]]: to = %q: expected ADDR:PORT", f.To)
	}
	cfg := netstack.ForwardConfig{From: f.From, To: to, Changed: func(err error) { g.noteForward(f, err) }}
	switch from, ok, err := f.vsockFrom(); {
	case err != nil:
		return fmt.Errorf("[[forward]]: %w", err)
	case ok:
		g.listenVsock(&cfg, from)
	}
	if _, err = g.stack.Forward(context.Background(), cfg); err != nil {
		return fmt.Errorf("[[forward]]: %w", err)
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

// addPeer makes the lanes of a [[peer]], and its routes.
func (g *Gateway) addPeer(pc *Peer) error {
	cfg, err := g.cfg.lane(g.registry)
	if err != nil {
		return err
	}
	p := &peer{name: pc.Name, tunnel: g.tunnel.Peer(pc.Name)}
	p.allowed.Store(&bart.Lite{})
	hole := &blackHole{}
	for i := range p.lanes {
		p.lanes[i] = g.newLane(p, tunnel.Class(i), cfg, hole)
	}
	g.peers[p.name] = p
	for _, a := range pc.Allowed {
		if err := g.AddRoute(Route{Prefix: a.Prefix, Peer: p.name}); err != nil {
			return err
		}
	}
	return nil
}

// newLane returns the runner of a peer's lane; hole is shared by all of the peer's.
func (g *Gateway) newLane(p *peer, class tunnel.Class, cfg aggregate.Config, hole *blackHole) *laneRunner {
	limit := g.cfg.Queue.Bytes
	if limit == 0 {
		limit = defaultQueueBytes
	}
	l := &laneRunner{
		peer: p.name, class: class, lane: cfg, mismatch: &p.mismatch,
		accept:    func(packets [][]byte) { g.deliver(p, packets) },
		stall:     g.cfg.Stall.or(defaultStall),
		clock:     func() time.Duration { return time.Since(g.since) },
		queue:     newQueue(limit, g.cfg.Queue.Time.or(defaultQueueTime)),
		blackHole: hole,
		log:       g.log,
		self:      ownHello(g.instance, g.stack != nil && g.guests == nil),
	}
	if g.stack != nil {
		l.opened = g.stack.Retry
	}
	if c := g.secrets.config(); c != nil {
		c.Trusted = func(from netip.Addr) bool { return p.allowed.Load().Contains(from) }
		l.tls = seal.NewTable(*c, maxConnections)
		l.self.Seals = true
	}
	l.open = func(ctx context.Context) (stream, error) {
		s, err := p.tunnel.Lane(ctx, class)
		if err != nil {
			return nil, err
		}
		l.overhead.Store(int64(s.Overhead()))
		return s, nil
	}
	return l
}
