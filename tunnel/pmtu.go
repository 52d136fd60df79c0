package tunnel

import (
	"errors"
	"time"

	"github.com/quic-go/quic-go"
)

// Packets of a QUIC connection begin at minPacket and grow as far as the path lets
// them (RFC 8899), but quic-go has no way down. Where the path becomes narrower
// while the connection lasts, full packets vanish for good, and so do the lanes'
// bytes in them, while small ones and keepalives pass. What gets out of it is another
// connection, which begins at minPacket and looks for the path's size itself. The
// engine says that a lane gets nothing through ([Lane.Suspect]). A link that is away
// looks alike, for which packets of any size are the same; here the connection answers
// all the same, or the host knows of a narrower path (narrowed).
//
// Either end may close the connection; the one that calls then calls again. Over TCP
// there is nothing to do: see maxSegment.

// tooLarge is a datagram that fits into no packet.
var tooLarge [1 << 16]byte

// packet returns the largest packet that the connection sends at present, without
// IP and UDP. quic-go tells it only as the size of the datagram (RFC 9221) that fits,
// and takes 1 byte for the packet's type, 20 for the connection ID and 16 for the
// tag from it.
func (k *quicConn) packet() int {
	if e, ok := errors.AsType[*quic.DatagramTooLargeError](k.SendDatagram(tooLarge[:])); ok {
		return int(e.MaxDatagramPayloadSize) + 1 + 20 + 16
	}
	return minPacket
}

// raised reports whether the connection sends packets that are larger than those it
// began with.
func (k *quicConn) raised() bool { return k.packet() > minPacket }

// narrowed reports whether the host has learned since the connection began that the
// path takes less than what the connection sends. Who forges what a router would say
// can cause one new connection, as the next one begins with that.
func (k *quicConn) narrowed() bool {
	mtu := pathMTU(k.RemoteAddr())
	size := k.packet() + 20 + 8
	if isIPv6(k.RemoteAddr()) {
		size += 20
	}
	return mtu != 0 && mtu < k.mtu && mtu < size && k.raised()
}

// suspectTime is how long a suspect connection may take to answer: three round trips by
// satellite. suspectTick is how often its count of packets is looked at. Chosen, not
// measured.
const suspectTime, suspectTick = 2 * time.Second, 50 * time.Millisecond

// suspect gives up a connection over which a lane got nothing through, if its packets
// are larger than those of a new one and it answers. A connection that does not is away,
// for whatever reason, and smaller packets would not help.
func (p *Peer) suspect(k *quicConn) {
	switch {
	case k.narrowed():
		p.leave(k)
		return
	case !k.raised() || !k.suspected.CompareAndSwap(false, true):
		return
	}
	p.t.spawn(func() {
		defer k.suspected.Store(false)
		before := k.ConnectionStats().PacketsReceived
		_ = k.SendDatagram(nil) // is acknowledged, as the reset of the lane is
		tick := time.NewTicker(suspectTick)
		defer tick.Stop()
		for end := time.Now().Add(suspectTime); time.Now().Before(end); {
			select {
			case <-tick.C:
			case <-k.Context().Done():
				return
			}
			if k.ConnectionStats().PacketsReceived != before {
				p.leave(k)
				return
			}
		}
	})
}

// leave has the peer forget a connection that is too large for the path, so that
// another one is dialed, and ends it without waiting.
func (p *Peer) leave(k *quicConn) {
	p.dropConn(k, &ResetError{Reason: ReasonPath})
	p.t.spawn(func() { k.close(ReasonPath) })
}
