package seal_test

import (
	"net/netip"
	"testing"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// plainest chooses the plainest of everything.
func plainest(int) int { return 0 }

// Both ends of a bridge between brokers may be named as servers, and each gateway then
// takes its own side for the client.
func TestEachEndMayTakeItsOwnForTheClient(t *testing.T) {
	l := newLink(t, 8, 8)
	c := sealtest.New(seal.AES128GCM13, 0, plainest)
	for i := range l.ends {
		l.cfg[i].Served = func(netip.AddrPort) bool { return true }
		l.logs[i].Add(c.Random, c.Secrets, 0)
		l.ends[i] = sealtest.NewGateway(l.cfg[i], 8)
	}
	c.Handshake()
	c.Talk(5)
	for _, s := range c.Segments(true, true) {
		l.send(0, s)
		l.settle()
	}
}

// A connection may have more keys than can be told one behind the other, where others
// follow it on the same ports and no SYN was seen: they are told anew.
func TestMoreKeysThanCanBeTold(t *testing.T) {
	l := newLink(t, 8, 8)
	next := [2]uint32{1, 1}
	for n := range 6 {
		c := sealtest.New(seal.AES256GCM13, byte(n), plainest)
		for i := range l.logs {
			l.logs[i].Add(c.Random, c.Secrets, 0)
		}
		c.Handshake()
		c.Talk(5)
		open := l.open
		for _, f := range c.Flights {
			l.send(0, sealtest.Segment{Side: f.Side, Flags: 0x10, Seq: next[f.Side], Payload: f.Bytes})
			l.settle()
			next[f.Side] += uint32(len(f.Bytes))
		}
		if l.open == open {
			t.Errorf("nothing of connection %d was opened", n)
		}
	}
}
