package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/engine"
	"sheaf/tunnel"
)

// carriers returns those in use.
func (d *doctor) carriers() []tunnel.Carrier {
	var all []tunnel.Carrier
	for _, name := range d.cfg.Carrier {
		if c, err := tunnel.ParseCarrier(name); err == nil {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return tunnel.DefaultCarriers
	}
	return all
}

func (d *doctor) hasQUIC() bool { return slices.Contains(d.carriers(), tunnel.QUIC) }

// udpBuffer is how many bytes quic-go asks the kernel to hold for its socket.
const udpBuffer = 7 << 20

// checkBuffers looks whether QUIC gets the socket buffers that it asks for.
func (d *doctor) checkBuffers() {
	if !d.hasQUIC() {
		return
	}
	if d.host.capable(unix.CAP_NET_ADMIN) {
		d.ok("UDP buffers", "CAP_NET_ADMIN gets them past the limits")
		return
	}
	var small, mend []string
	for _, name := range []string{"net.core.rmem_max", "net.core.wmem_max"} {
		if n := d.host.sysctlNumber(name); n >= 0 && n < udpBuffer {
			small = append(small, fmt.Sprintf("%s is %s", name, size(float64(n))))
			mend = append(mend, fmt.Sprintf("%s=%d", name, udpBuffer))
		}
	}
	if len(small) > 0 {
		d.warn("UDP buffers", "sysctl -w "+strings.Join(mend, " "), "%s, less than the %s that QUIC asks for; bursts may be lost on a fast link", strings.Join(small, " and "), size(udpBuffer))
		return
	}
	d.ok("UDP buffers", "large enough")
}

// checkListen looks whether the ports are free.
func (d *doctor) checkListen() {
	if d.isRunning() {
		return
	}
	if at := d.cfg.Listen; at != "" {
		tcp := slices.ContainsFunc(d.carriers(), func(c tunnel.Carrier) bool { return c != tunnel.QUIC })
		if d.free("listen", at, tcp, d.hasQUIC()) {
			d.ok("listen", "%s is free", at)
		}
	}
	if at := d.cfg.Metrics; at != "" && d.free("metrics", at, true, false) {
		d.ok("metrics", "%s is free", at)
	}
}

// free looks whether an address can be listened on, and says so if not.
func (d *doctor) free(key, address string, tcp, udp bool) bool {
	var err error
	if tcp {
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			l.Close()
		}
	}
	if udp && err == nil {
		var l net.PacketConn
		if l, err = net.ListenPacket("udp", address); err == nil {
			l.Close()
		}
	}
	port := splitPort(address)
	switch {
	case err == nil:
		return true
	case errors.Is(err, syscall.EADDRINUSE):
		d.fail(key, fmt.Sprintf("see who with: ss -lptun 'sport = :%s'; stop it, or set %s to another port", port, key), "another program, perhaps another sheaf, listens on %s", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		d.fail(key, fmt.Sprintf("set %s to :%s, which is every address of this host, or to one of \"ip address\"", key, port), "%s: this host has no such address", address)
	case errors.Is(err, fs.ErrPermission):
		d.fail(key, fmt.Sprintf("run as root, or set %s to a port from 1024 on", key), "%s may not be listened on by this user", address)
	default:
		d.fail(key, fmt.Sprintf("set %s to HOST:PORT or :PORT", key), "%s: %v", address, err)
	}
	return false
}

// dialTime is how long a server has to take a connection.
const dialTime = 2 * time.Second

// checkEnds looks at what a gateway without a device listens on and connects to.
func (d *doctor) checkEnds(ctx context.Context) {
	for _, f := range d.cfg.Forward {
		network, address, _ := strings.Cut(f.From, ":")
		switch {
		case d.isRunning():
		case network == "tcp":
			if d.free("forward", address, true, false) {
				d.ok("forward", "%s is free", f.From)
			}
		case network == "unix":
			if err := writable(filepath.Dir(address)); err != nil {
				d.fail("forward", "name a path in a folder that exists and is yours", "%s: %v", f.From, err)
			} else {
				d.ok("forward", "%s can be made", f.From)
			}
		case network == "vsock": // the configuration was checked, and it is guests who come
			d.ok("forward", "%s is for guests", f.From)
		default:
			d.fail("forward", `write from = "tcp:HOST:PORT", "unix:PATH" or "vsock:PORT"`, "from = %q", f.From)
		}
	}
	if d.cfg.Terminate == nil {
		return
	}
	var servers []string
	for _, to := range d.cfg.Terminate.Map {
		if !slices.Contains(servers, to) && !strings.HasPrefix(to, "vsock:") { // only the gateway reaches guests
			servers = append(servers, to)
		}
	}
	slices.Sort(servers)
	for _, to := range servers {
		dialer := net.Dialer{Timeout: dialTime}
		c, err := dialer.DialContext(ctx, "tcp", to)
		if err != nil {
			d.warn("terminate", "start the server, or correct map of [terminate]", "the server %s takes no connection: %v", to, err)
			continue
		}
		c.Close()
		d.ok("terminate", "the server %s takes connections", to)
	}
}

// reachTime is how long a peer has to answer.
const reachTime = 6 * time.Second

// checkPeers looks how the peers are, or calls them.
func (d *doctor) checkPeers(ctx context.Context) {
	if d.isRunning() {
		d.askPeers()
		return
	}
	var wanted []tunnel.PeerConfig
	for i := range d.cfg.Peers {
		p := &d.cfg.Peers[i]
		if p.Endpoint == "" {
			d.ok("peer", "%s calls this gateway, which cannot be tried from here", p.Name)
			continue
		}
		f, err := tunnel.ParseFingerprint(p.Fingerprint)
		if d.resolve(ctx, p) && err == nil {
			wanted = append(wanted, tunnel.PeerConfig{Name: p.Name, Fingerprint: f, Endpoint: p.Endpoint})
		}
	}
	switch {
	case len(wanted) == 0:
	case d.key == nil:
		d.warn("peer", "mend the key first", "not called: there is no key to call with")
	case d.unknown:
		d.warn("peer", "stop the gateway, or let this check ask it", "not called: a gateway may be running, whose place this call would take")
	default:
		d.callPeers(ctx, wanted)
	}
}

// askPeers tells what the running gateway says of its peers.
func (d *doctor) askPeers() {
	for i := range d.cfg.Peers {
		p := &d.cfg.Peers[i]
		at := slices.IndexFunc(d.running.Peers, func(s engine.PeerStatus) bool { return s.Name == p.Name })
		if at < 0 {
			d.warn("peer", "restart the gateway", "%s is not among the peers of the gateway that is running", p.Name)
			continue
		}
		switch s := &d.running.Peers[at]; {
		case s.Up:
			d.ok("peer", "%s is up over %s with %s, round trip %s", p.Name, s.Carrier, s.Remote, milliseconds(s.RTT))
		case s.Connected:
			d.fail("peer", d.unreached(p.Endpoint, cmp.Or(s.Cause, causeLane)), "%s is connected, but: %s", p.Name, oneLine(reason(p.Name, s.Error)))
		case p.Endpoint == "" && s.Cause == "":
			mend := fmt.Sprintf("start the gateway there, and see that it reaches this one on %s", d.cfg.Listen)
			if n := d.running.Strangers; n > 0 {
				mend += fmt.Sprintf("; the log tells of %s that this one refused", count(n, "call"))
			}
			d.warn("peer", mend, "%s has not called", p.Name)
		default:
			d.fail("peer", d.unreached(p.Endpoint, s.Cause), "%s is down: %s", p.Name, cmp.Or(oneLine(reason(p.Name, s.Error)), "no answer yet"))
		}
	}
}

// resolve looks up a peer's endpoint, and whether the way to it leads through
// the tunnel itself.
func (d *doctor) resolve(ctx context.Context, p *engine.Peer) bool {
	host, _, err := net.SplitHostPort(p.Endpoint)
	if err != nil {
		return false // the configuration was refused
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		d.fail("peer", "correct endpoint, or see that /etc/resolv.conf names a server that answers", "%s: %v", p.Name, err)
		return false
	}
	if d.cfg.TUN == nil {
		return true
	}
	for _, a := range addresses {
		for i := range d.cfg.Peers {
			for _, allowed := range d.cfg.Peers[i].Allowed {
				if allowed.Contains(a.Unmap()) {
					d.fail("peer", "leave that address out of allowed", "%s: its endpoint %s is inside allowed %v: the tunnel would lead into itself", p.Name, a, allowed.Prefix)
					return false
				}
			}
		}
	}
	return true
}

// callPeers connects with peers as the gateway would.
func (d *doctor) callPeers(ctx context.Context, peers []tunnel.PeerConfig) {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	t, err := tunnel.New(tunnel.Config{
		Key: *d.key, Carriers: d.carriers(), Peers: peers, Logger: slog.New(slog.DiscardHandler),
		DialTimeout: reachTime - time.Second, FallbackDelay: time.Second,
	})
	if err != nil {
		d.fail("peer", "correct the [[peer]] tables", "%v", err)
		return
	}
	defer t.Close()
	answers := make([]func(), len(peers))
	var all sync.WaitGroup
	for i := range peers {
		all.Go(func() { answers[i] = d.call(ctx, t.Peer(peers[i].Name), peers[i].Endpoint) })
	}
	all.Wait()
	for _, tell := range answers {
		tell()
	}
}

// call connects with one peer, and returns what tells how it went.
func (d *doctor) call(ctx context.Context, p *tunnel.Peer, endpoint string) func() {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // one attempt tries every carrier: a second one has no more to tell
		for p.Status().Attempts == 0 && ctx.Err() == nil {
			time.Sleep(reachTime / 200)
		}
		cancel()
	}()
	lane, err := p.Lane(ctx, tunnel.ClassMessages)
	s := p.Status()
	if err != nil {
		if s.LastError != nil {
			err = s.LastError
		}
		return func() {
			d.fail("peer", d.unreached(endpoint, engine.CauseOf(err)), "%s cannot be reached: %s", p.Name(), reason(p.Name(), err.Error()))
		}
	}
	remote, carrier := lane.RemoteAddr(), lane.Carrier()
	err = engine.Handshake(lane)
	lane.Close()
	if err != nil {
		return func() {
			d.fail("peer", d.unreached(endpoint, cmp.Or(engine.CauseOf(err), causeLane)), "%s answers over %v from %v, but: %s", p.Name(), carrier, remote, oneLine(reason(p.Name(), err.Error())))
		}
	}
	return func() {
		d.ok("peer", "%s answers over %v from %v, round trip %s", p.Name(), carrier, remote, milliseconds(s.RTT))
	}
}

// reason returns an error about a peer without its name, with which that of each
// carrier begins.
func reason(peer, err string) string {
	return strings.ReplaceAll(err, fmt.Sprintf("tunnel: peer %q: ", peer), "")
}

// causeLane is for a peer that answers and has no known cause to be not up.
const causeLane engine.Cause = "lane"

// unreached says what to do about a peer that is not up.
func (d *doctor) unreached(endpoint string, why engine.Cause) string {
	port := splitPort(endpoint)
	fingerprint := "what \"sheaf keygen\" prints here"
	if d.key != nil {
		fingerprint = d.key.Fingerprint().String()
	}
	var kinds []string
	for _, c := range d.carriers() {
		kind := "TCP"
		if c == tunnel.QUIC {
			kind = "UDP"
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	switch why {
	case engine.CauseOlder:
		return "upgrade sheaf here, which is the older of the two"
	case engine.CauseNewer:
		return "upgrade sheaf there, which is the older of the two"
	case engine.CauseVersion, engine.CauseLimit:
		return "upgrade the older of the two, or both"
	case engine.CauseKey:
		return "write as fingerprint of this [[peer]] what \"sheaf keygen\" prints there; if it is the same, the endpoint is that of somebody else"
	case engine.CauseRefused:
		return "write in the configuration there, as fingerprint of its [[peer]]: " + fingerprint
	case engine.CauseProtocol:
		return "see that the endpoint is that of a gateway, and both are of the same version"
	case engine.CauseClosed:
		return fmt.Sprintf("start the gateway there, with listen = \":%s\"", port)
	case engine.CauseRoute:
		return "see with \"ip route get\" how this host reaches that address"
	case causeLane:
		return "see the logs of both gateways; a path that loses all large packets is seen with ping -M do -s 1400"
	}
	return fmt.Sprintf("start the gateway there, and let %s port %s through the firewalls between", strings.Join(kinds, " and "), port)
}
