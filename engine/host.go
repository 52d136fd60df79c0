package engine

import (
	"errors"
	"net/netip"
	"strings"

	"sheaf/netstack"
	"sheaf/tunnel"
)

// fallbackMetric returns the metric of a gateway's fallback routes: worse than what
// others use, and with 24 bits of its fingerprint, so that each knows its own.
func fallbackMetric(f tunnel.Fingerprint) uint32 {
	return 0x7F<<24 | uint32(f[0])<<16 | uint32(f[1])<<8 | uint32(f[2])
}

// fallback returns the metric of the device's fallback routes, 0 for none.
func (g *Gateway) fallback() uint32 {
	if g.cfg.TUN.Fallback == fallbackRoute {
		return 0
	}
	return fallbackMetric(g.fingerprint)
}

// dropStale removes the fallback routes that an earlier run left behind and that are
// nobody's now.
func (g *Gateway) dropStale() error {
	if g.device == nil {
		return nil
	}
	var keep []netip.Prefix
	if g.fallback() != 0 {
		keep = g.device.Routes()
	}
	_, err := netstack.DropFallbacks(fallbackMetric(g.fingerprint), keep)
	return err
}

// Refuse adds the fallback routes of a gateway with this configuration before it
// runs, so that nothing leaves in the clear between the host's boot and its start, and
// returns their prefixes: none where there is no device, or fallback is "route".
func Refuse(cfg *Config) ([]netip.Prefix, error) {
	if cfg.TUN == nil || cfg.TUN.Fallback == fallbackRoute {
		return nil, nil
	}
	key, err := tunnel.LoadKey(cfg.Key)
	if err != nil {
		return nil, err
	}
	var all []netip.Prefix
	for i := range cfg.Peers {
		all = append(all, cfg.Peers[i].Allowed.list()...)
	}
	return all, netstack.PutFallbacks(fallbackMetric(key.Fingerprint()), all)
}

// Down removes what a gateway with this configuration leaves on the host when it
// ends: its fallback routes, whose prefixes it returns. While the gateway runs it puts
// them back.
func Down(cfg *Config) ([]netip.Prefix, error) {
	key, err := tunnel.LoadKey(cfg.Key)
	if err != nil {
		return nil, err
	}
	return netstack.DropFallbacks(fallbackMetric(key.Fingerprint()), nil)
}

// restore puts the device's addresses and routes back where they are missing.
func (g *Gateway) restore() error {
	if g.device == nil {
		return nil
	}
	_, err := g.device.Restore()
	return err
}

// repaired logs what was done about a change of the host's network from outside.
func (g *Gateway) repaired(r netstack.Repair) {
	var what []string
	for _, f := range r.Mended {
		what = append(what, f.What)
	}
	if len(what) > 0 {
		g.log.Warn("somebody changed this host's network, and it was put back", "device", g.device.Name(), "what", strings.Join(what, ", "), "next_not_before", r.Pause)
	}
	if r.Err != nil && !errors.Is(r.Err, netstack.ErrGone) { // Run returns that
		g.log.Error("this host's network was changed, and cannot be put back", "err", r.Err)
	}
}

// faults returns what is not as it should be with the device, and with each route.
func (g *Gateway) faults() (device []string, routes map[netip.Prefix]string) {
	routes = make(map[netip.Prefix]string)
	if g.device == nil {
		return nil, routes
	}
	all, err := g.device.Faults()
	if err != nil {
		device = append(device, err.Error())
	}
	for _, f := range all {
		switch {
		case !f.Route.IsValid():
			device = append(device, f.What)
		case routes[f.Route] == "":
			routes[f.Route] = f.What
		default:
			routes[f.Route] += "; " + f.What
		}
	}
	return device, routes
}

// inspectedRoutes returns the routes with what is wrong with each on this host.
func (g *Gateway) inspectedRoutes() []Route {
	_, faults := g.faults()
	routes := g.Routes()
	for i := range routes {
		routes[i].Fault = faults[routes[i].Prefix]
	}
	return routes
}
