package main

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A way is a direction: a lane has an end for each.
type way int

const (
	up   way = iota // to the broker
	down            // back
)

// ways remembers which way a flow goes. Any rule would do that sends a flow one
// way and its reverse the other: this one is kept apart from those of the gateway
// and of sheaf replay, so that changes of theirs change no line.
type ways struct {
	broker map[uint16]bool // ports
	known  map[ends]way
}

// ends are the addresses and ports of a flow.
type ends [2]struct {
	address string
	port    uint16
}

func newWays(reg *parsers.Registry) *ways {
	w := &ways{broker: make(map[uint16]bool), known: make(map[ends]way)}
	for _, port := range reg.ServerPorts() {
		w.broker[port] = true
	}
	return w
}

// of returns the way of a packet: to a port of a broker, or else from whoever is
// first seen of the two to begin, or else to the lower port.
func (w *ways) of(packet []byte) way {
	e, syn := parse(packet)
	if d, ok := w.known[e]; ok {
		return d
	}
	reverse := ends{e[1], e[0]}
	d := up
	switch to, from := w.broker[e[1].port], w.broker[e[0].port]; {
	case from != to && from, !syn && from == to && e[0].port < e[1].port:
		d = down
	}
	w.known[reverse], w.known[e] = 1-d, d
	return d
}

// parse returns the ends of a packet, without ports where it is a fragment or of
// another protocol than TCP and UDP, and whether it opens a TCP connection.
func parse(p []byte) (e ends, syn bool) {
	const protoTCP, protoUDP, flagsSYN = 6, 17, 0x12
	at, proto := 0, byte(0)
	switch {
	case len(p) >= 40 && p[0]>>4 == 6:
		e[0].address, e[1].address = string(p[8:24]), string(p[24:40])
		at, proto = 40, p[6]
	case len(p) >= 20 && p[0]>>4 == 4:
		e[0].address, e[1].address = string(p[12:16]), string(p[16:20])
		if binary.BigEndian.Uint16(p[6:])&0x3fff == 0 {
			at, proto = int(p[0]&15)*4, p[9]
		}
	}
	if proto != protoTCP && proto != protoUDP || len(p) < at+14 {
		return e, false
	}
	e[0].port, e[1].port = binary.BigEndian.Uint16(p[at:]), binary.BigEndian.Uint16(p[at+2:])
	return e, proto == protoTCP && p[at+13]&flagsSYN == 2
}
