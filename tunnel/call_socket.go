package tunnel

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/ipv4"
)

// How long a call repeats its first packets where nothing comes back. The next call
// begins a second later and repeats its own. A call that is sparing sends them only
// once, which takes a moment.
const (
	repeatTime  = 700 * time.Millisecond // QUIC repeats after 0.2, 0.6, 1.4 s
	sparingTime = 100 * time.Millisecond
)

// A callSocket is what a call is made through: it tells when anything comes back,
// and ends what goes out in vain.
type callSocket struct {
	*socket
	batch       *ipv4.PacketConn
	answered    func() // until the call is made
	heard       atomic.Bool
	established atomic.Bool
	repeat      time.Duration // for how long, while nothing comes back

	mu    sync.Mutex
	first time.Time // when the first packet was sent
}

func newCallSocket(s *socket, answered func(), sparing bool) *callSocket {
	repeat := repeatTime
	if sparing {
		repeat = sparingTime
	}
	return &callSocket{socket: s, batch: ipv4.NewPacketConn(s.UDPConn), answered: answered, repeat: repeat}
}

// establish says that the call is made.
func (c *callSocket) establish() {
	c.established.Store(true)
	c.socket.establish()
}

// ReadBatch is what quic-go reads with, of either IP version.
func (c *callSocket) ReadBatch(ms []ipv4.Message, flags int) (int, error) {
	n, err := c.batch.ReadBatch(ms, flags)
	if n > 0 && !c.established.Load() {
		c.heard.Store(true)
		c.answered()
	}
	return n, err
}

// WriteMsgUDP implements quic.OOBCapablePacketConn.
func (c *callSocket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	if !c.heard.Load() && c.inVain(time.Now()) {
		return len(b), len(oob), nil
	}
	return c.socket.WriteMsgUDP(b, oob, addr)
}

// inVain reports whether what is sent now has been sent often enough.
func (c *callSocket) inVain(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first.IsZero() {
		c.first = now
	}
	return now.Sub(c.first) > c.repeat
}
