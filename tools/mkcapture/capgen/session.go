package capgen

import "time"

// A login says how a client begins its session.
type login struct {
	clientID string
	topics   []string // subscribed to; may be empty
	qos      byte
}

// settle is the quiet time between the last connection and the steady load.
const settle = 1600 * time.Millisecond

// connectAll opens a connection for each client, a fraction of a millisecond
// apart, and returns them with the time at which the steady load may begin.
func (s *sim) connectAll(loginOf func(i int) login) ([]*conn, time.Duration) {
	conns := make([]*conn, s.cfg.Clients)
	var start time.Duration
	for i := range conns {
		c := s.newConn(i)
		conns[i] = c
		l := loginOf(i)
		s.at(start, func() { c.logIn(l) })
		start += s.between(100*time.Microsecond, 500*time.Microsecond)
	}
	return conns, start + 4*s.cfg.RTT + settle
}

// logIn runs the handshakes, CONNECT and SUBSCRIBE.
func (c *conn) logIn(l login) {
	s := c.sim
	keepAlive := uint16(60)
	if c.index%10 == 3 {
		keepAlive = 3 // some ping within the length of a short capture
	}
	c.handshake(func() {
		s.after(s.between(300*time.Microsecond, 1500*time.Microsecond), func() {
			c.upgrade(func() { c.connect(l, keepAlive) })
		})
	})
}

func (c *conn) connect(l login, keepAlive uint16) {
	s := c.sim
	c.message(&c.client, appendConnect(nil, l.clientID, keepAlive), ackNow, func() {
		s.onBroker(50*time.Microsecond, 120*time.Microsecond, func() {
			c.message(&c.broker, appendConnAck(nil), ackNow, func() {
				c.keepAlive(time.Duration(keepAlive) * time.Second)
				c.subscribe(l)
			})
		})
	})
}

func (c *conn) subscribe(l login) {
	if len(l.topics) == 0 {
		return
	}
	s := c.sim
	s.after(s.between(time.Millisecond, 4*time.Millisecond), func() {
		c.packetID++
		id := c.packetID
		c.message(&c.client, appendSubscribe(nil, id, l.qos, l.topics), ackLater, func() {
			s.onBroker(30*time.Microsecond, 100*time.Microsecond, func() {
				c.message(&c.broker, appendSubAck(nil, id, l.qos, len(l.topics)), ackLater, func() {
					c.packetID = 0 // from here on it counts PUBLISH messages
				})
			})
		})
	})
}

// keepAlive sends a PINGREQ whenever the client has been silent for an interval.
func (c *conn) keepAlive(interval time.Duration) {
	s := c.sim
	s.at(c.client.lastSent+interval, func() {
		if c.closed {
			return
		}
		if s.now >= c.client.lastSent+interval {
			c.message(&c.client, []byte{mqttPingReq, 0}, ackLater, func() {
				s.onBroker(20*time.Microsecond, 200*time.Microsecond, func() {
					c.message(&c.broker, []byte{mqttPingResp, 0}, ackNow, func() {})
				})
			})
		}
		c.keepAlive(interval)
	})
}

// deliver sends a PUBLISH from the broker to the client, which acknowledges it
// with QoS 1.
func (c *conn) deliver(topic string, qos byte, body []byte) {
	s := c.sim
	if qos > 0 {
		c.nextPacketID()
	}
	id := c.packetID
	c.message(&c.broker, appendPublish(nil, topic, qos, id, body), ackNow, func() {
		if qos == 0 {
			return
		}
		s.after(s.between(200*time.Microsecond, 3*time.Millisecond), func() {
			// A broker reads a batch of these before its TCP owes anything: most are
			// acknowledged late, by the next message.
			c.message(&c.client, appendPubAck(nil, id), c.someLater(3), func() {})
		})
	})
}

// publish sends a PUBLISH from the client, which the broker acknowledges with
// QoS 1.
func (c *conn) publish(topic string, qos byte, body []byte) {
	s := c.sim
	if qos == 0 {
		c.message(&c.client, appendPublish(nil, topic, 0, 0, body), ackNow, func() {})
		return
	}
	c.nextPacketID()
	id := c.packetID
	c.message(&c.client, appendPublish(nil, topic, qos, id, body), ackLater, func() {
		s.onBroker(100*time.Microsecond, 250*time.Microsecond, func() {
			c.message(&c.broker, appendPubAck(nil, id), ackNow, func() {})
		})
	})
}

// nextPacketID counts on; 0 is not an identifier (section 2.3.1).
func (c *conn) nextPacketID() {
	c.packetID++
	if c.packetID == 0 {
		c.packetID = 1
	}
}

// someLater is ackLater in all but one of n cases.
func (c *conn) someLater(n int) ackMode {
	if c.sim.rng.IntN(n) == 0 {
		return ackNow
	}
	return ackLater
}

// quiet is long enough for all that the last message leads to.
func (s *sim) quiet() time.Duration { return 100*time.Millisecond + 2*s.cfg.RTT }

// closeAll ends all sessions, a fraction of a millisecond apart, from a time on
// or when the broker has done its work.
func (s *sim) closeAll(conns []*conn, from time.Duration) {
	s.at(from, func() {
		if s.brokerFree > s.now {
			s.closeAll(conns, s.brokerFree+s.quiet())
			return
		}
		for _, c := range conns {
			s.at(from, c.closeByClient)
			from += s.between(100*time.Microsecond, 400*time.Microsecond)
		}
	})
}
