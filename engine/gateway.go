package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gaissmai/bart"
	"golang.org/x/time/rate"

	"sheaf/netstack"
	"sheaf/netstack/vsock"
	"sheaf/parsers"
	"sheaf/tunnel"
)

// A Port is where IP packets come from and go to: a netstack.TUN, netstack.Stack or
// firsthop.Router.
// One goroutine may read while others write.
type Port interface {
	// Read waits until there is a packet, fills bufs[i][:sizes[i]] for i < n and
	// returns n. bufs and sizes have BatchSize elements, each of bufs room for the
	// longest packet; they are borrowed until Read returns. After Close the error is
	// or wraps os.ErrClosed. Any other error means that the port is of no more use.
	Read(bufs [][]byte, sizes []int) (n int, err error)

	// Write hands packets on, in order, and waits where it must. They are borrowed
	// until Write returns and not modified. A packet that is refused does not hold
	// up those after it; the error is then that of the first one refused. After
	// Close the error is or wraps os.ErrClosed.
	Write(packets [][]byte) error

	// BatchSize is the greatest n that Read returns, and the best number of packets
	// for a Write. It does not change.
	BatchSize() int

	// Close ends the port; a Read that waits returns.
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
	fronts      []*front        // TLS servers that the gateway is itself
	aside       *aside          // where they are beside the device; nil without
	guests      *guests         // virtual machines, alone or beside the port; nil without
	vsock       *vsock.Host     // sockets of guests without a NIC; nil without a stack
	router      *router
	secrets     *secrets // of TLS connections; nil without [[tls]]
	peers       map[string]*peer
	since       time.Time
	instance    [8]byte // random, of this run
	control     net.Listener
	metrics     *http.Server   // nil without
	scrape      net.Listener   // of metrics
	closers     []func() error // undone in reverse

	in         sync.Mutex // of route
	out        sync.Mutex // of port.Write
	routes     sync.Mutex // of changes to the router's table
	unroutable atomic.Uint64
	malformed  atomic.Uint64 // what the port read that is no IP packet
	replies    *replies      // of ICMP errors; route's
	reply      []byte        // one of them, kept for the next
	filled     []*laneRunner // lanes that packets of this read go to; route's
	crossing   [][]byte      // packets of this read that go to another port; route's

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
	for _, f := range g.fronts {
		all.Go(func() { f.credentials.Watch(ctx) })
	}
	if g.aside != nil {
		all.Go(func() { _ = g.pump(g.aside, fromHost) }) // until it is closed
	}
	from := fromHost
	if n := g.guests; n != nil {
		all.Go(func() { n.ports.watch(ctx) })
		if n.beside {
			all.Go(func() { _ = g.pump(n.router, fromGuests) }) // until it is closed
		} else {
			from = fromGuests
		}
	}
	stop := context.AfterFunc(ctx, g.closePorts)
	defer stop()
	err := g.pump(g.port, from)
	stopped := ctx.Err() != nil
	cancel()
	g.closePorts()
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

// closePorts ends where packets come from. Connections that end in this process are reset,
// which somebody has to pump.
func (g *Gateway) closePorts() {
	if g.aside != nil {
		_ = g.aside.Close()
	}
	if g.guests != nil {
		_ = g.guests.router.Close()
	}
	_ = g.port.Close()
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

// Describe says in a line what the gateway is.
func (g *Gateway) Describe() string {
	var parts []string
	if g.device != nil {
		parts = append(parts, "device "+g.device.Name())
	}
	if a := g.Addr(); a != nil {
		parts = append(parts, "listening on "+a.String())
	}
	if g.guests != nil {
		parts = append(parts, g.guests.describe())
	}
	for _, p := range g.sortedPeers() {
		n := 0
		for _, r := range g.Routes() {
			if r.Peer == p.name {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("peer %s with %d routes", p.name, n))
	}
	return strings.Join(parts, ", ")
}

// Addr returns the address on which the gateway listens for peers.
func (g *Gateway) Addr() net.Addr { return g.tunnel.Addr() }
