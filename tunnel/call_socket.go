package tunnel

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
)

// firstFlight is how long the first packets of a call take to leave.
const firstFlight = 100 * time.Millisecond

// A callSocket is what a call is made through: it tells when anything comes back,
// and where the call is sparing sends nothing but its first packets before.
type callSocket struct {
	*socket
	batch    *ipv4.PacketConn
	answered func() // until the call is made
	heard    atomic.Bool
	made     atomic.Bool
	sparing  bool

	mu    sync.Mutex
	first time.Time // when the first packet was sent
}

func newCallSocket(s *socket, answered func(), sparing bool) *callSocket {
	return &callSocket{socket: s, batch: ipv4.NewPacketConn(s.UDPConn), answered: answered, sparing: sparing}
}

// settle says that the call is made.
func (c *callSocket) settle(yes bool) {
	c.made.Store(yes)
	c.socket.settle(yes)
}

// ReadBatch is what quic-go reads with, of either IP version.
func (c *callSocket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	n, err := c.batch.ReadBatch(ms, flags)
	if n > 0 && !c.made.Load() {
		c.heard.Store(true)
		c.answered()
	}
	return n, err
}

// WriteMsgUDP implements quic.OOBCapablePacketConn.
func (c *callSocket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if c.sparing && !c.heard.Load() && c.repeats(time.Now()) {
		return len(b), len(oob), nil
	}
	return c.socket.WriteMsgUDP(b, oob, addr)
}

// repeats reports whether what is sent now is not of the first flight any more.
func (c *callSocket) repeats(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first.IsZero() {
		c.first = now
	}
	return now.Sub(c.first) > firstFlight
}
