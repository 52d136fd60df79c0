package engine

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"sheaf/netstack"
	"sheaf/netstack/vsock"
)

// vsockScheme begins addresses of vsock, as those of TCP and unix sockets begin with theirs.
const vsockScheme = "vsock:"

// vsockFrom returns where a [[forward]] listens on vsock; ok is false where it is elsewhere.
func (f *Forward) vsockFrom() (a vsock.Addr, ok bool, err error) {
	if !strings.HasPrefix(f.From, vsockScheme) {
		return a, false, nil
	}
	if a, err = vsock.ParseAddr(f.From); err == nil && (a.Guest != "" || a.CID != 0) {
		err = fmt.Errorf("%q names a guest: expected vsock:PORT, where guests call, or vsock:/PATH:PORT", f.From)
	}
	return a, true, err
}

// needsVsock tells whether the gateway has sockets of vsock.
func (c *Config) needsVsock() bool {
	if len(c.Forward) == 0 && c.Terminate == nil {
		return false
	}
	for i := range c.Forward {
		if strings.HasPrefix(c.Forward[i].From, vsockScheme) {
			return true
		}
	}
	if c.Terminate != nil {
		for _, to := range c.Terminate.Map {
			if strings.HasPrefix(to, vsockScheme) {
				return true
			}
		}
	}
	return c.VM != nil
}

// openVsock opens the host's side of vsock, where something needs it.
func (g *Gateway) openVsock() {
	if !g.cfg.needsVsock() {
		return
	}
	g.vsock = vsock.NewHost(g.log)
	g.closers = append(g.closers, g.vsock.Close)
}

// via returns how servers of [terminate] are reached that have no address.
func (g *Gateway) via(servers map[netip.AddrPort]vsock.Addr) map[netip.AddrPort]func(context.Context) (net.Conn, error) {
	all := make(map[netip.AddrPort]func(context.Context) (net.Conn, error))
	for from, to := range servers {
		all[from] = func(ctx context.Context) (net.Conn, error) { return g.vsock.Dial(ctx, to) }
	}
	return all
}

// listenVsock has a forward listen on vsock. A guest whose port has an address connects
// from that.
func (g *Gateway) listenVsock(cfg *netstack.ForwardConfig, from vsock.Addr) {
	cfg.Listen = func(ctx context.Context) (net.Listener, error) { return g.vsock.Listen(ctx, from) }
	to := cfg.To.Addr()
	cfg.SourceOf = func(remote net.Addr) netip.Addr {
		if a, ok := remote.(vsock.Addr); ok && g.guests != nil {
			return g.guests.ports.source(a.Guest, to.Is4())
		}
		return netip.Addr{}
	}
}

// A socketEnd is the end of a guest without a NIC: its connections are in the userspace
// stack, from the guest's own addresses.
type socketEnd struct {
	name      string
	host      *vsock.Host
	stack     *netstack.Stack
	addresses []netip.Addr
}

// openSocketEnd opens the end of a vhost-user-vsock port.
func openSocketEnd(p *VMPort, host *vsock.Host, stack *netstack.Stack) (end, error) {
	e := &socketEnd{name: p.Name, host: host, stack: stack}
	for _, a := range p.Addresses() {
		if err := stack.AddAddress(a); err != nil {
			e.leave()
			return nil, err
		}
		e.addresses = append(e.addresses, a)
	}
	if err := host.Plug(p.Name, vsock.PortConfig{CID: p.CID, Path: p.Path(), Dial: p.Dial}); err != nil {
		e.leave()
		return nil, err
	}
	return e, nil
}

// leave takes the guest's addresses out of the stack.
func (e *socketEnd) leave() {
	for _, a := range e.addresses {
		_ = e.stack.RemoveAddress(a) // one that it has
	}
}

func (e *socketEnd) status() endStatus {
	s, _ := e.host.Port(e.name)
	return endStatus{s.Status, s.StreamStatus}
}

func (e *socketEnd) close() error {
	err := e.host.Unplug(e.name)
	e.leave()
	return err
}
