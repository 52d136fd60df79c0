package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Where a port comes from.
const (
	fromConfiguration = "configuration" // a [[vm.port]]
	fromDirectory     = "directory"     // a file in [vm]'s directory
	fromCommand       = "command"       // the control socket; until the gateway ends or reads its configuration anew
)

// ErrPort tells that a port cannot be added or removed. The message says why.
var ErrPort = errors.New("port")

// ports are the ends of guests that are plugged in. They come and go while the gateway
// runs, each by itself: what is wrong with one, or with its guest, harms no other.
type ports struct {
	opener opener
	log    *slog.Logger
	stack  atomic.Pointer[inStack] // replaced as a whole

	mu      sync.Mutex // guards all below
	taken   *takenPorts
	plugged map[string]*port
	totals  totals
	files   *portFiles // nil without a directory
	closed  bool
}

// inStack are the guests without a NIC, whose connections are in the userspace stack.
type inStack struct {
	has map[netip.Addr]bool
	own map[string][]netip.Addr // by the ports' names
}

// A port is plugged in.
type port struct {
	VMPort
	from string
	end  end
}

// newPorts returns no ports.
func newPorts(cfg *Config, o opener) *ports {
	p := &ports{
		opener: o, log: o.log,
		taken: newTakenPorts(cfg), plugged: make(map[string]*port), totals: newTotals(),
	}
	p.stack.Store(&inStack{})
	if cfg.VM.Directory != "" {
		p.files = newPortFiles(cfg.VM.Directory)
	}
	return p
}

// put plugs a port in, or in place of one of the same name and source. A port that is there
// as it is asked for stays untouched; one that was added by command then is the other
// source's. The lock is held.
func (p *ports) put(want *VMPort, from string) error {
	old := p.plugged[want.Name]
	switch {
	case p.closed:
		return fmt.Errorf("%w %q: the gateway ends", ErrPort, want.Name)
	case old == nil:
		return p.plug(want, from)
	case old.Same(want) && (old.from == from || old.from == fromCommand || from == fromCommand):
		if from != fromCommand {
			old.from = from
		}
		return nil
	case from == fromCommand:
		return fmt.Errorf("%w %q is there already, at %s; remove it first", ErrPort, want.Name, old.At)
	case old.from != from && old.from != fromCommand:
		return fmt.Errorf("%w %q is there already, of the %s", ErrPort, want.Name, old.from)
	}
	p.taken.remove(&old.VMPort)
	if err := p.taken.add(want); err != nil {
		_ = p.taken.add(&old.VMPort) // it was there
		return fmt.Errorf("%w %q: %w", ErrPort, want.Name, err)
	}
	p.taken.remove(want)
	_ = p.taken.add(&old.VMPort)
	p.unplug(old)
	if err := p.plug(want, from); err != nil {
		return errors.Join(err, p.plug(&old.VMPort, old.from))
	}
	return nil
}

// plug plugs a port in. The lock is held.
func (p *ports) plug(want *VMPort, from string) error {
	if err := p.taken.add(want); err != nil {
		return fmt.Errorf("%w %q: %w", ErrPort, want.Name, err)
	}
	e, err := p.opener.open(want)
	if err != nil {
		p.taken.remove(want)
		return fmt.Errorf("%w %q: %w", ErrPort, want.Name, err)
	}
	p.plugged[want.Name] = &port{VMPort: *want, from: from, end: e}
	p.noteStack()
	p.log.Info("a guest's port is plugged in", "port", want.Name, "at", want.At, "by", from)
	return nil
}

// unplug takes a port out. Its counters are kept by its name. The lock is held.
func (p *ports) unplug(old *port) {
	if err := old.end.close(); err != nil && !closed(err) {
		p.log.Warn("a guest's port did not end in order", "port", old.Name, "err", err)
	}
	p.totals.keep(old.Name, old.end.status())
	p.taken.remove(&old.VMPort)
	delete(p.plugged, old.Name)
	p.noteStack()
	p.log.Info("a guest's port is unplugged", "port", old.Name, "at", old.At)
}

// noteStack notes the guests in the userspace stack.
func (p *ports) noteStack() {
	all := inStack{make(map[netip.Addr]bool), make(map[string][]netip.Addr)}
	for name, one := range p.plugged {
		if one.Kind() != KindVsock {
			continue
		}
		all.own[name] = one.Addresses()
		for _, a := range all.own[name] {
			all.has[a] = true
		}
	}
	p.stack.Store(&all)
}

// inStack tells whether an address is that of a guest in the userspace stack.
func (p *ports) inStack(a netip.Addr) bool { return p.stack.Load().has[a] }

// source returns the address of a family that a guest in the userspace stack connects from,
// one that is not valid where it has none.
func (p *ports) source(name string, is4 bool) netip.Addr {
	for _, a := range p.stack.Load().own[name] {
		if a.Is4() == is4 {
			return a
		}
	}
	return netip.Addr{}
}

// set makes the ports of a source those that are wanted. What cannot be plugged in is told
// by the error, and keeps no other from it.
func (p *ports) set(from string, want []VMPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, old := range p.sorted() {
		if old.from == from && !slices.ContainsFunc(want, func(w VMPort) bool { return w.Name == old.Name }) {
			p.unplug(old)
		}
	}
	var all error
	for i := range want {
		all = errors.Join(all, p.put(&want[i], from))
	}
	return all
}

// add plugs a port in by command.
func (p *ports) add(want *VMPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.put(want, fromCommand)
}

// del takes a port out by command, whatever its source.
func (p *ports) del(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.plugged[name]
	if old == nil {
		return fmt.Errorf("%w %q is not there", ErrPort, name)
	}
	p.unplug(old)
	return nil
}

// sorted returns the ports by their names. The lock is held.
func (p *ports) sorted() []*port {
	all := make([]*port, 0, len(p.plugged))
	for _, one := range p.plugged {
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b *port) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// close takes all ports out; none can be plugged in any more.
func (p *ports) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, old := range p.sorted() {
		p.unplug(old)
	}
	return nil
}

// Same tells whether two ports are configured alike.
func (a *VMPort) Same(b *VMPort) bool {
	return a.Name == b.Name && a.At == b.At && a.Dial == b.Dial && a.MAC == b.MAC && a.CID == b.CID && slices.Equal(a.Address, b.Address)
}

// errNoGuests tells that the gateway has no [vm].
var errNoGuests = fmt.Errorf("%w: the gateway has no guests: its configuration has no [vm]", ErrPort)

// Ports tells of the guests' ports.
func (g *Gateway) Ports() ([]PortStatus, error) {
	if g.guests == nil {
		return nil, errNoGuests
	}
	return g.guests.ports.status(), nil
}

// AddPort plugs a guest's port in, until the gateway ends or is told to reload. One that is
// there alike is left as it is.
func (g *Gateway) AddPort(p VMPort) error {
	if g.guests == nil {
		return errNoGuests
	}
	return g.guests.ports.add(&p)
}

// DelPort takes a guest's port out. One of the configuration, or of the directory, comes
// back when the gateway is told to reload, or the port's file changes.
func (g *Gateway) DelPort(name string) error {
	if g.guests == nil {
		return errNoGuests
	}
	return g.guests.ports.del(name)
}

// reload makes the ports those of another configuration and of the directory. Those that
// are the same stay untouched.
func (p *ports) reload(want []VMPort) error {
	p.mu.Lock()
	for _, old := range p.sorted() {
		if old.from == fromCommand && !slices.ContainsFunc(want, func(w VMPort) bool { return w.Same(&old.VMPort) }) {
			p.unplug(old)
		}
	}
	if p.files != nil {
		p.files.forget()
	}
	p.mu.Unlock()
	err := p.set(fromConfiguration, want)
	p.lookAtFiles()
	return err
}
