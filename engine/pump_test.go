package engine

import (
	"encoding/binary"
	"testing"
	"time"

	"sheaf/parsers/ip"
	"sheaf/tunnel"
)

// routed returns the packets that wait for a lane, by their number in bytes 24 to 27.
func routed(l *laneRunner) (numbers []uint32) {
	for _, p := range l.queue.take(nil) {
		numbers = append(numbers, binary.BigEndian.Uint32(p.data[24:]))
	}
	return numbers
}

// The packets of a read come to their lanes in order, each once, however they are
// mixed; and nothing of a read is left for the next one.
func TestReadIsSortedByLane(t *testing.T) {
	g, _ := hub(t, map[string]string{"broker": "10.2.0.0/24", "other": "10.3.0.0/24"})
	g.replies = newReplies()
	for _, p := range g.peers {
		for i := range p.lanes {
			p.lanes[i] = &laneRunner{stall: time.Second, queue: newQueue(1<<20, time.Hour)}
		}
	}
	ways := []struct {
		dst  string
		port uint16
		lane *laneRunner
	}{
		{"10.2.0.10", 1883, g.peers["broker"].lanes[tunnel.ClassMessages]},
		{"10.2.0.10", 443, g.peers["broker"].lanes[tunnel.ClassBulk]},
		{"10.3.0.10", 1883, g.peers["other"].lanes[tunnel.ClassMessages]},
		{"10.9.0.10", 1883, nil},
	}
	number := uint32(0)
	for read := range 3 {
		var packets [][]byte
		want := make([][]uint32, len(ways))
		for i := range 40 {
			k := (i*i + read) % len(ways)
			p := append(datagram("10.1.0.7", ways[k].dst), make([]byte, 8)...)
			p[9] = ip.TCP
			binary.BigEndian.PutUint16(p[22:], ways[k].port)
			binary.BigEndian.PutUint32(p[24:], number)
			packets = append(packets, p)
			want[k] = append(want[k], number)
			number++
		}
		g.route(0, fromHost, packets...)
		for k, way := range ways {
			if way.lane == nil {
				continue
			}
			got := routed(way.lane)
			if len(got) != len(want[k]) {
				t.Fatalf("read %d, way %d: %d packets of %d", read, k, len(got), len(want[k]))
			}
			for i := range got {
				if got[i] != want[k][i] {
					t.Fatalf("read %d, way %d: %v, want %v", read, k, got, want[k])
				}
			}
		}
	}
	if got := g.unroutable.Load(); got == 0 {
		t.Error("nothing was unroutable")
	}
}

// Sorting a read allocates nothing in the steady state.
func TestRouteDoesNotAllocate(t *testing.T) {
	g, _ := hub(t, map[string]string{"broker": "10.2.0.0/24"})
	l := &laneRunner{stall: time.Second, queue: newQueue(1<<20, time.Hour)}
	for i := range g.peers["broker"].lanes {
		g.peers["broker"].lanes[i] = l
	}
	packets := [][]byte{syn(1), syn(2), syn(3)}
	var batch []packet
	if n := testing.AllocsPerRun(100, func() {
		g.route(0, fromHost, packets...)
		batch = l.queue.take(batch)
		l.queue.recycle(batch)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
