package replay

import (
	"bytes"
	"fmt"
	"net/netip"
	"strconv"

	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// An Endpoint is where a broker is. Port 0 is any.
type Endpoint struct {
	Addr netip.Addr
	Port uint16
}

// ParseEndpoint parses ADDR or ADDR:PORT; IPv6 addresses before a port stand in
// brackets.
func ParseEndpoint(s string) (Endpoint, error) {
	addr, err := netip.ParseAddr(s)
	port := uint16(0)
	if err != nil {
		ap, perr := netip.ParseAddrPort(s)
		addr, port = ap.Addr(), ap.Port()
		if err = perr; err == nil && port == 0 {
			err = strconv.ErrRange
		}
	}
	if err != nil || addr.Zone() != "" {
		return Endpoint{}, fmt.Errorf("bad broker address %q: expected ADDR or ADDR:PORT, for example 10.2.0.10:1883 or [fd00::10]:1883", s)
	}
	return Endpoint{Addr: addr.Unmap(), Port: port}, nil
}

// String returns the text form, which ParseEndpoint parses.
func (e Endpoint) String() string {
	if e.Port == 0 {
		return e.Addr.String()
	}
	return netip.AddrPortFrom(e.Addr, e.Port).String()
}

// is tells whether a packet's end is the broker.
func (e Endpoint) is(addr netip.Addr, port uint16) bool {
	return addr == e.Addr && (e.Port == 0 || e.Port == port)
}

// sides tells which way a packet goes: who in a conversation is the client.
type sides struct {
	known   map[uint16]bool // ports of brokers
	broker  Endpoint
	met     bool // the broker was
	flows   map[parsers.FlowKey]*flow
	servers map[netip.AddrPort]bool       // of the flows over TCP, where the broker is
	hosts   map[parsers.FlowKey]Direction // by addresses alone: what a flow without ports goes by
	unknown map[service]uint64            // bytes of conversations that were forgotten, of no known protocol
	guests  *guests                       // nil where none has a name
}

// A service is a port of a conversation's broker side.
type service struct {
	proto uint8
	port  uint16
}

// A conversation is both flows of one.
type conversation struct {
	service    service
	bytes      uint64 // of IP packets, until they were counted as of the service
	recognised bool   // a protocol was, in one of the flows
	guests     []int  // which of the guests are its ends
}

// A flow is what is remembered of one.
type flow struct {
	key         parsers.FlowKey
	dir         Direction
	first, last int // its entries in the ledger, plus one; 0 if it has none
	of          *conversation
}

// maxFlows bounds the flows remembered. When it is reached all are forgotten,
// as soon as no packet waits.
const maxFlows = 1 << 20

func newSides(reg *parsers.Registry, broker Endpoint) *sides {
	s := &sides{known: make(map[uint16]bool), broker: broker, unknown: make(map[service]uint64)}
	for _, p := range reg.ServerPorts() {
		s.known[p] = true
	}
	s.forget()
	return s
}

func (s *sides) full() bool { return len(s.flows) >= maxFlows }

func (s *sides) forget() {
	s.settle()
	s.flows = make(map[parsers.FlowKey]*flow)
	s.servers = make(map[netip.AddrPort]bool)
	s.hosts = make(map[parsers.FlowKey]Direction)
}

// settle counts what the services had of no known protocol.
func (s *sides) settle() {
	for _, f := range s.flows {
		if c := f.of; !c.recognised && c.bytes > 0 {
			s.unknown[c.service] += c.bytes
			c.bytes = 0
		}
	}
}

// flow returns the flow of a packet.
func (s *sides) flow(packet []byte) *flow {
	key := flowOf(packet)
	f := s.flows[key]
	if f == nil {
		f = s.meet(packet, key)
	}
	f.of.bytes += uint64(len(packet))
	return f
}

// meet makes a flow and its reverse.
func (s *sides) meet(packet []byte, key parsers.FlowKey) *flow {
	reverse := key.Reverse()
	hosts := parsers.FlowKey{Src: key.Src, Dst: key.Dst, Version: key.Version}
	dir, sure := s.judge(packet, key)
	if sure {
		s.hosts[hosts], s.hosts[hosts.Reverse()] = dir, 1-dir
	} else if d, ok := s.hosts[hosts]; ok {
		dir = d
	}
	server := netip.AddrPortFrom(key.DstAddr(), key.DstPort)
	if dir == Down {
		server = netip.AddrPortFrom(key.SrcAddr(), key.SrcPort)
	}
	if key.Proto == ip.TCP {
		s.servers[server] = true
	}
	c := &conversation{service: service{key.Proto, server.Port()}, guests: s.guests.of(&key)}
	f := &flow{key: key, dir: dir, of: c}
	s.flows[key] = f
	if reverse != key { // as that of a host that talks to itself
		s.flows[reverse] = &flow{key: reverse, dir: 1 - dir, of: c}
	}
	return f
}

// judge returns which way a new flow goes, and whether more than chance says so.
func (s *sides) judge(packet []byte, key parsers.FlowKey) (dir Direction, sure bool) {
	if s.broker.Addr.IsValid() {
		switch {
		case s.broker.is(key.DstAddr(), key.DstPort):
			s.met = true
			return Up, true
		case s.broker.is(key.SrcAddr(), key.SrcPort):
			s.met = true
			return Down, true
		}
	}
	if d, s := s.known[key.DstPort], s.known[key.SrcPort]; d != s {
		if d {
			return Up, true
		}
		return Down, true
	}
	switch segment := tcpOf(packet); {
	case len(segment) == 0:
	case segment[13]&flagsSYN == parsers.FlagSYN: // it comes from the client
		return Up, true
	case segment[13]&flagsSYN == flagsSYN:
		return Down, true
	}
	switch { // the lower port is the service's
	case key.DstPort < key.SrcPort:
		return Up, true
	case key.DstPort > key.SrcPort:
		return Down, true
	case bytes.Compare(key.Src[:], key.Dst[:]) < 0:
		return Up, false
	}
	return Down, false
}

const (
	flagsSYN = 0x12 // SYN and ACK

	minTCP = 20
)

// tcpOf returns the TCP segment in a packet, none where it is not whole.
func tcpOf(p []byte) []byte {
	var h ip.Header
	if h.ParseShallow(p) != nil || h.Proto != ip.TCP || h.Fragment != ip.Whole || len(h.Payload()) < minTCP {
		return nil
	}
	return h.Payload()
}

// flowOf returns the key of a packet's flow, as well as it can be told: it has to
// be the same for packets whose order matters to the codec, which looks no further
// either. Fragments make flows without ports, malformed packets such of addresses.
func flowOf(p []byte) parsers.FlowKey {
	var h ip.Header
	_ = h.ParseShallow(p)
	return parsers.KeyOf(&h)
}
