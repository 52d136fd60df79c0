package seal_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// TestEpochsEndAnywhere holds that all comes out byte for byte where epochs end at any
// moment, with gateways killed or not, where flows lose their contexts, and where tables
// are full.
func TestEpochsEndAnywhere(t *testing.T) {
	opened := 0
	rapid.Check(t, func(t *rapid.T) { opened += epochs(t, chooser(t)) })
	t.Logf("%d segments were opened", opened)
	if opened < 100 {
		t.Errorf("%d segments were opened in all", opened)
	}
}

// epochs returns how many segments were opened.
func epochs(t tester, choose sealtest.Choose) int {
	t.Helper()
	l := newLink(t, 2+choose(7), 2+choose(7))
	var streams [][]sealtest.Segment
	for n := range 1 + choose(6) {
		c := sealtest.New(seal.Suites()[choose(len(seal.Suites()))], byte(n), choose)
		c.Odd = choose(4) == 3
		tellSecrets(c, choose, l)
		c.Handshake()
		c.Talk(choose(20))
		all := c.Segments(true, choose(2) == 1)
		if choose(2) == 1 {
			all = c.Disturb(all, choose(6))
		}
		streams = append(streams, all)
	}
	for left := len(streams); left > 0; {
		client := choose(len(streams))
		side := choose(2)
		switch choose(50) {
		case 49:
			l.begin([][]int{nil, {0}, {1}, {0, 1}}[choose(4)]...)
		case 48:
			l.drop(uint16(client), side)
		case 40, 41, 42, 43, 44, 45, 46, 47:
			l.arrive(side)
		default:
			if len(streams[client]) > 0 {
				l.send(uint16(client), streams[client][0])
				if streams[client] = streams[client][1:]; len(streams[client]) == 0 {
					left--
				}
			}
			if choose(8) > 0 {
				l.settle()
			}
		}
	}
	l.settle()
	return l.open
}

// Connections that once ended an epoch: a gateway was told what the other had wiped, since
// it had no room to see an end, or it went on with what had ended before it was killed.
func TestEpochsThatFailed(t *testing.T) {
	for _, seed := range []uint64{6993, 16428, 46488, 67449, 69232, 89722} {
		epochs(t, rand.New(rand.NewPCG(seed, 0)).IntN)
	}
}

// What ended before a gateway was killed, and goes on behind it, is opened again, and its
// keys stay until it ends again.
func TestWhatGoesOnIsNotOver(t *testing.T) {
	l, c := newLink(t, 8, 8), sealtest.New(seal.AES128GCM13, 1, plainest)
	l.logs[1].Add(c.Random, c.Secrets, 0)
	pass := func(all []sealtest.Segment) (opened bool) {
		t.Helper()
		for _, s := range all {
			l.send(0, s)
			opened = l.way[s.Side][0].Opened
			l.settle()
		}
		return opened
	}
	say := func(side int) bool {
		t.Helper()
		c.Data(side, []byte("text"))
		return pass(c.Segments(false, false))
	}
	c.Handshake()
	pass(c.Segments(true, false))
	say(sealtest.Client)
	ends := c.Segments(false, true)
	pass(ends[:1]) // the client's
	l.begin(0)
	say(sealtest.Server)
	say(sealtest.Client)
	if !say(sealtest.Client) {
		t.Error("the client's direction is not opened again")
	}
	pass(ends[1:])
	say(sealtest.Client)
}

// TestOpenedAgain holds that a connection is opened again in a new epoch, as long as one
// of the gateways was not killed: the first segment each way tells the keys, and what
// comes behind those is opened.
func TestOpenedAgain(t *testing.T) {
	for _, suite := range seal.Suites() {
		for name, killed := range map[string][]int{"none": nil, "clients": {0}, "servers": {1}} {
			for knows, who := range []string{"clients", "servers", "both"} {
				t.Run(suite.String()+", killed "+name+", known to "+who, func(t *testing.T) {
					openedAgain(t, suite, knows, killed)
				})
			}
		}
	}
}

// again are how many segments each way may pass before those that are opened.
const again = 2

func openedAgain(t *testing.T, suite seal.Suite, knows int, killed []int) {
	l := newLink(t, 8, 8)
	c := sealtest.New(suite, 1, func(int) int { return 0 })
	for i := range l.logs {
		if i == knows || knows == 2 {
			l.logs[i].Add(c.Random, c.Secrets, 0)
		}
	}
	c.Handshake()
	for side := range 2 {
		c.Data(side, []byte("before"))
		c.Update(side)
		c.Data(side, []byte("before"))
	}
	all := c.Segments(true, false)
	handshake := len(all)
	for range 10 {
		c.Data(sealtest.Client, []byte("behind"))
		c.Data(sealtest.Server, []byte("behind"))
	}
	for i, s := range append(all, c.Segments(false, false)...) {
		if i == handshake {
			for range 2 {
				l.begin(killed...)
				l.begin()
			}
		}
		l.send(0, s)
		m := l.way[s.Side][0]
		if i >= handshake+2*again && !m.Opened {
			t.Errorf("segment %d behind the epoch's beginning, of side %d, is not opened", i-handshake, s.Side)
		}
		l.settle()
	}
}
