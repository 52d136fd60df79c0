package aggregate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
	"sheaf/parsers/builtin"
)

// tlsLane is a lane whose two ends open the TLS connections to codectest's broker, and those
// connections.
type tlsLane struct {
	*pair
	cfg    Config
	limit  int // connections in a table
	logs   [2]*sealtest.Log
	tables [2]*seal.Table
	time   time.Duration
	ids    [2]uint16
	opened uint64   // records, in epochs that have ended
	frames [][]byte // all of them, if keep is set
	keep   bool
}

func newTLSLane(t tester, cfg Config, limit int) *tlsLane {
	t.Helper()
	l := &tlsLane{pair: &pair{t: t}, cfg: cfg, limit: limit}
	l.cfg.Registry = builtin.Registry()
	for i := range l.logs {
		l.logs[i] = new(sealtest.Log)
		l.tables[i] = l.table(i)
	}
	l.begin()
	return l
}

func (l *tlsLane) table(i int) *seal.Table {
	return seal.NewTable(seal.Config{Served: sealtest.Served, Secrets: l.logs[i]}, l.limit)
}

// begin begins an epoch; what is on its way is lost, and the tables of the gateways that
// were killed.
func (l *tlsLane) begin(killed ...int) {
	l.t.Helper()
	l.opened = l.records()
	for _, i := range killed {
		l.tables[i] = l.table(i)
	}
	*l.pair = pair{t: l.t, late: true, long: true}
	for i := range l.ends {
		cfg := l.cfg
		cfg.TLS = l.tables[i]
		var err error
		if l.ends[i], err = NewLane(cfg); err != nil {
			l.t.Fatal(err)
		}
	}
}

// records returns how many were opened.
func (l *tlsLane) records() uint64 {
	n := l.opened
	for _, end := range l.ends {
		if end != nil {
			n += end.Merger.Stats().TLS.Records
		}
	}
	return n
}

// maxSegment is how much a packet of send holds at most.
const maxSegment = 1<<16 - 1 - 20 - 32

// send has a segment of a client's connection pass.
func (l *tlsLane) send(client int, s sealtest.Segment) {
	l.t.Helper()
	l.time += 50 * time.Microsecond
	l.ids[s.Side]++
	packet := segment{
		Client: client, Down: s.Side == sealtest.Server, ID: l.ids[s.Side], Seq: s.Seq, Flags: s.Flags, Window: 500,
		TSval: uint32(l.time / time.Millisecond), TSecr: 1, Payload: s.Payload[:min(len(s.Payload), maxSegment)],
	}
	l.due(l.time)
	l.add(s.Side, l.time, packet.Packet())
	l.due(l.time)
}

// due flushes what is due, by its own clock.
func (l *tlsLane) due(now time.Duration) {
	l.t.Helper()
	l.pair.due(now)
	if l.keep {
		for d := range l.way {
			if n := len(l.way[d]); n > 0 {
				l.frames = append(l.frames, l.way[d][n-1].frame)
			}
		}
	}
}

// arrive has all frames arrive that are on their way.
func (l *tlsLane) arrive() {
	l.t.Helper()
	for d := range l.way {
		for len(l.way[d]) > 0 {
			l.deliver(d)
		}
	}
}

// pass has segments pass, and all frames arrive at once.
func (l *tlsLane) pass(client int, all []sealtest.Segment) {
	l.t.Helper()
	for _, s := range all {
		l.send(client, s)
		l.time += 6 * time.Millisecond
		l.due(l.time)
		l.arrive()
	}
}

func chooser(t *rapid.T) sealtest.Choose {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).IntN
}

// TestLanesOpenTLS holds that all packets come out as they were where lanes open TLS:
// connections of any kind, disturbed, with frames that take their time and cross, epochs
// that end anywhere, gateways that are killed, and tables and contexts that are few.
func TestLanesOpenTLS(t *testing.T) {
	opened := uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		opened += lanesOpenTLS(t, chooser(t))
	})
	t.Logf("%d records were opened", opened)
	if opened < 100 {
		t.Errorf("%d records were opened in all", opened)
	}
}

// lanesOpenTLS returns how many records were opened.
func lanesOpenTLS(t tester, choose sealtest.Choose) uint64 {
	t.Helper()
	cfg := Config{}
	if choose(2) == 1 {
		cfg.Limits = small(2 + choose(7))
	}
	l := newTLSLane(t, cfg, 2+choose(7))
	streams := make([][]sealtest.Segment, 1+choose(6))
	for client := range streams {
		c := sealtest.New(seal.Suites()[choose(9)], byte(client), choose)
		c.Odd = choose(4) == 3
		for i := range l.logs {
			if choose(3) > 0 {
				l.logs[i].Add(c.Random, c.Secrets, choose(20))
			}
		}
		c.Handshake()
		c.Talk(choose(12))
		all := c.Segments(true, choose(2) == 1)
		if choose(2) == 1 {
			all = c.Disturb(all, choose(5))
		}
		streams[client] = all
	}
	for left := len(streams); left > 0; {
		client := choose(len(streams))
		switch choose(400) {
		case 399:
			l.begin([][]int{nil, {0}, {1}, {0, 1}}[choose(4)]...)
		case 350, 351, 352, 353:
			l.deliver(choose(2))
		case 354, 355, 356, 357, 358, 359:
			l.time += time.Duration(choose(30)) * time.Millisecond
			l.due(l.time)
		default:
			if choose(4) > 0 {
				l.time += 6 * time.Millisecond
				l.due(l.time)
				l.arrive()
			}
			if len(streams[client]) == 0 {
				continue
			}
			l.send(client, streams[client][0])
			if streams[client] = streams[client][1:]; len(streams[client]) == 0 {
				left--
			}
		}
	}
	l.settle(l.time + time.Second)
	return l.records()
}

// fanout returns a lane with so many connections of a suite that are under way.
func fanout(t tester, suite seal.Suite, n int) (*tlsLane, []*sealtest.Conn) {
	t.Helper()
	l := newTLSLane(t, Config{}, 2*n)
	conns := make([]*sealtest.Conn, n)
	for i := range conns {
		c := sealtest.New(suite, byte(i), func(int) int { return 0 })
		l.logs[sealtest.Server].Add(c.Random, c.Secrets, 0)
		c.Handshake()
		l.pass(i, c.Segments(true, false))
		conns[i] = c
	}
	return l, conns
}

// say has the server say the same to all, and returns how many bytes of frames it took.
func (l *tlsLane) say(conns []*sealtest.Conn, text string) int {
	l.t.Helper()
	before := l.bytes[1]
	for i, c := range conns {
		c.Data(sealtest.Server, codectest.Publish("plant/7", text, 0))
		for _, s := range c.Segments(false, false) {
			l.send(i, s)
		}
	}
	l.settle(l.time)
	return l.bytes[1] - before
}

// What a server says to many inside TLS is said once, as it is without.
func TestAlikeInsideTLS(t *testing.T) {
	for _, suite := range seal.Suites() {
		const n = 20
		l, conns := fanout(t, suite, n)
		bytes := 0
		for i := range 20 {
			bytes = l.say(conns, fmt.Sprintf(`{"temp":%d}`, 20+i%5))
		}
		if bytes > 60 {
			t.Errorf("%v: a message to %d costs %d bytes", suite, n, bytes)
		}
	}
}

// A new epoch, with one of the gateways killed or none, opens the connections again with
// the second segment of each.
func TestNewEpochOpensAgain(t *testing.T) {
	for _, suite := range seal.Suites() {
		for name, killed := range map[string][]int{"none": nil, "clients'": {0}, "servers'": {1}} {
			const n = 8
			l, conns := fanout(t, suite, n)
			for i := range 10 {
				l.say(conns, fmt.Sprintf(`{"temp":%d}`, 20+i%5))
			}
			l.begin(killed...)
			for i, c := range conns { // something goes up, too
				c.Data(sealtest.Client, []byte("\xc0\x00"))
				l.pass(i, c.Segments(false, false))
			}
			l.say(conns, `{"temp":7}`)
			before := l.ends[1].Merger.Stats().TLS.Records
			l.say(conns, `{"temp":8}`)
			if got := l.ends[1].Merger.Stats().TLS.Records - before; got != n {
				t.Errorf("%v, killed %s: %d of %d records are opened", suite, name, got, n)
			}
		}
	}
}

// The same packets at the same times give the same frames.
func TestSameTLSSameFrames(t *testing.T) {
	run := func() [][]byte {
		l := newTLSLane(t, Config{Limits: small(4)}, 3)
		l.keep = true
		choose := rand.New(rand.NewPCG(1, 1)).IntN
		for client := range 12 {
			c := sealtest.New(seal.Suites()[client%9], byte(client), choose)
			l.logs[client%2].Add(c.Random, c.Secrets, 0)
			c.Handshake()
			c.Talk(10)
			l.pass(client%5, c.Disturb(c.Segments(true, false), 6))
			if client == 6 {
				l.begin()
			}
		}
		return l.frames
	}
	a, b := run(), run()
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d frames and %d", len(a), len(b))
	}
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			t.Fatalf("frame %d of two runs differs", i)
		}
	}
}

// An opened payload is no longer than a packet: a segment of 64 kB in which plain records of
// no length lie between protected ones is carried like any other.
func TestOpenedPayloadFitsAPacket(t *testing.T) {
	l, conns := fanout(t, seal.AES128GCM13, 1)
	conns[0].Data(sealtest.Server, []byte("a"))
	s := conns[0].Segments(false, false)[0]
	s.Payload = bytes.Clone(s.Payload)
	for len(s.Payload) < maxSegment {
		s.Payload = append(s.Payload, 21, 3, 3, 0, 0) // an alert of no length
	}
	before := l.records()
	s.Payload = s.Payload[:maxSegment]
	l.send(0, s)
	l.settle(l.time + time.Second)
	if l.records() != before+1 {
		t.Error("the segment was not opened")
	}
}

// Secrets count for what a frame holds: with those of thousands of connections it is full
// sooner.
func TestSecretsCountForAFrame(t *testing.T) {
	l, conns := fanout(t, seal.AES256GCM13, 1)
	l.begin()
	conns[0].Data(sealtest.Server, []byte("down"))
	s := conns[0].Segments(false, false)[0]
	l.send(0, s)
	p := &l.ends[1].Merger.pending
	secrets := len(p.list[0].Secrets)
	const header = 20 + 32
	if most := header + packetOverhead + len(s.Payload) + secrets; secrets < 48 || p.beside+len(p.store) < header+packetOverhead+secrets || p.beside+len(p.store) > most {
		t.Errorf("%d bytes and %d, with %d of secrets", p.beside, len(p.store), secrets)
	}
}
