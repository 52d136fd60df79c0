// Package firsthop is the router that virtual machines see behind their NICs.
package firsthop

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"

	"sheaf/netstack/link"
)

// The errors of New, Plug and Unplug wrap one of these where one fits, and say what to do
// about it.
var (
	ErrAddress = errors.New("not a usable address")
	ErrMAC     = errors.New("not a usable MAC address")
	ErrMTU     = errors.New("MTU out of range")
	ErrName    = errors.New("not a usable name")
	ErrInUse   = errors.New("already in use")
	ErrUnknown = errors.New("no such port")
	ErrFull    = errors.New("too many")
)

// A Config says what a Router is. The zero value but for Addresses is ready for use.
type Config struct {
	Addresses []netip.Prefix   // the router's own with the length of the guests' prefixes, at most one IPv4 and one IPv6
	MTU       int              // bytes of the guests' IP packets, 1280 (576 without IPv6) to link.MaxMTU; 0 is 1500
	DNS       []netip.AddrPort // resolvers that queries to the router go to, in order; none: no DNS
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

// Counters count since the name was first plugged in, over all unplugging.
type Counters struct {
	Received uint64 `json:"received"` // frames from the guest
	Passed   uint64 `json:"passed"`   // packets of it that went on, out of the Router or to another guest
	Sent     uint64 `json:"sent"`     // packets queued for the guest
}

// A Router joins guests to a gateway: an engine.Port whose packets are theirs.
type Router struct {
	closed chan struct{}
}

// New returns a Router without ports. Close ends it.
func New(cfg Config) (*Router, error) { return &Router{closed: make(chan struct{})}, nil }

// Plug adds a port, whose name none has: what comes from l is the guest's. The Router
// owns l and closes it, at once where Plug fails.
func (r *Router) Plug(name string, l link.Link, cfg PortConfig) error { return nil }

// Unplug takes a port out and closes its link. When it returns, nothing of its guest
// comes out of Read any more.
func (r *Router) Unplug(name string) error { return nil }

// Ports tells of all ports, sorted by name.
func (r *Router) Ports() []PortStatus { return nil }

// Name returns the name of the port whose guest has an address.
func (r *Router) Name(a netip.Addr) (string, bool) { return "", false }

// Read returns packets of guests to elsewhere, and answers of the router to elsewhere:
// those of engine.Port.
func (r *Router) Read(bufs [][]byte, sizes []int) (int, error) {
	<-r.closed
	return 0, os.ErrClosed
}

// Write hands packets to guests by their destination. It does not wait: what a guest has
// no room for is dropped and counted. What is for no guest is refused.
func (r *Router) Write(packets [][]byte) error { return nil }

// BatchSize is the greatest number of packets that Read returns.
func (r *Router) BatchSize() int { return 64 }

// Close ends the Router: its ports, their links, and Read.
func (r *Router) Close() error {
	close(r.closed)
	return nil
}
