package replay

import (
	"encoding/binary"
	"net/netip"

	"sheaf/parsers"
)

// An Endpoint is where a broker is. Port 0 is any.
type Endpoint struct {
	Addr netip.Addr
	Port uint16
}

// sides tells which way a packet goes: who in a conversation is the client.
type sides struct {
	ports  map[uint16]bool
	broker Endpoint
	known  map[parsers.FlowKey]Direction
}

func newSides(reg *parsers.Registry, broker Endpoint) *sides {
	s := &sides{ports: make(map[uint16]bool), broker: broker, known: make(map[parsers.FlowKey]Direction)}
	for _, p := range reg.ServerPorts() {
		s.ports[p] = true
	}
	return s
}

// of returns the flow of a packet and its direction.
func (s *sides) of(packet []byte) (parsers.FlowKey, Direction) {
	key := flowOf(packet)
	if d, ok := s.known[key]; ok {
		return key, d
	}
	d := s.judge(packet, &key)
	s.known[key], s.known[key.Reverse()] = d, 1-d
	return key, d
}

func (s *sides) judge(packet []byte, key *parsers.FlowKey) Direction {
	if s.broker.Addr.IsValid() {
		port := s.broker.Port
		switch {
		case key.DstAddr() == s.broker.Addr && (port == 0 || port == key.DstPort):
			return Up
		case key.SrcAddr() == s.broker.Addr && (port == 0 || port == key.SrcPort):
			return Down
		}
	}
	if s.ports[key.DstPort] != s.ports[key.SrcPort] {
		if s.ports[key.DstPort] {
			return Up
		}
		return Down
	}
	// A SYN comes from the client; else the lower port is the service's.
	if key.Proto == 6 && len(packet) >= 40 && key.Version == 4 {
		if t := int(packet[0]&15) * 4; len(packet) > t+13 && packet[t+13]&0x12 == 2 {
			return Up
		}
	}
	if key.DstPort != key.SrcPort {
		if key.DstPort < key.SrcPort {
			return Up
		}
		return Down
	}
	if string(key.Src[:]) < string(key.Dst[:]) {
		return Up
	}
	return Down
}

// flowOf returns the key of a packet's flow, as well as it can be told: it only
// has to be the same for packets whose order matters.
func flowOf(p []byte) (key parsers.FlowKey) {
	if len(p) == 0 {
		return key
	}
	t := 0
	switch {
	case p[0]>>4 == 4 && len(p) >= 20:
		key.Version, key.Proto = 4, p[9]
		copy(key.Src[:], p[12:16])
		copy(key.Dst[:], p[16:20])
		t = int(p[0]&15) * 4
	case p[0]>>4 == 6 && len(p) >= 40:
		key.Version, key.Proto = 6, p[6]
		copy(key.Src[:], p[8:24])
		copy(key.Dst[:], p[24:40])
		t = 40
	default:
		return key
	}
	if (key.Proto == 6 || key.Proto == 17) && len(p) >= t+4 {
		key.SrcPort, key.DstPort = binary.BigEndian.Uint16(p[t:]), binary.BigEndian.Uint16(p[t+2:])
	}
	return key
}
