package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// What is right about ports, each and beside one another.

// Resolvers are DNS servers, or a single one.
type Resolvers []netip.AddrPort

// UnmarshalTOML takes a string or an array of strings, each ADDR or ADDR:PORT.
func (r *Resolvers) UnmarshalTOML(b []byte) error {
	var list struct{ V []string }
	doc := bytes.TrimSpace(b)
	if len(doc) == 0 || doc[0] != '[' {
		doc = append(append([]byte("["), doc...), ']')
	}
	if err := toml.Unmarshal(append([]byte("v = "), doc...), &list); err != nil {
		return plain(err)
	}
	for _, s := range list.V {
		a, err := netip.ParseAddrPort(s)
		if addr, bare := netip.ParseAddr(s); bare == nil {
			a, err = netip.AddrPortFrom(addr, portDNS), nil
		}
		if err != nil || a.Port() == 0 || a.Addr().IsUnspecified() {
			return fmt.Errorf("dns: %q is no resolver like 192.0.2.53 or 192.0.2.53:5353", s)
		}
		*r = append(*r, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
	}
	return nil
}

// takenPorts are ports that may stand beside one another, by what each has alone.
type takenPorts struct {
	vm        *VM
	stack     bool // the gateway has a userspace stack
	own       map[netip.Addr]bool
	names     map[string]bool
	paths     map[string]string // the ports' names, also below
	macs      map[string]string
	addresses map[netip.Addr]string
	cids      map[uint32]string
}

// newTakenPorts returns the ports of a configuration before any is added.
func newTakenPorts(c *Config) *takenPorts {
	t := &takenPorts{
		vm: c.VM, stack: len(c.Forward) > 0 || c.Terminate != nil, own: make(map[netip.Addr]bool), names: make(map[string]bool),
		paths: make(map[string]string), macs: make(map[string]string), addresses: make(map[netip.Addr]string), cids: make(map[uint32]string),
	}
	for _, a := range c.VM.Address {
		t.own[a.Addr()] = true
	}
	return t
}

// add adds a port, unless something is wrong with it by itself, or another has what is its
// own alone. The error says which.
func (t *takenPorts) add(p *VMPort) error {
	if err := p.check(); err != nil {
		return err
	}
	if !t.stack && p.Kind() == KindVsock {
		return fmt.Errorf("at = %q needs [[forward]] from vsock:PORT, which the guest connects to, or [terminate] to vsock:GUEST:PORT; [tun] excludes both", p.At)
	}
	path, mac := filepath.Clean(p.Path()), p.HardwareAddr().String()
	switch {
	case t.names[p.Name]:
		return errors.New("is there twice")
	case t.paths[path] != "":
		return fmt.Errorf("at = %q: the socket is already that of port %q", p.At, t.paths[path])
	case mac != "" && t.macs[mac] != "":
		return fmt.Errorf("mac = %q is already that of port %q", p.MAC, t.macs[mac])
	case p.CID != 0 && t.cids[p.CID] != "":
		return fmt.Errorf("cid = %d is already that of port %q", p.CID, t.cids[p.CID])
	}
	for _, a := range p.Addresses() {
		if err := t.free(a); err != nil {
			return err
		}
	}
	t.names[p.Name], t.paths[path] = true, p.Name
	if mac != "" {
		t.macs[mac] = p.Name
	}
	if p.CID != 0 {
		t.cids[p.CID] = p.Name
	}
	for _, a := range p.Addresses() {
		t.addresses[a] = p.Name
	}
	return nil
}

// remove takes out a port that was added.
func (t *takenPorts) remove(p *VMPort) {
	delete(t.names, p.Name)
	delete(t.paths, filepath.Clean(p.Path()))
	delete(t.macs, p.HardwareAddr().String())
	delete(t.cids, p.CID)
	for _, a := range p.Addresses() {
		delete(t.addresses, a)
	}
}

// free returns why an address cannot be that of another guest.
func (t *takenPorts) free(a netip.Addr) error {
	for _, network := range t.vm.Address {
		switch {
		case !network.Contains(a):
		case t.own[a]:
			return fmt.Errorf("address %v is the gateway's own, of [vm]", a)
		case edge(network.Prefix, a):
			return fmt.Errorf("address %v is that of the network or of all in it, and of no host", a)
		case t.addresses[a] != "":
			return fmt.Errorf("address %v is already that of port %q", a, t.addresses[a])
		default:
			return nil
		}
	}
	return fmt.Errorf("address %v is in no network of [vm]: expected one in %s", a, joined(t.vm.networks()))
}

// joined lists prefixes.
func joined(all []netip.Prefix) string {
	var text []string
	for _, p := range all {
		text = append(text, p.String())
	}
	return strings.Join(text, " or ")
}

// check checks a port by itself.
func (p *VMPort) check() error {
	if err := checkPortName(p.Name); err != nil {
		return err
	}
	kind, path := p.Kind(), p.Path()
	switch {
	case p.At == "":
		return errors.New(`at is missing: KIND:PATH of its socket, for example "vhost-user:/run/sheaf/meter-1.sock"`)
	case kind == "":
		return fmt.Errorf("at = %q: expected KIND:PATH, where KIND is one of %s", p.At, strings.Join(PortKinds, ", "))
	case path == "":
		return fmt.Errorf(`at = %q: the path of the socket is missing, for example "%s:/run/sheaf/meter-1.sock"`, p.At, kind)
	case len(path) > MaxSocketPath:
		return fmt.Errorf("at = %q: the path has %d bytes, and that of a socket has room for %d", p.At, len(path), MaxSocketPath)
	case p.Dial && (kind == KindDgram || kind == KindPasst):
		return fmt.Errorf("dial is for %s, %s and %s: of %s the gateway makes the socket", KindVhostUser, KindStream, KindVsock, kind)
	}
	if kind == KindVsock {
		switch {
		case p.MAC != "":
			return fmt.Errorf("mac is for a NIC, and %s has none", KindVsock)
		case p.CID < minCID || p.CID > maxCID:
			return fmt.Errorf("cid = %d: a %s port needs the guest's, from %d to %d", p.CID, KindVsock, minCID, uint32(maxCID))
		}
	} else if p.CID != 0 {
		return fmt.Errorf("cid is for %s, and this is %s", KindVsock, kind)
	}
	if p.MAC != "" {
		if mac, err := net.ParseMAC(p.MAC); err != nil || len(mac) != 6 || mac[0]&1 != 0 || bytes.Equal(mac, make([]byte, 6)) {
			return fmt.Errorf("mac = %q: expected one of a NIC, for example 52:54:00:12:34:01", p.MAC)
		}
	}
	var seen [2]bool
	for _, a := range p.Address {
		family := 0
		if a.Addr().Is6() {
			family = 1
		}
		switch {
		case a.Bits() != a.Addr().BitLen():
			return fmt.Errorf("address %v: expected an address without a length, for example %v", a.Prefix, a.Addr())
		case seen[family]:
			return fmt.Errorf("address %v: at most one of IPv4 and one of IPv6", a.Addr())
		}
		seen[family] = true
	}
	return nil
}

// checkPortName checks a port's name: it is also that of a file in directory, and a guest's
// in vsock:GUEST:PORT, where a number is a CID.
func checkPortName(name string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	switch {
	case name == "" || len(name) > maxPortName:
		return fmt.Errorf("name = %q: expected 1 to %d characters", name, maxPortName)
	case strings.Trim(name, letters+"0123456789-_.") != "":
		return fmt.Errorf("name = %q: expected letters, digits, -, _ and . only", name)
	case strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-"):
		return fmt.Errorf("name = %q: expected a letter, a digit or _ first", name)
	case !strings.ContainsAny(name, letters):
		return fmt.Errorf("name = %q: expected a letter in it, since a number is a CID", name)
	}
	return nil
}

// portSuffix ends the name of what a file of [vm]'s directory has: the keys of [[vm.port]] without a table.
// The name of the file, less .toml, is the port's, and need not be written.
const portSuffix = ".toml"

// maxPortFile bounds what is read of a port's file, in bytes: some keys and comments.
const maxPortFile = 1 << 16

// LoadPort reads a file of [vm]'s directory, as a gateway does. Relative paths in it are
// relative to its folder.
func LoadPort(path string) (p VMPort, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPortFile+1))
	switch {
	case err != nil:
		return p, fmt.Errorf("%s: %w", path, err)
	case len(b) > maxPortFile:
		return p, fmt.Errorf("%s has more than %d bytes: expected the keys of a port", path, maxPortFile)
	}
	dec := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields().EnableUnmarshalerInterface()
	if err := dec.Decode(&p); err != nil {
		return p, fmt.Errorf("%s: %s", path, explain(err))
	}
	name := strings.TrimSuffix(filepath.Base(path), portSuffix)
	if p.Name != "" && p.Name != name {
		return p, fmt.Errorf("%s: name = %q: leave it away, or call the file %s", path, p.Name, p.Name+portSuffix)
	}
	p.Name = name
	p.resolve(filepath.Dir(path))
	return p, nil
}
