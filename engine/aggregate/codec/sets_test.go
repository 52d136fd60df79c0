package codec

import (
	"fmt"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
)

// sets returns the sets of a direction's templates that have any, and of its
// acknowledgements, by CID, as both ends have them.
func (x *exchange) sets(d int) (all string) {
	x.t.Helper()
	x.compare(d)
	for i := range x.encoder(d).templates.table {
		if s := x.encoder(d).templates.table[i].set; len(s) > 0 {
			all += cids(s)
		}
	}
	return all + "," + cids(x.encoder(d).ackSet)
}

// A known set survives members that stay away for a while, not for good.
func TestSetsAreLearned(t *testing.T) {
	x := newExchange(t, Config{})
	f := codectest.NewFanout(12)
	send := func(skip int) *frame {
		f.Send(func(int) []byte { return codectest.Publish("t", fmt.Sprint(f.Round), 0) }, func(d int, _ time.Duration, b []byte) {
			if d == 1 && int(b[19]) != skip {
				x.add(1, b)
			}
		})
		return x.send(1)
	}
	send(-1)
	all := x.sets(1)
	if all != "[0 1 2 3 4 5 6 7 8 9 10 11],[]" {
		t.Errorf("the set is %s", all)
	}
	for range setMisses - 1 {
		if g := &send(3).groups[0]; g.source != sourceSet || len(g.Members) != 11 {
			t.Errorf("%d members are listed from source %d", len(g.Members), g.source)
		}
	}
	if got := x.sets(1); got != all {
		t.Errorf("after %d absences %s", setMisses-1, got)
	}
	send(3)
	if got := x.sets(1); got != "[0 1 2 4 5 6 7 8 9 10 11],[]" {
		t.Errorf("after one more absence %s", got)
	}
	send(-1)
	if got := x.sets(1); got != "[0 1 2 4 5 6 7 8 9 10 11 3],[]" {
		t.Errorf("once it is back %s", got)
	}
}

// A set, and what is listed of those that are expected, have at most as many flows as a
// frame has packets; the receivers past them are listed one by one.
func TestSetsAreBounded(t *testing.T) {
	limits := small(4)
	limits.Flows = 40
	x := newExchange(t, Config{Limits: limits})
	f := codectest.NewFanout(15)
	for range 30 {
		f.Send(func(int) []byte { return codectest.Publish("topic", fmt.Sprint(f.Round), 0) }, x.run)
		x.flush(1)
		x.flush(0)
	}
	x.settle()
	most := 0
	for _, s := range x.encoder(1).templates.table {
		most = max(most, len(s.set))
	}
	if most != 4 {
		t.Errorf("a set of %d flows, of 15, with a limit of 4", most)
	}
	if got := len(x.encoder(0).ackSet); got > 4 {
		t.Errorf("%d acknowledge together with a limit of 4", got)
	}
	g := &Group{}
	for i := range 15 {
		x.encoder(0).views.expected.push(cidAt(uint32(i)))
	}
	if got := len(x.encoder(0).candidates(g, sourceExpected, nil)); got != 4 {
		t.Errorf("%d of those expected are listed with a limit of 4", got)
	}
	if got := x.encoder(0).numCandidates(g, sourceExpected); got != 4 {
		t.Errorf("%d of those expected are counted with a limit of 4", got)
	}
}

// The acknowledgements of a message to all are listed from those that are expected, who
// are expected no more then.
func TestAcknowledgementsAreExpected(t *testing.T) {
	x := newExchange(t, Config{})
	f := codectest.NewFanout(6)
	round := func() *frame {
		f.Send(func(int) []byte { return codectest.Publish("t", fmt.Sprint(f.Round), 0) }, func(d int, _ time.Duration, b []byte) { x.add(d, b) })
		x.send(1)
		if got := x.encoder(0).views.expected.count; got != 6 {
			t.Errorf("%d are expected", got)
		}
		up := x.send(0)
		if got := x.encoder(0).views.expected.count + x.decoder(0).views.expected.count; got != 0 {
			t.Errorf("%d are expected that have acknowledged", got)
		}
		return up
	}
	for range 3 {
		f.Send(func(int) []byte { return codectest.Publish("t", fmt.Sprint(f.Round), 0) }, func(d int, _ time.Duration, b []byte) { x.add(d, b); x.flush(d) })
	}
	for i := range 4 {
		if g := &round().groups[0]; g.source != sourceExpected || len(g.Members) != 6 {
			t.Errorf("round %d: %d are listed from source %d", i, len(g.Members), g.source)
		}
	}
}

// Candidates are the set of the first span's template, or of acknowledgements, or those
// that are expected.
func TestCandidates(t *testing.T) {
	var s state
	s.limits.Packets = 10
	n := s.templates.take(1)
	s.templates.at(n).set = members(3, 1)
	s.ackSet = members(2)
	for i := range uint32(3) {
		s.views.expected.push(cidAt(5 + i))
	}
	message, ack := &Group{Spans: []Span{{template: n}, {}}}, &Group{}
	for _, tt := range []struct {
		g    *Group
		from memberSource
		want string
	}{
		{message, sourceNone, "[9]"}, {message, sourceSet, "[9 3 1]"}, {message, sourceExpected, "[9 5 6 7]"},
		{ack, sourceSet, "[9 2]"}, {ack, sourceExpected, "[9 5 6 7]"},
	} {
		var got []setMember
		for _, c := range s.candidates(tt.g, tt.from, []CID{cidAt(9)}) {
			got = append(got, setMember{cid: c})
		}
		if cids(got) != tt.want {
			t.Errorf("source %d: %s, expected %s", tt.from, cids(got), tt.want)
		}
		if tt.from == sourceNone {
			continue
		}
		if n := s.numCandidates(tt.g, tt.from); n != len(got)-1 {
			t.Errorf("source %d: %d are counted, %d listed", tt.from, n, len(got)-1)
		}
	}
}
