package engine

import (
	"errors"
	"log/slog"

	"sheaf/netstack"
	"sheaf/netstack/firsthop"
	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser"
	"sheaf/netstack/vsock"
)

// An end is where a guest's NIC or vsock device ends in the gateway.
type end interface {
	status() endStatus
	close() error
}

// An endStatus tells of an end. Counters are of this end only.
type endStatus struct {
	link.Status
	vsock vsock.StreamStatus // zero of a NIC
}

// A nic is an end behind the router, which owns the link.
type nic struct {
	name   string
	router *firsthop.Router
	link   link.Link
}

func (n *nic) status() endStatus { return endStatus{Status: n.link.Status()} }

// close takes the NIC out of the router, which may have ended, and closed it.
func (n *nic) close() error {
	if err := n.router.Unplug(n.name); err != nil && !errors.Is(err, firsthop.ErrUnknown) {
		return err
	}
	return nil
}

// An opener opens the ends of ports.
type opener struct {
	mtu    int // of NICs; 0 for the default
	router *firsthop.Router
	vsock  *vsock.Host     // nil without a userspace stack
	stack  *netstack.Stack // nil without
	log    *slog.Logger
}

// open opens the end of a port: behind the router where it is a NIC, else in the stack.
func (o *opener) open(p *VMPort) (end, error) {
	if p.Kind() == KindVsock {
		return openSocketEnd(p, o.vsock, o.stack)
	}
	l, err := o.link(p)
	if err != nil {
		return nil, err
	}
	if err := o.router.Plug(p.Name, l, firsthop.PortConfig{MAC: p.HardwareAddr(), Addresses: p.Addresses()}); err != nil {
		return nil, err
	}
	return &nic{p.Name, o.router, l}, nil
}

// link opens the link of a port with a NIC.
func (o *opener) link(p *VMPort) (link.Link, error) {
	switch p.Kind() {
	case KindVhostUser:
		return vhostuser.OpenNIC(vhostuser.NICConfig{Path: p.Path(), Dial: p.Dial, MAC: p.HardwareAddr(), MTU: o.mtu, Log: o.log})
	case KindStream:
		return link.OpenStream(link.Config{Path: p.Path(), Dial: p.Dial})
	case KindDgram:
		return link.OpenDgram(link.Config{Path: p.Path()})
	default: // the other kinds were refused before
		return link.OpenPasst(link.Config{Path: p.Path()})
	}
}
