package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// storming is what the storm role does: so many MQTT clients on each way, which
// ping every 2 s, give up what does not answer within 5 s, and connect anew after a
// pause that doubles from half a second to 2 s, as common libraries do.
type storming struct {
	Ways    []reachingWay
	Clients int // on each
}

// stormed is its result: when each client of each way was connected last; zero for
// one that is not.
type stormed [][]time.Time

const (
	stormPing   = 2 * time.Second
	stormAnswer = 5 * time.Second
)

func storm(a storming) (*stormed, error) {
	s := make(stormed, len(a.Ways))
	var mu sync.Mutex
	var first sync.WaitGroup // until each was connected once
	for i, w := range a.Ways {
		s[i] = make([]time.Time, a.Clients)
		first.Add(a.Clients)
		for n := range a.Clients {
			once := sync.OnceFunc(first.Done)
			note := func(at time.Time) {
				mu.Lock()
				s[i][n] = at
				mu.Unlock()
				if !at.IsZero() {
					once()
				}
			}
			time.AfterFunc(time.Duration(n)*time.Millisecond, func() { stormClient(w, fmt.Sprintf("storm%d-%05d", i, n), note) })
		}
	}
	first.Wait()
	sayReady()
	untilTold()
	mu.Lock() // for good: what comes later does not count
	return &s, nil
}

// stormClient connects for ever, and says since when it is.
func stormClient(w reachingWay, id string, note func(time.Time)) {
	for pause := stormPing / 4; ; pause = min(2*pause, stormPing) {
		dialer := dialerFrom(w.From)
		dialer.Timeout = stormAnswer
		if c, err := dialer.Dial("tcp", w.Broker.String()); err == nil {
			if stormSession(c, id, func() { note(time.Now()) }) {
				pause = stormPing / 4
			}
			note(time.Time{})
			c.Close()
		}
		time.Sleep(pause/2 + rand.N(pause))
	}
}

// stormSession is connected for as long as the broker answers, and reports whether
// it was at all.
func stormSession(c net.Conn, id string, up func()) bool {
	ask := func(request []byte, answer int) error {
		_ = c.SetDeadline(time.Now().Add(stormAnswer))
		if _, err := c.Write(request); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, answer))
		return err
	}
	if ask(append([]byte{0x10, byte(12 + len(id)), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, byte(len(id))}, id...), 4) != nil {
		return false
	}
	up()
	for {
		time.Sleep(stormPing)
		if ask([]byte{0xc0, 0}, 2) != nil {
			return true
		}
	}
}

// A thousand clients come back after a blackout about as soon as without a tunnel:
// as many go past it, at the same time. It lasts for several of their attempts, so
// that each is anywhere between two of them: past the tunnel they wait for an
// answer, and in front of it, where they are told at once that there is no way, for
// their next attempt.
func TestReconnectStorm(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto("listener 1883 172.16.2.2")
	l.tunnel(tunnelOptions{offload: true})
	a := storming{Ways: l.besides(), Clients: 1000}
	inTime(t, func(within func(string, time.Duration, time.Duration)) {
		h := l.clients().lan.help("storm", a)
		port := l.clients().port
		l.wan.ip("link set " + port + " nomaster")
		time.Sleep(30 * time.Second)
		l.wan.ip("link set " + port + " master br0")
		back := time.Now()
		time.Sleep(12 * time.Second)
		var s stormed
		h.finish(&s)
		var last [2]time.Duration
		for way, clients := range s {
			var took []time.Duration
			for _, at := range clients {
				if at.Before(back) {
					t.Fatalf("way %d: a client is not back after 12 s, or was never away", way)
				}
				took = append(took, at.Sub(back))
			}
			q := newQuantiles(took)
			last[way] = q.Max
			t.Logf("%s: back after %v", []string{"sheaf", "plain"}[way], q)
		}
		within("the last of 1000 is back, later than plain's", last[0]-last[1], time.Second)
	})
}
