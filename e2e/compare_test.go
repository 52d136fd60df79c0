package e2e

import (
	"fmt"
	"testing"
	"time"

	"sheaf/engine"
)

// A trial is a fan-out, and what there is to say of it once gateways carried it.
type trial struct {
	fanout
	delivery tally  // what status tells of a delivery; nothing is expected of none
	answer   tally  // the same of a delivery's acknowledgement
	claim    string // README's row that says what a delivery takes
}

// A tally is what status tells messages apart by.
type tally struct{ protocol, message, event string }

func (f trial) String() string {
	s := f.protocol
	if f.qos > 0 {
		s += ", acknowledged"
	}
	if f.far {
		return s + ", published beside the clients"
	}
	return s + ", published beside the broker"
}

// compare runs fan-outs over plain forwarding, then through gateways, and fails
// the test unless every body came to every subscriber once, in order and as it
// was sent, the connections lived, the gateways lost nothing and told of what
// they carried, and the WAN's bytes are as few as README says.
func (l *lab) compare(trials ...trial) {
	t := l.t
	t.Helper()
	plain := make([]*measurement, len(trials))
	l.plainRoutes(true)
	for i := range trials {
		f := &trials[i]
		f.subscribers, f.rate, f.length = 50, 20, 1500*time.Millisecond
		plain[i] = l.try(*f, "plain")
	}
	l.plainRoutes(false)

	gateways := l.tunnel(tunnelOptions{offload: true})
	defer wantNothingLost(t, gateways...)
	for i, f := range trials {
		delivered := 0
		judge(t, func(a *attempt) {
			m := l.try(f, "sheaf")
			delivered += m.Received
			t.Logf("%v: %.1f times fewer bytes", f, plain[i].perMessage()/m.perMessage())
			wantTold(t, gateways[1], f.delivery, delivered)
			wantTold(t, gateways[0], f.answer, delivered)
			a.atMost(f.String(), m.perMessage(), slack*claimed(t, f.claim))
		})
	}
}

// try runs a trial's fan-out and judges what arrived.
func (l *lab) try(f trial, over string) *measurement {
	t := l.t
	t.Helper()
	m := l.fanOut(f.fanout)
	m.report(t, fmt.Sprintf("%v: %s", f, over))
	m.wantComplete(t, f.subscribers)
	if m.Bodies != m.bodies || m.Differ > 0 {
		t.Errorf("%v: %s: what came is not what was sent: digest %x, sent %x; %d subscribers differ from the first", f, over, m.Bodies, m.bodies, m.Differ)
	}
	return m
}

// wantTold fails the test unless a gateway tells of about as many messages as it
// sent: of none fewer, and of some more where a host sent a segment again.
func wantTold(t *testing.T, g *gateway, want tally, sent int) {
	t.Helper()
	if want == (tally{}) {
		return
	}
	told, events := g.told(want)
	if told < sent || told > sent+sent/2 {
		t.Errorf("%s: status tells of %d messages %v, of %d: %+v", g.name, told, want, sent, events)
	}
}

// told returns how many messages a gateway tells that it sent, and all that it tells of.
func (g *gateway) told(want tally) (messages int, events []engine.EventStatus) {
	g.t.Helper()
	for _, lane := range g.mustStatus().Peers[0].Lanes {
		events = append(events, lane.Events...)
		for _, e := range lane.Events {
			if (tally{e.Protocol, e.Message, e.Event}) == want {
				messages += int(e.Messages)
			}
		}
	}
	return messages, events
}
