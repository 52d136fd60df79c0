package engine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/wire"
	"sheaf/parsers/builtin"
	"sheaf/tunnel"
)

// malformedFrame says that it is longer than any frame.
var malformedFrame = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}

// wrongDigest is the first frame of a lane, with the digest of other packets.
func wrongDigest(t *testing.T) []byte {
	t.Helper()
	frame := firstFrame(t, 1)
	frame[1]++ // the first byte of the digest
	return frame
}

// firstFrame is the first frame of a lane with so many packets of no protocol.
func firstFrame(t *testing.T, packets int) []byte {
	t.Helper()
	lane, err := aggregate.NewLane(aggregate.Config{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	for range packets {
		if err := lane.Merger.Add(0, []byte{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
	}
	return lane.Merger.Flush(nil, 0, aggregate.FlushEnd)
}

// frugal is what a program says that takes 8 packets a frame.
func frugal() wire.Hello {
	h := ownHello([8]byte{}, false)
	h.Limits.Packets = 8
	return h
}

// pastLimits is a frame of more packets than who is frugal takes.
func pastLimits(t *testing.T) []byte { return firstFrame(t, 9) }

// What is wrong in an epoch is told to the peer as what it is.
func TestPeerThatSpeaksNonsense(t *testing.T) {
	for name, test := range map[string]struct {
		says []byte
		told tunnel.Reason
	}{
		"no frame": {malformedFrame, tunnel.ReasonMalformed},
		"digest":   {wrongDigest(t), tunnel.ReasonCorrupt},
		"limit":    {pastLimits(t), tunnel.ReasonLimit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wirePair(0, 1<<16)
				if _, err := w[1].Write(append(wire.AppendHello(nil, frugal()), test.says...)); err != nil {
					t.Fatal(err)
				}
				b := newBench(t)
				defer b.stop()
				err := b.ends[0].epoch(t.Context(), w[0])
				if reason, _ := errors.AsType[tunnel.Reason](err); !errors.Is(err, ErrPeer) || reason != test.told {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// What has no packet's length is left out and counted; the epoch goes on.
func TestImpossibleLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(0, 1<<16))
		defer b.stop()
		b.send(0, "before")
		b.ends[0].queue.put(time.Since(b.begin), nil, make([]byte, wire.MaxPacket+1))
		b.send(0, "after")
		time.Sleep(time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[before after]" {
			t.Errorf("arrived: %s", got)
		}
		if sent, _ := b.ends[0].snapshot(); sent.Refused != 2 || sent.Packets != 2 {
			t.Errorf("%d packets sent, %d refused", sent.Packets, sent.Refused)
		}
		if got := b.ends[0].epochs.Load(); got != 1 {
			t.Errorf("%d epochs", got)
		}
	})
}

// A fault of the codec ends the epoch, not the process.
func TestOwnFaultEndsTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(0, 1<<16), wirePair(0, 1<<16))
		defer b.stop()
		time.Sleep(time.Second)
		b.ends[0].mu.Lock()
		e := b.ends[0].now
		b.ends[0].mu.Unlock()
		e.mu.Lock()
		e.lane.Merger = aggregate.Merger{} // as broken as can be
		e.mu.Unlock()
		b.send(0, "lost")
		time.Sleep(5 * time.Second)
		why := b.ends[0].health.last()
		if !errors.Is(why, ErrOwn) {
			t.Errorf("the epoch ended for %v", why)
		}
		b.send(0, "after")
		time.Sleep(time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[after]" {
			t.Errorf("arrived: %s", got)
		}
	})
}

// What an epoch has counted, the messages of each event too, outlives it.
func TestTotalsKeepMessages(t *testing.T) {
	lane, err := aggregate.NewLane(aggregate.Config{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	l := &laneRunner{}
	for range 2 {
		stats := lane.Merger.Stats()
		stats.Packets, stats.Messages = 3, map[aggregate.EventKey]*aggregate.EventStats{{Event: "plant/4"}: {Messages: 5}}
		e := &epoch{runner: l, lane: lane, got: Received{Packets: 7}}
		e.addTotals()
	}
	sent, got := l.snapshot()
	if e := sent.Messages[aggregate.EventKey{Event: "plant/4"}]; sent.Packets != 6 || got.Packets != 14 || e == nil || e.Messages != 10 {
		t.Errorf("sent %+v, received %+v", sent, got)
	}
}
