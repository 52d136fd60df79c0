package seal_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// handshakes sends a connection's segments one by one, each arriving at once, and returns
// what was made of them.
func handshakes(l *link, c *sealtest.Conn, between func(i int)) (all []sealtest.Message) {
	l.t.Helper()
	for i, s := range c.Segments(true, false) {
		if between != nil {
			between(i)
		}
		l.send(0, s)
		all = append(all, l.way[s.Side][0])
		l.settle()
	}
	return all
}

// newHandshake returns a link whose servers' gateway has the secrets of a connection that
// has shaken hands.
func newHandshake(t *testing.T, choose sealtest.Choose) (*link, *sealtest.Conn) {
	t.Helper()
	l := newLink(t, 8, 8)
	c := sealtest.New(seal.AES256GCM13, 1, choose)
	l.logs[sealtest.Server].Add(c.Random, c.Secrets, 0)
	c.Handshake()
	return l, c
}

// finishedRecord is how long a Finished of SHA-384 is as a record: head, type and length of
// the message, the hash, content type, tag.
const finishedRecord = 5 + 4 + 48 + 1 + 16

// What follows from a ClientHello that both ends have does not go over the link: the session
// id in the answer, and what both Finished say.
func TestHandshakeFollowsFromItsHello(t *testing.T) {
	l, c := newHandshake(t, plainest)
	m := handshakes(l, c, nil)
	if len(m) != 5 {
		t.Fatalf("%d segments, want two SYNs and three flights", len(m))
	}
	hello, answer, end := m[2], m[3], m[4]
	if !hello.Opened || len(hello.Payload) != len(hello.Want)+2 {
		t.Errorf("the ClientHello is opened: %v, with %d bytes for %d", hello.Opened, len(hello.Payload), len(hello.Want))
	}
	const session, name = 32, 8
	protected := 5 + 16 + 1 // of one record
	mark := 1 + 2           // of one item with its length
	if want := len(answer.Want) - session + 1 + name - (protected + 48) + 2 + 1 + mark; len(answer.Payload) > want {
		t.Errorf("the answer takes %d bytes for %d, want %d at most", len(answer.Payload), len(answer.Want), want)
	}
	if want := []byte{0x20, 0, 6, 20, 3, 3, 0, 1, 1, 10}; !bytes.HasPrefix(end.Payload, want) || len(end.Payload) != len(want)+8 {
		t.Errorf("the client's Finished goes as % x, want % x and a name", end.Payload, want)
	}
	if len(end.Want) != 6+finishedRecord {
		t.Errorf("it has %d bytes", len(end.Want))
	}
}

// A Finished that is not the one foretold goes as it came, and so does one that is foretold
// where the far end forgot it.
func TestFinishedThatIsNotExpected(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil   func(*sealtest.Conn)
		between func(l *link, i int)
	}{
		"another Finished": {spoil: func(c *sealtest.Conn) {
			last := &c.Flights[len(c.Flights)-1]
			last.Bytes[len(last.Bytes)-1] ^= 1
		}},
		"an epoch later":               {between: func(l *link, i int) { l.begin() }},
		"servers' gateway was killed":  {between: func(l *link, i int) { l.begin(sealtest.Server) }},
		"clients' gateway was killed":  {between: func(l *link, i int) { l.begin(sealtest.Client) }},
		"the flow is of a new context": {between: func(l *link, i int) { l.drop(0, sealtest.Client); l.settle() }},
	} {
		l, c := newHandshake(t, plainest)
		if tt.spoil != nil {
			tt.spoil(c)
		}
		m := handshakes(l, c, func(i int) {
			if i == 4 && tt.between != nil {
				tt.between(l, i)
			}
		})
		if end := m[4]; bytes.Contains(end.Payload, []byte{20, 3, 3, 0, 1, 1, 10}) || len(end.Payload) < finishedRecord {
			t.Errorf("%s: the client's Finished goes as % x", name, end.Payload)
		}
	}
}

// A server whose answer has a session id of its own, or whose Finished is wrong, is carried
// with what it says.
func TestAnswerOfItsOwn(t *testing.T) {
	l, c := newHandshake(t, plainest)
	answer := c.Flights[1].Bytes
	answer[5+4+2+32+1] ^= 1 // the first byte of the session id
	if m := handshakes(l, c, nil)[3]; bytes.Equal(m.Payload[:1], []byte{9}) {
		t.Errorf("an answer with another session id is taken for one: % x", m.Payload[:20])
	}
}

// A ClientHello is marked up to a length, since both ends keep it.
func TestMarkedClientHelloIsBounded(t *testing.T) {
	record := func(n int) []byte {
		b := []byte{22, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3}
		b = append(b, make([]byte, n-6)...)
		binary.BigEndian.PutUint16(b[3:], uint16(n))
		binary.BigEndian.PutUint16(b[7:], uint16(n-4))
		return b
	}
	for _, tt := range []struct {
		n  int
		ok bool
	}{{2047, true}, {2048, true}, {2049, false}} {
		l := newLink(t, 8, 8)
		l.send(0, sealtest.Segment{Side: sealtest.Client, Flags: 2})
		l.send(0, sealtest.Segment{Side: sealtest.Client, Flags: 16, Seq: 1, Payload: record(tt.n)})
		if m := l.way[sealtest.Client][1]; m.Opened != tt.ok {
			t.Errorf("%d bytes are marked: %v", tt.n, m.Opened)
		}
		l.settle()
	}
	// what a peer marks is bounded as well
	g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
	key := sealtest.Key(0, sealtest.Client)
	for n, ok := range map[int]bool{2048: true, 2049: false} {
		if _, err := g.Table.Seal(nil, &key, append([]byte{8, 0}, record(n)...)); (err == nil) != ok {
			t.Errorf("%d bytes marked by the peer: %v", n, err)
		}
	}
}
