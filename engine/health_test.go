package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// A lane is what its epochs are, one after the other.
func TestHealth(t *testing.T) {
	var h health
	why := errors.New("why")
	at := func(now time.Duration, away time.Duration, fault string) {
		t.Helper()
		if got := h.away(now); got != away {
			t.Errorf("at %v: away %v, want %v", now, got, away)
		}
		if got := fmt.Sprint(h.fault(now)); got != fault {
			t.Errorf("at %v: fault %q, want %q", now, got, fault)
		}
	}
	at(0, 0, errNoEpoch.Error())
	at(3*time.Second, 3*time.Second, errNoEpoch.Error())
	for i := range flaps + 2 {
		if again := h.end(4*time.Second, why); again != i+1 { // handshakes that fail
			t.Errorf("%d in a row", again)
		}
	}
	at(5*time.Second, 5*time.Second, "why")

	h.begin(6 * time.Second) // they are forgotten
	at(6*time.Second, 0, "<nil>")
	h.end(16*time.Second, why) // it lasted
	at(16*time.Second, 0, "why")
	at(17*time.Second, time.Second, "why")
	for i := range flaps - 1 {
		h.begin(time.Duration(20+i) * time.Second)
		at(time.Duration(20+i)*time.Second, 0, "<nil>")
		if again := h.end(time.Duration(20+i)*time.Second+999*time.Millisecond, why); again != 2+i {
			t.Errorf("%d in a row", again)
		}
	}
	h.begin(30 * time.Second)
	at(30*time.Second, 0, "3 epochs in a row did not last for 10s: why")
	at(40*time.Second-1, 0, "3 epochs in a row did not last for 10s: why")
	at(40*time.Second, 0, "<nil>")
	if again := h.end(40*time.Second, why); again != 1 {
		t.Errorf("%d in a row", again)
	}
}

// A lane that stalls again and again is told of once, and is not up although an
// epoch begins each time.
func TestLaneThatDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wires [][2]*wireEnd
		for range 10 {
			wires = append(wires, wirePair(0, 1<<16))
		}
		var log record
		b := newBenchWith(t, func(i int, l *laneRunner) {
			if i == 0 {
				l.log = log.log()
			}
		}, wires...)
		l := b.ends[0]
		defer b.stop()
		for k, w := range wires[:6] {
			time.Sleep(100 * time.Millisecond)
			half := w[0].out
			half.mu.Lock()
			half.cut = true // what follows the handshake vanishes
			half.mu.Unlock()
			if fault := l.health.fault(time.Since(b.begin)); (fault != nil) != (k >= flaps) {
				t.Errorf("epoch %d: fault %v", k, fault)
			}
			b.send(0, "lost")
			time.Sleep(2100 * time.Millisecond)
		}
		if n := log.count("level=WARN"); n != 1 || log.count("lane does not hold") != 1 || log.count("") != flaps {
			t.Errorf("%s", &log.b)
		}
		time.Sleep(steady)
		if fault := l.health.fault(time.Since(b.begin)); fault != nil || l.epochs.Load() != 7 {
			t.Errorf("after an epoch that lasts: %v; %d epochs", fault, l.epochs.Load())
		}
	})
}

// A peer is up where all of its lanes are.
func TestStatusOfLanes(t *testing.T) {
	clients, broker, _ := userspace(t, echoServer(t), "quic")
	waitUp(t, clients, broker)
	l := clients.g.peers["broker"].lanes[tunnel.ClassBulk]
	for _, fault := range []error{ErrStall, nil} {
		if fault != nil {
			l.health.end(l.clock(), fault)
		} else {
			l.health.begin(l.clock())
		}
		s := clients.g.Status().Peers[0]
		if !s.Connected || s.Up != (fault == nil) || s.Lanes[1].Up != (fault == nil) || !s.Lanes[0].Up ||
			fault != nil && (s.Error != "bulk lane: "+fault.Error() || s.Lanes[1].Fault != fault.Error()) {
			t.Errorf("with %v: %+v", fault, s)
		}
	}
}

func TestCauseOf(t *testing.T) {
	for cause, err := range map[Cause]error{
		CauseVersion:  fmt.Errorf("x: %w: %w", tunnel.ErrProtocol, tunnel.ReasonVersion),
		CauseKey:      tunnel.ErrWrongKey,
		CauseRefused:  tunnel.ErrRefused,
		CauseProtocol: tunnel.ErrProtocol,
		"":            errors.New("no answer"),
		CauseOlder:    &wire.VersionError{Here: wire.Versions{Min: 1, Max: 1}, There: wire.Versions{Min: 2, Max: 2}},
		CauseNewer:    fmt.Errorf("%w: %w", tunnel.ReasonVersion, &wire.VersionError{Here: wire.Versions{Min: 2, Max: 2}, There: wire.Versions{Min: 1, Max: 1}}),
	} {
		if got := CauseOf(&tunnel.PeerError{Peer: "p", Op: "o", Err: err}); got != cause {
			t.Errorf("%v: %q, want %q", err, got, cause)
		}
	}
	if CauseOf(nil) != "" || !strings.Contains(ErrSilent.Error(), "10s") {
		t.Error("no error has a cause")
	}
}
