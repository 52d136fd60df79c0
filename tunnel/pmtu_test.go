package tunnel

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

// narrowPair is a pair over QUIC whose path takes UDP payloads of any size for now.
func narrowPair(t *testing.T) (*pair, *relay) {
	p := newPair(t, []Carrier{QUIC}, nil)
	r := newRelay(t, p.b.Addr())
	p.cfgA.Peers[0].Endpoint = r.front.LocalAddr().String()
	p.a.Close()
	p.a = newTunnel(t, p.cfgA)
	p.toB = p.a.Peer("b")
	return p, r
}

// raise has both ends of a lane send larger packets than those they began with.
func raise(t *testing.T, a, b *Lane) {
	t.Helper()
	eventually(t, "larger packets", func() bool {
		say(t, a, b, "x")
		say(t, b, a, "x")
		return a.conn.raised() && b.conn.raised()
	})
}

// carry sends bytes and returns how many of them arrive in time.
func carry(t *testing.T, from, to *Lane, data []byte, in time.Duration) int {
	t.Helper()
	var writing sync.WaitGroup
	writing.Go(func() {
		from.SetWriteDeadline(time.Now().Add(in))
		from.Write(data)
	})
	defer writing.Wait()
	to.SetReadDeadline(time.Now().Add(in))
	got := make([]byte, len(data))
	n, err := io.ReadFull(to, got)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	if !bytes.Equal(got[:n], data[:n]) {
		t.Error("other bytes arrive")
	}
	return n
}

// Where full packets vanish while small ones pass, either end can have another
// connection dialed, which fits.
func TestPathBecomesNarrower(t *testing.T) {
	data := make([]byte, 64<<10)
	rand.NewChaCha8([32]byte{1}).Read(data)
	for _, end := range []string{"calling", "called"} {
		t.Run(end+" end notices", func(t *testing.T) {
			p, r := narrowPair(t)
			a, b := p.lanes(t, ClassMessages)
			bulkA, bulkB := p.lanes(t, ClassBulk)
			raise(t, a, b)
			const narrow = 1300 - 28
			r.largest.Store(narrow)
			here, there, other, remote := a, b, bulkA, bulkB
			if end == "called" {
				here, there, other, remote = b, a, bulkB, bulkA
			}
			if n := carry(t, here, there, data, 500*time.Millisecond); n == len(data) {
				t.Fatal("the path is not narrower")
			}
			before := p.toB.current()
			here.Reset(ReasonStalled)
			here.Suspect()
			if e := wantReset(t, remote, patience); !e.Remote || e.Reason != ReasonPath {
				t.Errorf("the other end is told %v", e)
			}
			if e := wantReset(t, other, patience); e.Remote || e.Reason != ReasonPath {
				t.Errorf("this end is told %v", e)
			}
			a, b = settle(t, p.toB, p.toA, ClassMessages)
			if a.conn == before {
				t.Error("the connection is the one before")
			}
			for _, d := range []struct{ from, to *Lane }{{a, b}, {b, a}} {
				if n := carry(t, d.from, d.to, data, patience); n != len(data) {
					t.Errorf("%d of %d bytes arrive", n, len(data))
				}
			}
			raise(t, a, b)
			if ka, kb := a.conn.packet(), b.conn.packet(); ka > narrow || kb > narrow {
				t.Errorf("packets of %d and %d bytes on a path that takes %d", ka, kb, narrow)
			}
		})
	}
}

// A connection whose packets are the smallest there are has nothing to gain from
// another one: only the lane begins anew.
func TestNarrowestPath(t *testing.T) {
	p, r := narrowPair(t)
	r.largest.Store(minPacket)
	for range 3 {
		a, b := p.lanes(t, ClassMessages)
		bulkA, bulkB := p.lanes(t, ClassBulk)
		if n := a.conn.packet(); n != minPacket {
			t.Errorf("packets of %d bytes", n)
		}
		a.Reset(ReasonStalled)
		a.Suspect()
		wantReset(t, b, patience)
		time.Sleep(3 * suspectTick)
		say(t, bulkA, bulkB, "still there")
	}
}

// current is the peer's connection.
func (p *Peer) current() *quicConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn
}
