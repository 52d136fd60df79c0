package seal_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// A link is two gateways, the clients' and the servers', and what is on its way from each.
type link struct {
	t     tester
	ends  [2]*sealtest.Gateway
	logs  [2]*sealtest.Log
	cfg   [2]seal.Config
	limit [2]int
	way   [2][]sealtest.Message
	count int // segments that arrived
	open  int // of those opened
}

// A tester is a testing.T or a rapid.T.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// newLink returns a link whose tables have room for so many connections.
func newLink(t tester, clients, servers int) *link {
	l := &link{t: t, limit: [2]int{clients, servers}}
	for i := range l.ends {
		l.logs[i] = new(sealtest.Log)
		l.cfg[i] = seal.Config{Served: sealtest.Served, Secrets: l.logs[i]}
		l.ends[i] = sealtest.NewGateway(l.cfg[i], l.limit[i])
	}
	return l
}

// send has a segment of a client's connection pass a gateway.
func (l *link) send(client uint16, s sealtest.Segment) {
	l.t.Helper()
	m := l.ends[s.Side].Send(sealtest.Key(client, s.Side), s)
	l.check(m)
	l.way[s.Side] = append(l.way[s.Side], m)
}

// drop has a gateway forget a flow.
func (l *link) drop(client uint16, side int) {
	l.way[side] = append(l.way[side], l.ends[side].Drop(sealtest.Key(client, side)))
}

// arrive has the oldest message from a side arrive.
func (l *link) arrive(side int) {
	l.t.Helper()
	if len(l.way[side]) == 0 {
		return
	}
	m := l.way[side][0]
	l.way[side] = l.way[side][1:]
	got, err := l.ends[1-side].Receive(m)
	if err != nil {
		l.t.Fatalf("segment %d, of side %d, opened %v, of %d bytes: %v", l.count, side, m.Opened, len(m.Want), err)
	}
	if !bytes.Equal(got, m.Want) {
		at := 0
		for at < min(len(got), len(m.Want)) && got[at] == m.Want[at] {
			at++
		}
		l.t.Fatalf("segment %d, of side %d: %d bytes, want %d, other ones at %d, begins %x", l.count, side, len(got), len(m.Want), at, m.Payload[:min(20, len(m.Payload))])
	}
	l.count++
	if m.Opened {
		l.open++
	}
}

// settle has all messages arrive.
func (l *link) settle() {
	l.t.Helper()
	for side := range l.way {
		for len(l.way[side]) > 0 {
			l.arrive(side)
		}
	}
}

// begin begins an epoch: what is on its way is lost, and with it the tables of the
// gateways that were killed.
func (l *link) begin(killed ...int) {
	for _, i := range killed {
		l.cfg[i] = seal.Config{Served: sealtest.Served, Secrets: l.logs[i]}
		l.ends[i] = sealtest.NewGateway(l.cfg[i], l.limit[i])
	}
	for i := range l.ends {
		l.way[i] = nil
		l.ends[i].Begin()
	}
}

// check holds what the pieces of an opened payload are: one behind the other, and all of it;
// and of one that is not opened: plain, and all of it, where something is known of it.
func (l *link) check(m sealtest.Message) {
	l.t.Helper()
	at := 0
	for _, p := range m.Pieces {
		if m.Opened && (p.From != at || p.At < p.From || p.To < p.At || p.To > len(m.Payload)) {
			l.t.Fatalf("piece %+v behind %d, of %d bytes", p, at, len(m.Payload))
		}
		at = p.To
	}
	if len(m.Pieces) > 0 && !m.Opened {
		n := 0
		for _, p := range m.Pieces {
			n += p.To - p.At
			if !p.Plain {
				l.t.Fatalf("%+v of what is not opened", p)
			}
		}
		if n != len(m.Payload) {
			l.t.Fatalf("pieces have %d of %d bytes", n, len(m.Payload))
		}
		return
	}
	if m.Opened && at != len(m.Payload) {
		l.t.Fatalf("pieces end at %d of %d bytes", at, len(m.Payload))
	}
	if len(m.Secrets) > 512 { // codec's bound
		l.t.Fatalf("%d bytes of secrets", len(m.Secrets))
	}
}

// chooser returns choices that follow from one that rapid draws: its own are mostly of the
// smallest, and a connection has hundreds.
func chooser(t *rapid.T) sealtest.Choose {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	return r.IntN
}

// drawSuite draws a suite.
func drawSuite(t *rapid.T) seal.Suite { return rapid.SampledFrom(seal.Suites()).Draw(t, "suite") }

// TestOpenedSealsToTheSame holds that whatever passes comes out byte for byte: connections
// of any suite whose secrets are known to both ends, one or none, from the start, late or
// wrong, disturbed in any way, and one behind the other on the same ports.
func TestOpenedSealsToTheSame(t *testing.T) {
	opened := 0
	rapid.Check(t, func(t *rapid.T) {
		choose := chooser(t)
		l := newLink(t, 8, 8)
		for n := range 1 + choose(3) {
			c := sealtest.New(drawSuite(t), byte(n), choose)
			c.Odd = choose(2) == 1
			tellSecrets(c, choose, l)
			c.Handshake()
			c.Talk(choose(20))
			all := c.Disturb(c.Segments(choose(4) < 3, choose(2) == 1), choose(12))
			for _, s := range all {
				l.send(0, s)
				for choose(3) > 0 && len(l.way[0])+len(l.way[1]) > 0 {
					l.arrive(choose(2))
				}
			}
		}
		l.settle()
		opened += l.open
	})
	t.Logf("%d segments were opened", opened)
	if opened < 100 {
		t.Errorf("%d segments were opened in all", opened)
	}
}

// tellSecrets has the gateways' logs know a connection's secrets or not.
func tellSecrets(c *sealtest.Conn, choose sealtest.Choose, l *link) {
	for i := range l.logs {
		switch choose(6) {
		case 0, 3:
			l.logs[i].Add(c.Random, c.Secrets, 0)
		case 1:
			l.logs[i].Add(c.Random, c.Secrets, l.logs[i].Asked+choose(40))
		case 2:
			l.logs[i].Add(c.Random, c.Spoil(), 0)
		}
	}
}

// TestAllRecordsAreOpened holds that every protected record is opened where nothing is lost
// and the secrets are there from the start, but for those whose explicit nonce lies in two
// segments, one in two hundred of a bulk, and only in TLS 1.2, and for handshakes that are
// too short to be worth it.
func TestAllRecordsAreOpened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		choose := chooser(t)
		l := newLink(t, 8, 8)
		c := sealtest.New(drawSuite(t), 0, choose)
		ignorant := choose(3) // the end that knows nothing, 2 for none
		for i := range l.logs {
			if i != ignorant {
				l.logs[i].Add(c.Random, c.Secrets, 0)
			}
		}
		c.Handshake()
		missed := 0
		if c.Suite.TLS13() {
			missed = c.Sealed + 2 // and the first of each side's traffic, if it lies in two segments
		}
		c.Talk(20)
		if c.Early || ignorant == sealtest.Server {
			// The servers' gateway learns of them when the connection is under way, and finds
			// its place with the first record that is whole in a segment.
			missed = c.Sealed
		}
		all := c.Segments(true, true)
		for _, s := range all {
			l.send(0, s)
			l.settle()
		}
		a, b := &l.ends[0].Stats, &l.ends[1].Stats
		if got, want := int(a.Records+b.Records), c.Sealed-nonceCuts(c, all); got > want || got < want-missed {
			t.Fatalf("%d records opened of %d, of which %d may be missed", got, want, missed)
		}
	})
}

// nonceCuts counts the records whose explicit nonce lies in two segments.
func nonceCuts(c *sealtest.Conn, all []sealtest.Segment) (n int) {
	if c.Suite.TLS13() || c.Suite == seal.RSAChaCha20Poly1305 || c.Suite == seal.ECDSAChaCha20Poly1305 {
		return 0
	}
	for side := range 2 {
		var stream []byte
		ends := map[int]bool{}
		for _, s := range all {
			if s.Side == side {
				stream = append(stream, s.Payload...)
				ends[len(stream)] = true
			}
		}
		protected := false
		for at := max(0, bytes.IndexByte(stream, 22)); at < len(stream); {
			cut := false
			for i := seal.HeadLen; protected && i < seal.HeadLen+8; i++ {
				cut = cut || ends[at+i]
			}
			if cut {
				n++
			}
			protected = protected || stream[at] == 20
			at += seal.HeadLen + int(stream[at+3])<<8 + int(stream[at+4])
		}
	}
	return n
}
