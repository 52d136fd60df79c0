package tunnel

import (
	"io"
	"testing"
	"time"
)

// TestOverhead measures what a QUIC packet costs that carries one frame of 50
// bytes, one each way every 50 ms, in bytes of IPv4 over the frame's own, with
// everything that the connection sends besides. It is what Lane.Overhead and the
// replay command count with.
func TestOverhead(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	for _, test := range []struct {
		name  string
		delay time.Duration // one way
		wait  time.Duration // before the second end's frame
	}{
		{"40 ms away", 20 * time.Millisecond, 0},
		{"40 ms away, answered after 5 ms", 20 * time.Millisecond, 5 * time.Millisecond},
		{"near, where half of the acknowledgements travel alone", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const frame, frames, period = 50, 100, 50 * time.Millisecond
			p := newPair(t, []Carrier{QUIC}, nil)
			r := newSlowRelay(t, p.b.Addr(), test.delay)
			cfg := p.cfgA
			cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: r.front.LocalAddr().String()}}
			a, b := openBoth(t, newTunnel(t, cfg).Peer("b"), p.toA, ClassMessages)
			body := make([]byte, frame)
			round := func() {
				next := time.After(period)
				a.Write(body)
				io.ReadFull(b, make([]byte, frame))
				time.Sleep(test.wait)
				b.Write(body)
				io.ReadFull(a, make([]byte, frame))
				<-next
			}
			for range 40 { // MTU discovery, connection IDs
				round()
			}
			measure := func() float64 {
				packets := -r.upPackets.Load() - r.downPackets.Load()
				bytes := -r.upBytes.Load() - r.downBytes.Load()
				up, down := -r.upBytes.Load(), -r.downBytes.Load()
				before := a.conn.ConnectionStats()
				for range frames {
					round()
				}
				packets += r.upPackets.Load() + r.downPackets.Load()
				bytes += r.upBytes.Load() + r.downBytes.Load()
				up += r.upBytes.Load()
				down += r.downBytes.Load()
				const ipUDP = 28
				cost := float64(bytes+ipUDP*packets)/(2*frames) - frame
				t.Logf("%.1f bytes over each frame's own; %d packets for %d frames; UDP payload up %.1f, down %.1f a frame; %d sent",
					cost, packets, 2*frames, float64(up)/frames-frame, float64(down)/frames-frame, a.conn.ConnectionStats().PacketsSent-before.PacketsSent)
				return cost
			}
			for attempt := 1; ; attempt++ {
				cost := measure()
				if test.delay == 0 || cost >= overheadQUIC-8 && cost <= overheadQUIC+8 {
					return
				}
				if attempt == 3 { // on a machine that is late, acknowledgements travel alone
					t.Fatalf("%.1f bytes, but Overhead says %d", cost, overheadQUIC)
				}
			}
		})
	}
}
