package firsthop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gaissmai/bart"
	"golang.org/x/time/rate"

	"sheaf/netstack"
	"sheaf/netstack/link"
)

const (
	batch    = 64   // packets a Read returns at most, as of a netstack.Stack
	maxPorts = 1024 // more guests than a host runs; each may cost queueMemory, and what its link reads into
	maxNames = 4096 // whose counters and lease are kept while they are unplugged
	minMTU   = 576  // bytes, that each host takes (RFC 791 section 3.1)
	minMTU6  = 1280 // bytes, RFC 8200 section 5

	outsideErrors = 1000 // ICMP errors a second, and at once, to what writes to the Router
	outsideQueue  = 64   // answers to it that wait for a Read; more are dropped, as asking again is cheap
)

// A Config says what a Router is. The zero value but for Addresses is ready for use.
type Config struct {
	Addresses []netip.Prefix   // the router's own with the length of the guests' prefixes, at most one IPv4 and one IPv6
	MTU       int              // bytes of the guests' IP packets, 1280 (576 without IPv6) to link.MaxMTU; 0 is netstack.DefaultMTU
	DNS       []netip.AddrPort // resolvers that queries to the router go to, the first that answers; none: no DNS
	Between   bool             // guests reach one another
	Log       *slog.Logger     // nil: none
}

// A PortConfig says who the guest behind a port is. Of a family that Addresses leaves out
// it has what it is leased (IPv4) or claims (IPv6).
type PortConfig struct {
	MAC       net.HardwareAddr // nil: that of its first frame, until it is unplugged
	Addresses []netip.Addr     // within the router's prefixes; nobody else's
}

// A PortStatus tells of a port and its guest.
type PortStatus struct {
	Name      string       `json:"name"`
	MAC       string       `json:"mac,omitempty"`       // "" while it is not known
	Addresses []netip.Addr `json:"addresses,omitempty"` // what the guest may send from, beside link-local ones
	Link      link.Status  `json:"link"`
	Counters  Counters     `json:"counters"`
}

// A Router joins guests to a gateway: an engine.Port whose packets are theirs. Its methods
// may be called at the same time, except that one goroutine at a time reads.
type Router struct {
	prefix4, prefix6 netip.Prefix // with the router's own address; not valid without
	mtu              int
	between          bool
	log              *slog.Logger
	dns              *relay // nil without

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	all    sync.WaitGroup

	table   atomic.Pointer[bart.Table[*target]] // replaced as a whole, under mu
	handoff chan *port                          // ports with packets to be read, each at most once
	answers chan []byte                         // of the router, to be read
	errors  *rate.Limiter                       // of ICMP among answers
	reading reading

	mu      sync.Mutex // guards what follows, and all of a port that says so
	closed  bool
	ports   map[string]*port
	macs    map[[6]byte]*port
	names   map[string]*record
	leased  map[netip.Addr]*record // what unplugged ports had
	unplugs uint64
}

// reading is what a Read has begun and the next one goes on with.
type reading struct {
	port *port
	next int // of its batch
}

// A record is what is kept of a name.
type record struct {
	name      string
	count     counters
	lease     netip.Addr // the last one
	unplugged uint64     // a number that grows with each; 0 while it is plugged in
}

// New returns a Router without ports. Close ends it.
func New(cfg Config) (*Router, error) {
	r := &Router{
		mtu: cfg.MTU, between: cfg.Between, log: cfg.Log,
		handoff: make(chan *port, maxPorts), answers: make(chan []byte, outsideQueue),
		errors: rate.NewLimiter(outsideErrors, outsideErrors),
		ports:  make(map[string]*port), macs: make(map[[6]byte]*port), names: make(map[string]*record), leased: make(map[netip.Addr]*record),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if err := r.setAddresses(cfg.Addresses); err != nil {
		return nil, err
	}
	least := minMTU
	if r.prefix6.IsValid() {
		least = minMTU6
	}
	if r.mtu == 0 {
		r.mtu = netstack.DefaultMTU
	}
	if r.mtu < least || r.mtu > link.MaxMTU {
		return nil, fmt.Errorf("MTU of guests, %d: %w: give %d to %d bytes", cfg.MTU, ErrMTU, least, link.MaxMTU)
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	if len(cfg.DNS) > 0 {
		r.dns = newRelay(cfg.DNS)
	}
	r.table.Store(r.fixedTargets())
	if r.prefix6.IsValid() {
		r.all.Go(r.advertise)
	}
	return r, nil
}

// setAddresses takes the router's own addresses, if they are usable.
func (r *Router) setAddresses(addresses []netip.Prefix) error {
	if len(addresses) == 0 {
		return fmt.Errorf("router of the guests: %w: give its address with the length of their prefix, like 10.1.0.1/24", ErrAddress)
	}
	for _, p := range addresses {
		a, own := p.Addr(), &r.prefix4
		if a.Is6() {
			own = &r.prefix6
		}
		switch {
		case !p.IsValid() || a.Is4In6() || !a.IsGlobalUnicast() || special(a):
			return fmt.Errorf("router of the guests: %s: %w: give one that a host can have, with the length of their prefix, like 10.1.0.1/24", p, ErrAddress)
		case own.IsValid():
			return fmt.Errorf("router of the guests: %s beside %s: %w: give one of each family", p, *own, ErrAddress)
		case a.Is4() && p.Bits() < 31 && (a == p.Masked().Addr() || a == lastOf(p)):
			return fmt.Errorf("router of the guests: %s: %w: it is that of the network, or of broadcast", p, ErrAddress)
		}
		*own = p
	}
	return nil
}

// Plug adds a port, whose name none has: what comes from l is the guest's. The Router
// owns l and closes it, at once where Plug fails.
func (r *Router) Plug(name string, l link.Link, cfg PortConfig) error {
	r.mu.Lock()
	p, err := r.plug(name, l, cfg)
	if err != nil {
		r.mu.Unlock()
		return errors.Join(fmt.Errorf("port %q: %w", name, err), l.Close())
	}
	p.working.Go(p.receive) // before somebody can unplug it, and wait for them
	p.working.Go(p.send)
	r.mu.Unlock()
	p.tell()
	return nil
}

// plug makes the port, which does nothing yet. It is called under mu.
func (r *Router) plug(name string, l link.Link, cfg PortConfig) (*port, error) {
	switch {
	case r.closed:
		return nil, os.ErrClosed
	case name == "":
		return nil, fmt.Errorf("%w: give it one", ErrName)
	case r.ports[name] != nil:
		return nil, fmt.Errorf("%w: give it another name, or take that one out", ErrInUse)
	case len(r.ports) == maxPorts:
		return nil, fmt.Errorf("%w: there are %d", ErrFull, maxPorts)
	}
	if err := r.checkPort(cfg); err != nil {
		return nil, err
	}
	p := newPort(r, name, l)
	p.record = r.recordOf(name)
	p.configured = slices.Clone(cfg.Addresses)
	for _, a := range p.configured {
		if q := r.holder(a); q != nil {
			q.withdraw(a)
		}
		r.assign(a, p)
	}
	if cfg.MAC != nil {
		p.setMAC([6]byte(cfg.MAC))
	}
	p.publish()
	r.ports[name] = p
	return p, nil
}

// recordOf returns what is kept of a name that is plugged in. What has been unplugged for
// the longest is forgotten for a new one. It is called under mu.
func (r *Router) recordOf(name string) *record {
	if old := r.names[name]; old != nil {
		delete(r.leased, old.lease)
		old.unplugged = 0
		return old
	}
	if len(r.names) == maxNames {
		oldest := slices.MinFunc(slices.Collect(maps.Values(r.names)), compareUnplugged)
		delete(r.leased, oldest.lease)
		delete(r.names, oldest.name)
	}
	rec := &record{name: name}
	r.names[name] = rec
	return rec
}

// compareUnplugged puts what has been unplugged for the longest first, and what is plugged
// in last. Of those there are less than maxNames.
func compareUnplugged(a, b *record) int {
	switch {
	case a.unplugged-1 < b.unplugged-1: // 0, plugged in, is the greatest
		return -1
	case a.unplugged-1 > b.unplugged-1:
		return 1
	}
	return 0
}

// Unplug takes a port out and closes its link. A Read that begins after it returns none of
// its guest's packets.
func (r *Router) Unplug(name string) error {
	r.mu.Lock()
	p := r.ports[name]
	if p == nil {
		r.mu.Unlock()
		return fmt.Errorf("port %q: %w", name, ErrUnknown)
	}
	delete(r.ports, name)
	p.out = true
	if p.known {
		delete(r.macs, p.mac)
	}
	for _, a := range p.identity.Load().addresses {
		r.release(a)
	}
	r.unplugs++
	p.record.unplugged = r.unplugs
	if p.lease.IsValid() {
		p.record.lease = p.lease
	}
	if p.record.lease.IsValid() {
		r.leased[p.record.lease] = p.record
	}
	r.mu.Unlock()
	return p.close()
}

// Ports tells of all ports, sorted by name.
func (r *Router) Ports() []PortStatus {
	var all []PortStatus
	for _, p := range r.plugged() {
		all = append(all, p.status())
	}
	return all
}

// plugged returns all ports, sorted by name.
func (r *Router) plugged() []*port {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.ports), func(a, b *port) int { return strings.Compare(a.name, b.name) })
}

// Name returns the name of the port whose guest has an address.
func (r *Router) Name(a netip.Addr) (string, bool) {
	if to, _ := r.table.Load().Lookup(a.Unmap()); to != nil && to.kind == toGuest {
		return to.port.name, true
	}
	return "", false
}

// BatchSize is the greatest number of packets that Read returns.
func (r *Router) BatchSize() int { return batch }

// Close ends the Router: its ports, their links, and Read.
func (r *Router) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	var all error
	for _, p := range r.plugged() {
		if err := r.Unplug(p.name); err != nil && !errors.Is(err, ErrUnknown) {
			all = errors.Join(all, err)
		}
	}
	r.all.Wait()
	return all
}
