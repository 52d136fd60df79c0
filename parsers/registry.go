package parsers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sheaf/parsers/ip"
)

// A ProtocolID is a protocol's number in its Registry.
type ProtocolID uint8

// Opaque is the protocol of bytes about which nothing is known.
const Opaque ProtocolID = 0

const opaqueName = "opaque"

// maxProtocols bounds a Registry: a ProtocolID is one byte and 0 is Opaque.
const maxProtocols = 255

// Confidence says how well bytes fit a protocol.
type Confidence uint8

const (
	// None: the bytes do not begin at a message boundary of the protocol, or
	// are not of the protocol at all.
	None Confidence = iota
	// Weak: the bytes can be of the protocol, and could be by chance. Enough
	// where the port says so too.
	Weak
	// Strong: the bytes are of the protocol whatever the port. Reserved for
	// evidence that other protocols and random bytes do not give.
	Strong
)

// A Protocol describes one pub-sub protocol to a Registry.
type Protocol struct {
	Name  string   // lower case, as in a binding: "mqtt"
	Ports []uint16 // well-known ports of the broker
	// SecurePorts are those where it is spoken inside TLS, for whoever sees what is in
	// the records. Where it begins with TLS on a port of Ports it need not be here.
	SecurePorts []uint16
	// UDP says that the protocol runs over UDP, one Scan for each datagram, and
	// not over TCP.
	UDP bool
	// Encrypted says that the protocol hides what it carries: of its flows only
	// headers and acknowledgements can be merged.
	Encrypted bool
	// MessageNames gives the messages' names by Span.Name: "PUBLISH".
	MessageNames []string
	// Content lists the kinds of messages, by Span.Name, that carry what users send
	// each other though no event can be told of them, or not of all. Of other kinds
	// those count as such that are about an event.
	Content []uint8
	// Probe judges bytes by their content. They are the beginning of a
	// segment's payload, perhaps in the middle of a connection, in either
	// direction. Its cost is bounded. The bytes are borrowed until it returns.
	Probe func(payload []byte) Confidence
	// New returns a scanner at a message boundary, for one flow. It sets id on
	// its spans and hashes it into their keys.
	New func(id ProtocolID) Scanner
}

// A Scanner finds the messages of one flow. Every call appends spans whose
// lengths add up to the payload's, whatever the bytes are. Payloads are borrowed
// until the next call; a Scanner keeps a bounded number of bytes of its own.
type Scanner interface {
	// Scan appends the spans of the next bytes of the flow, or of one datagram.
	Scan(dst []Span, payload []byte) []Span
	// Rescan appends the spans of bytes out of their turn (retransmitted ones)
	// and leaves the scanner as it was.
	Rescan(dst []Span, payload []byte) []Span
	// Lost says that bytes are missing before the next Scan, which has to find
	// a message boundary again.
	Lost()
}

// A Registry is the table of known protocols. It is built once and, after the
// last Bind, may be read by any number of goroutines.
type Registry struct {
	protocols []Protocol // by ProtocolID; the first is opaque
	tcp, udp  map[uint16]port
	secure    map[uint16]port // what is inside TLS; never bound
}

// A port says which protocol a port stands for.
type port struct {
	id    ProtocolID
	bound bool // by configuration, and not by being well known
}

// ErrProtocol is the error of a protocol that cannot be registered.
var ErrProtocol = errors.New("bad protocol description")

// NewRegistry returns a Registry of the given protocols, numbered from 1 in
// their order. Where two share a well-known port the first has it. It panics
// when a description is incomplete or a name is taken: that is a mistake in the
// program and not in its input.
func NewRegistry(protocols ...Protocol) *Registry {
	reg := &Registry{
		protocols: make([]Protocol, 1, len(protocols)+1),
		tcp:       make(map[uint16]port),
		udp:       make(map[uint16]port),
		secure:    make(map[uint16]port),
	}
	reg.protocols[Opaque].Name = opaqueName
	for _, p := range protocols {
		if err := reg.add(p); err != nil {
			panic(err)
		}
	}
	return reg
}

func (reg *Registry) add(p Protocol) error {
	switch _, taken := reg.Lookup(p.Name); {
	case len(reg.protocols) > maxProtocols:
		return fmt.Errorf("%w: %q: more than %d protocols", ErrProtocol, p.Name, maxProtocols)
	case taken || p.Name == "":
		return fmt.Errorf("%w: name %q is empty or taken", ErrProtocol, p.Name)
	case p.Probe == nil || p.New == nil:
		return fmt.Errorf("%w: %q: Probe and New are needed", ErrProtocol, p.Name)
	}
	id := ProtocolID(len(reg.protocols))
	p.Ports = slices.Clone(p.Ports)
	reg.protocols = append(reg.protocols, p)
	for _, n := range p.Ports {
		ports := reg.ports(p.UDP)
		if _, taken := ports[n]; !taken {
			ports[n] = port{id: id}
		}
	}
	for _, n := range p.SecurePorts {
		if _, taken := reg.secure[n]; !taken {
			reg.secure[n] = port{id: id}
		}
	}
	return nil
}

func (reg *Registry) ports(udp bool) map[uint16]port {
	if udp {
		return reg.udp
	}
	return reg.tcp
}

// Lookup returns the protocol of a name; "opaque" is one.
func (reg *Registry) Lookup(name string) (ProtocolID, bool) {
	for id := range reg.protocols {
		if reg.protocols[id].Name == name {
			return ProtocolID(id), true
		}
	}
	return Opaque, false
}

// Names returns the names of all protocols by ProtocolID.
func (reg *Registry) Names() []string {
	names := make([]string, len(reg.protocols))
	for id := range reg.protocols {
		names[id] = reg.protocols[id].Name
	}
	return names
}

// Name returns a protocol's name, "opaque" for Opaque and for unknown numbers.
func (reg *Registry) Name(id ProtocolID) string {
	if int(id) >= len(reg.protocols) {
		return opaqueName
	}
	return reg.protocols[id].Name
}

// MessageName returns the name of a message kind, the empty string when the
// protocol has none of that number.
func (reg *Registry) MessageName(id ProtocolID, name uint8) string {
	if int(id) >= len(reg.protocols) || int(name) >= len(reg.protocols[id].MessageNames) {
		return ""
	}
	return reg.protocols[id].MessageNames[name]
}

// Protocol returns a protocol's description, that of Opaque for unknown numbers. Its
// slices are the Registry's.
func (reg *Registry) Protocol(id ProtocolID) Protocol {
	if int(id) >= len(reg.protocols) {
		id = Opaque
	}
	return reg.protocols[id]
}

// Encrypted says whether a protocol hides what it carries.
func (reg *Registry) Encrypted(id ProtocolID) bool {
	return reg.Protocol(id).Encrypted
}

// A Binding says which protocol a port carries. Its text form is NAME@PORT.
type Binding struct {
	Name string
	Port uint16
}

// ErrBinding is the error of a binding that is not of the form NAME@PORT or
// names a protocol that is not known.
var ErrBinding = errors.New("bad protocol binding")

// ParseBinding parses NAME@PORT, for example mqtt@1884.
func ParseBinding(s string) (Binding, error) {
	name, number, found := strings.Cut(s, "@")
	if !found || name == "" {
		return Binding{}, fmt.Errorf("%w %q: expected NAME@PORT, for example mqtt@1884", ErrBinding, s)
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil || n == 0 {
		return Binding{}, fmt.Errorf("%w %q: port %q is not a number from 1 to 65535", ErrBinding, s, number)
	}
	return Binding{Name: strings.ToLower(name), Port: uint16(n)}, nil
}

// String returns the text form, NAME@PORT.
func (b Binding) String() string { return b.Name + "@" + strconv.Itoa(int(b.Port)) }

// Bind makes a port stand for a protocol, before any content is looked at.
// Binding a port to "opaque" leaves its flows alone, in both TCP and UDP. It
// must not be called once Streams use the Registry.
func (reg *Registry) Bind(b Binding) error {
	id, ok := reg.Lookup(b.Name)
	if !ok {
		return fmt.Errorf("%w %s: no such protocol, known are %s", ErrBinding, b, strings.Join(reg.Names(), ", "))
	}
	if id == Opaque {
		reg.tcp[b.Port] = port{id: Opaque, bound: true}
		reg.udp[b.Port] = port{id: Opaque, bound: true}
		return nil
	}
	reg.ports(reg.protocols[id].UDP)[b.Port] = port{id: id, bound: true}
	return nil
}

// port returns what is known of a flow by its ports. A binding goes before a
// well-known port, and the destination before the source. inner is for what is inside
// TLS records.
func (reg *Registry) port(key *FlowKey, inner bool) port {
	ports := reg.ports(key.Proto == ip.UDP)
	dst, src := ports[key.DstPort], ports[key.SrcPort]
	if inner {
		dst, src = reg.inside(dst, key.DstPort), reg.inside(src, key.SrcPort)
	}
	if dst.bound || (dst.id != Opaque && !src.bound) {
		return dst
	}
	return src
}

// inside returns what a TCP port stands for inside TLS, given what it stands for.
func (reg *Registry) inside(p port, number uint16) port {
	if s, ok := reg.secure[number]; ok && !p.bound {
		return s
	}
	if reg.protocols[p.id].Encrypted {
		return port{}
	}
	return p
}

// strong returns the protocol whose messages the payload holds beyond doubt.
func (reg *Registry) strong(payload []byte, udp bool) ProtocolID {
	for id := 1; id < len(reg.protocols); id++ {
		if p := &reg.protocols[id]; p.UDP == udp && p.Probe(payload) == Strong {
			return ProtocolID(id)
		}
	}
	return Opaque
}

// ServerPorts returns the ports that are known to be a broker's, by binding or
// by being well known, in no order.
func (reg *Registry) ServerPorts() []uint16 {
	var out []uint16
	for _, ports := range [...]map[uint16]port{reg.tcp, reg.udp} {
		for n, p := range ports {
			if p.id != Opaque {
				out = append(out, n)
			}
		}
	}
	return out
}
