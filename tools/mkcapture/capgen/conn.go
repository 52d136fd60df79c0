package capgen

import (
	"encoding/binary"
	"time"
)

const brokerPort = 1883

// How soon a receiver acknowledges data that it does not answer.
type ackMode int

const (
	ackNow   ackMode = iota // Linux' quick acknowledgement
	ackLater                // delayed by 40 ms
)

// An endpoint is one end of a connection: what its TCP knows.
type endpoint struct {
	host     *host
	port     uint16
	label    uint32 // IPv6 flow label
	next     uint32 // sequence number of the next byte to send
	received uint32 // sequence number of the next byte to receive
	id       uint16 // next IPv4 identification
	tsOffset uint32
	tsRecent uint32
	window   uint16 // scaled
	ackDue   bool   // at ackAt
	ackAt    time.Duration
	ackTimer uint64 // tells the timer that counts from those that were replaced
	lastSent time.Duration
}

// A conn is a TCP connection from a client to the broker, with what an MQTT
// session keeps beside it.
type conn struct {
	sim            *sim
	index          int
	client, broker endpoint
	mss            int
	packetID       uint16 // of the last message with QoS 1 that the publishing side sent
	closed         bool
}

// newConn makes the state of a connection before its handshake.
func (s *sim) newConn(index int) *conn {
	h := s.clients[index%len(s.clients)]
	c := &conn{sim: s, index: index, mss: 1460 - 12}
	if s.cfg.IPv6 {
		c.mss -= 20
	}
	// 577 is odd, so the ports of one host are all different.
	first := mix(s.cfg.Seed + uint64(index%len(s.clients)))
	port := first + uint64(index/len(s.clients))*577
	c.client = s.newEndpoint(h, &s.broker, 1<<15|uint16(port&0x7fff), 63)
	listens := uint16(brokerPort)
	if s.cfg.WebSocket {
		listens = webSocketPort
	}
	c.broker = s.newEndpoint(&s.broker, h, listens, 64)
	return c
}

func (s *sim) newEndpoint(h, peer *host, port, window uint16) endpoint {
	return endpoint{
		host: h, port: port, window: window,
		label:    s.rng.Uint32N(1 << 20),
		next:     s.rng.Uint32(),
		id:       uint16(s.rng.Uint32()),
		tsOffset: s.tsOffset(h, peer),
	}
}

// tsOffset is a host's timestamp offset towards a peer: Linux hashes the pair
// of addresses with a secret.
func (s *sim) tsOffset(h, peer *host) uint32 {
	a, b := h.addr.As16(), peer.addr.As16()
	x := mix(s.cfg.Seed + 1)
	for _, half := range [][]byte{a[:8], a[8:], b[:8], b[8:]} {
		x = mix(x ^ binary.BigEndian.Uint64(half))
	}
	return uint32(x)
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (c *conn) peer(e *endpoint) *endpoint {
	if e == &c.client {
		return &c.broker
	}
	return &c.client
}

// midstream puts the connection into a state as after some traffic.
func (c *conn) midstream() {
	c.client.received, c.broker.received = c.broker.next, c.client.next
	c.client.tsRecent = c.broker.tsOffset + c.broker.host.clock(c.sim.now)
	c.broker.tsRecent = c.client.tsOffset + c.client.host.clock(c.sim.now)
}

// handshake opens the connection and then runs opened at the client.
func (c *conn) handshake(opened func()) {
	s := c.sim
	c.send(&c.client, flagSYN, nil, 0, func() {
		s.after(s.between(4*time.Microsecond, 20*time.Microsecond), func() {
			c.send(&c.broker, flagSYN|flagACK, nil, 0, func() {
				c.send(&c.client, flagACK, nil, 0, func() {})
				opened()
			})
		})
	})
}

// transmit sends data in segments of at most the MSS, and then runs arrived at
// the receiver, which acknowledges by mode if it has not answered until then.
// Data is borrowed until transmit returns.
func (c *conn) transmit(from *endpoint, data []byte, mode ackMode, arrived func()) {
	to := c.peer(from)
	from.lastSent = c.sim.now
	for i := 0; len(data) > 0; i++ {
		part := data[:min(len(data), c.mss)]
		data = data[len(part):]
		last := len(data) == 0
		flags := uint16(flagACK)
		if last {
			flags |= flagPSH
		}
		size := len(part)
		c.send(from, flags, part, time.Duration(i)*3*time.Microsecond, func() {
			c.growWindow(to, size)
			c.scheduleAck(to, mode)
			if last {
				arrived()
			}
		})
	}
}

// send builds one segment now and captures it after it has queued; arrived runs
// at the receiver, whose TCP has taken the segment in.
func (c *conn) send(from *endpoint, flags uint16, payload []byte, queued time.Duration, arrived func()) {
	s, to := c.sim, c.peer(from)
	tsVal := from.tsOffset + from.host.clock(s.now)
	options := c.options(from, flags, tsVal)
	seg := segment{
		ip:      ipHeader{src: from.host.addr, dst: to.host.addr, ttl: from.host.ttl, frag: dontFragment, label: from.label},
		srcPort: from.port, dstPort: to.port,
		seq: from.next, ack: from.received, flags: flags, window: from.window,
		options: options,
	}
	switch {
	case flags&flagSYN == 0:
	case flags&flagACK == 0:
		seg.window = 64240
	default:
		seg.window = 65160
	}
	if flags&(flagSYN|flagACK) != flagSYN|flagACK { // Linux sends a SYN-ACK with identification 0
		seg.ip.id = from.id
		from.id++
	}
	from.ackDue = false
	from.next += uint32(len(payload))
	if flags&(flagSYN|flagFIN) != 0 {
		from.next++
	}
	upTo := from.next

	captured := s.now + queued
	delivered := captured + s.oneWay
	if from == &c.client {
		captured += s.oneWay
	}
	s.capture(captured, appendSegment(s.buffer(), &seg, payload))
	s.at(delivered, func() {
		to.received, to.tsRecent = upTo, tsVal
		arrived()
	})
}

func (c *conn) options(from *endpoint, flags uint16, tsVal uint32) []byte {
	var room [20]byte
	if flags&flagSYN == 0 {
		return appendTimestamps(room[:0], tsVal, from.tsRecent)
	}
	return appendSYNOptions(room[:0], uint16(c.mss+12), tsVal, from.tsRecent)
}

// scheduleAck makes sure that e acknowledges in time, if it sends nothing first.
func (c *conn) scheduleAck(e *endpoint, mode ackMode) {
	s := c.sim
	wait := s.between(2*time.Microsecond, 6*time.Microsecond)
	if mode == ackLater {
		wait = s.between(40*time.Millisecond, 44*time.Millisecond)
	}
	at := s.now + wait
	if e.ackDue && e.ackAt <= at {
		return
	}
	e.ackDue, e.ackAt = true, at
	e.ackTimer++
	timer := e.ackTimer
	s.at(at, func() {
		if e.ackDue && e.ackTimer == timer {
			c.send(e, flagACK, nil, 0, func() {})
		}
	})
}

// growWindow opens a receive window a little when much comes, as Linux' receive
// buffer tuning does, and now and then takes a step back.
func (c *conn) growWindow(e *endpoint, n int) {
	r := c.sim.rng
	switch {
	case n > 200 && e.window < 90 && r.IntN(2) == 0:
		e.window += 1 + uint16(r.IntN(3))
	case n > 1000 && e.window > 64 && r.IntN(3) == 0:
		e.window--
	case n > 100 && r.IntN(100) == 0:
		e.window++
	}
}

// closeByClient ends the session: DISCONNECT and FIN from the client, the
// broker's FIN, the last acknowledgement.
func (c *conn) closeByClient() {
	s := c.sim
	if idle := s.now - c.client.lastSent; idle < s.quiet() {
		s.after(s.quiet()-idle, c.closeByClient) // a ping may still be unanswered
		return
	}
	c.closed = true
	c.transmit(&c.client, c.goodbye(), ackLater, func() {
		s.onBroker(60*time.Microsecond, 200*time.Microsecond, func() {
			c.send(&c.broker, flagFIN|flagACK, nil, 0, func() {
				c.send(&c.client, flagACK, nil, 0, func() {})
			})
		})
	})
	s.after(s.between(5*time.Microsecond, 30*time.Microsecond), func() {
		c.send(&c.client, flagFIN|flagACK, nil, 0, func() {})
	})
}
