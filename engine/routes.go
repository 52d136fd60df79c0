package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// A Route says that a prefix lies behind a peer.
type Route struct {
	Prefix netip.Prefix `json:"prefix"`
	Peer   string       `json:"peer"`            // the name of its [[peer]]
	Fault  string       `json:"fault,omitempty"` // why packets do not go there; told, not asked
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
	case g.guests != nil:
		if err := g.guests.vm.outside(r.Prefix); err != nil {
			return err
		}
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

// Reload makes the routes and guests' ports those of another configuration, without
// touching a lane, or a port that stays. Nothing else can change while a gateway runs:
// where the configurations differ in their peers, or one has guests and the other has not,
// nothing is done and the error says so.
func (g *Gateway) Reload(cfg *Config) error {
	want := make(map[netip.Prefix]string)
	for _, p := range cfg.Peers {
		if g.peers[p.Name] == nil {
			return fmt.Errorf("%w: [[peer]] %q is new: restart the gateway to add or remove peers", ErrConfig, p.Name)
		}
		for _, a := range p.Allowed {
			want[a.Prefix] = p.Name
		}
	}
	if len(cfg.Peers) != len(g.peers) {
		return fmt.Errorf("%w: a [[peer]] is gone: restart the gateway to add or remove peers", ErrConfig)
	}
	if (cfg.VM == nil) != (g.guests == nil) {
		return fmt.Errorf("%w: [vm] is new, or gone: restart the gateway to add or remove it", ErrConfig)
	}
	var all error
	if g.guests != nil {
		all = g.guests.ports.reload(cfg.VM.Ports)
	}
	for _, r := range g.Routes() {
		if want[r.Prefix] != r.Peer {
			all = errors.Join(all, g.DelRoute(r))
		} else {
			delete(want, r.Prefix)
		}
	}
	for prefix, name := range want {
		all = errors.Join(all, g.AddRoute(Route{Prefix: prefix, Peer: name}))
	}
	return all
}
