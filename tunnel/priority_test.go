package tunnel

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// A narrow link passes one datagram after the other, at a rate, from a queue
// that drops what does not fit.
type narrow struct {
	front, back *net.UDPConn
	rate        int // bytes a second
}

func newNarrow(t *testing.T, target net.Addr, rate, queue int) *narrow {
	t.Helper()
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	back, err := net.DialUDP("udp", nil, target.(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	n := &narrow{front, back, rate}
	client := make(chan net.Addr, 1)
	up := make(chan []byte, queue)
	go func() {
		defer close(up)
		b := make([]byte, 1<<16)
		for first := true; ; first = false {
			k, from, err := front.ReadFrom(b)
			if err != nil {
				return
			}
			if first {
				client <- from
			}
			select {
			case up <- slices.Clone(b[:k]):
			default:
			}
		}
	}()
	go func() {
		free := time.Now()
		for b := range up {
			if now := time.Now(); free.Before(now) {
				free = now
			}
			free = free.Add(time.Duration(len(b)) * time.Second / time.Duration(rate))
			time.Sleep(time.Until(free))
			back.Write(b)
		}
	}()
	go func() {
		b := make([]byte, 1<<16)
		to := <-client
		for {
			k, err := back.Read(b)
			if err != nil {
				return
			}
			front.WriteTo(b[:k], to)
		}
	}()
	t.Cleanup(func() {
		front.Close()
		back.Close()
	})
	return n
}

// TestBulkDoesNotDelayMessages fills a link of 2 Mbit/s with bulk. A message may
// wait for the queue of the link, 20 packets or about 110 ms, and a few packets
// more, but not for the bulk that is waiting at the sender.
func TestBulkDoesNotDelayMessages(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	n := newNarrow(t, p.b.Addr(), 250_000, 20)
	cfg := p.cfgA
	cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: n.front.LocalAddr().String()}}
	toB := newTunnel(t, cfg).Peer("b")
	m, mb := openBoth(t, toB, p.toA, ClassMessages)
	bulk, bb := openBoth(t, toB, p.toA, ClassBulk)
	go io.Copy(io.Discard, bb)
	go func() {
		chunk := make([]byte, 256<<10)
		for {
			if _, err := bulk.Write(chunk); err != nil {
				return
			}
		}
	}()
	time.Sleep(time.Second)
	var took []time.Duration
	for range 15 {
		start := time.Now()
		say(t, m, mb, "a message of fifty bytes or so, as they often are")
		took = append(took, time.Since(start))
		time.Sleep(30 * time.Millisecond)
	}
	slices.Sort(took)
	t.Logf("beside bulk a message takes %v at the median, %v at most", took[7], took[14])
	if took[7] > 500*time.Millisecond {
		t.Error("messages wait for bulk")
	}
}
