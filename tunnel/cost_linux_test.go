package tunnel

import (
	"io"
	"testing"
	"time"
)

// TestNoECN sees on the socket itself that acknowledgements carry no ECN counts,
// which a relay in user space would hide.
func TestNoECN(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	a, b := p.lanes(t, ClassMessages)
	body := make([]byte, 50)
	round := func() {
		next := time.After(20 * time.Millisecond)
		a.Write(body)
		io.ReadFull(b, make([]byte, 50))
		time.Sleep(10 * time.Millisecond)
		b.Write(body)
		io.ReadFull(a, make([]byte, 50))
		<-next
	}
	for range 50 {
		round()
	}
	before := a.conn.ConnectionStats()
	const rounds = 50
	for range rounds {
		round()
	}
	after := a.conn.ConnectionStats()
	packets := after.PacketsSent - before.PacketsSent + after.PacketsReceived - before.PacketsReceived
	bytes := after.BytesSent - before.BytesSent + after.BytesReceived - before.BytesReceived
	cost := float64(bytes+28*packets)/float64(packets) - 50
	t.Logf("%.1f bytes a packet, %d packets for %d frames", cost, packets, 2*rounds)
	if packets < 2*rounds+10 && cost > 62 {
		t.Errorf("%.1f bytes a packet: are there ECN counts?", cost)
	}
}
