package seal

import (
	"time"

	"sheaf/parsers"
	"sheaf/parsers/tls"
)

// A Conn is what one gateway knows of a TLS connection: it opens the direction that it
// sends, and seals the one that it receives.
type Conn struct {
	Out Opener
	In  Sealer

	table      *Table
	key        parsers.FlowKey // of the direction that is sent
	fromClient bool            // that is the client's
	index      int             // in table.all
	used       time.Duration
	sending    bool // the Merger knows the flow
	receiving  bool // the peer has a context for the other direction
	closed     bool // nothing more of the direction that is sent is opened
	over       bool // nothing more comes of the other
	ended      bool // closed at any time: what the peer says it keeps, it may forget at any moment

	random, serverRandom       [RandomLen]byte
	hasRandom, hasServerRandom bool
	suite                      Suite // 0 until it is known
	theirs                     [stages]known
	said                       [stages]saidBefore
	untold                     bool // some of theirs may have to be told
	certificates               bool // the server asks the client for one
	complete                   bool // nothing more can be learnt of the secrets
	asked                      int
	counted                    bool // among the connections that were opened
	refused                    bool // among those with a suite that is not known
}

// opens says whether the connection may be opened here.
func (c *Conn) opens() bool { return c.table.allows(&c.key, c.fromClient) }

// trusted says whether the peer may tell of the connection: its end there is one that the
// peer may send from.
func (c *Conn) trusted() bool {
	trusted := c.table.cfg.Trusted
	return trusted == nil || trusted(c.key.DstAddr())
}

// TLS13 says whether the connection is known to be of TLS 1.3.
func (c *Conn) TLS13() bool { return c.suite.TLS13() }

// hello takes in the beginning of a ClientHello or a ServerHello. Either may come first:
// they are of two directions, and a capture is of one place.
func (c *Conn) hello(b []byte) {
	if random, ok := tls.ClientRandom(b); ok {
		if c.hasRandom && random != c.random {
			c.forget()
		}
		c.random, c.hasRandom = random, true
		c.ask()
		return
	}
	random, suite, retry, ok := tls.ServerHello(b)
	if !ok {
		return
	}
	if retry { // in TLS 1.3, with the suite that is to be (RFC 8446 section 4.1.4)
		c.suite = Suite(suite)
		return
	}
	if c.hasServerRandom && random != c.serverRandom {
		c.forget()
	}
	c.serverRandom, c.hasServerRandom, c.suite = random, true, Suite(suite)
	if !c.suite.Known() && !c.refused {
		c.refused = true
		c.table.stats.refuse(c.suite)
	}
	c.ask()
}

// forget forgets the secrets of the connection before, which had the same ports.
func (c *Conn) forget() {
	c.Out.unkey()
	for i := range c.theirs {
		clear(c.theirs[i].material)
	}
	c.theirs = [stages]known{}
	c.certificates = false
	c.hasRandom, c.hasServerRandom, c.suite, c.untold, c.complete, c.asked, c.counted, c.refused = false, false, 0, false, false, 0, false, false
}

const (
	// A connection's secrets are asked for with each of its first records, and with
	// every so many of those behind.
	eagerAsks = 32
	lazyAsks  = 64
)

// ask looks whether the source has secrets of the connection.
func (c *Conn) ask() {
	source := c.table.cfg.Secrets
	if c.complete || source == nil || !c.hasRandom || !c.suite.Known() || !c.opens() {
		return
	}
	if c.asked++; c.asked > eagerAsks && c.asked%lazyAsks != 0 {
		return
	}
	s := source.Secrets(&c.random)
	defer s.clear()
	if !c.suite.TLS13() {
		if len(s.Master) == 0 || !c.hasServerRandom {
			return
		}
		c.complete = true
		client, server, err := Derive12(c.suite, s.Master, c.random[:], c.serverRandom[:])
		if err != nil {
			return
		}
		c.set(stageTraffic, client, server)
		clear(client)
		clear(server)
		return
	}
	c.set(stageHandshake, s.ClientHandshake, s.ServerHandshake)
	c.set(stageTraffic, s.ClientTraffic, s.ServerTraffic)
	c.complete = len(s.ClientTraffic) > 0 && len(s.ServerTraffic) > 0
}

// set takes in material of both directions, borrowed for the call.
func (c *Conn) set(s stage, client, server []byte) {
	own, other := server, client
	if c.fromClient {
		own, other = client, server
	}
	if !c.Out.keys.has(s, own) {
		if keys, err := NewKeys(c.suite, own); err == nil {
			c.Out.keys.learn(s, keys, 0, false)
		}
	}
	if k := &c.theirs[s]; k.material == nil && len(other) == c.suite.SecretLen() {
		*k = known{suite: c.suite, material: append([]byte(nil), other...)}
		c.untold = true
	}
}

// renew begins an epoch: the peer knows nothing.
func (c *Conn) renew() {
	c.sending, c.receiving = false, false
	c.Out.anew()
	if k := c.In.keys; k != nil {
		c.theirs[stageHandshake] = known{}
		c.theirs[c.In.stage] = known{k.Suite(), append([]byte(nil), k.Material()...), c.In.number, false}
	}
	for s := range c.theirs {
		c.theirs[s].told = false
	}
	c.unsay()
	c.untold = true
	c.In.Clear()
}

// unsay forgets what was said, which the far end does not refer to any more.
func (c *Conn) unsay() {
	for i := range c.said {
		clear(c.said[i].material)
		c.said[i] = saidBefore{}
	}
}

// count counts an opened record with n bytes of content.
func (c *Conn) count(n int) {
	s := c.table.stats
	s.Records++
	s.Bytes += uint64(n)
	if !c.counted {
		c.counted = true
		s.Connections++
	}
}

// carried counts protected records that were not opened.
func (c *Conn) carried(records uint64) {
	why := CarriedSecrets
	switch {
	case c.suite != 0 && !c.suite.Known():
		why = CarriedSuite
	case c.Out.keys.spared(&c.Out):
		why = CarriedShort
	case c.Out.keys.any():
		why = CarriedMismatch
	}
	c.table.stats.Carried[why] += records
}

// Passed counts protected records that somebody else has found in a segment, while it is
// not known here where records begin.
func (c *Conn) Passed(records uint64) {
	if c.Out.lost {
		c.carried(records)
	}
}
