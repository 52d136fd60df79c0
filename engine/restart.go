package engine

import (
	"net/netip"

	"sheaf/engine/wire"
	"sheaf/netstack"
	"sheaf/parsers"
)

// A peer without a device is the end of the connections that it carries, so they
// end with its run. Hosts learn of it by what they send next, and one that only
// listens may take minutes to do so. This end knows at the next handshake: another
// instance than before is another run. It then says to each of its hosts, or to
// its own stack, what the peer would have said. A peer that has guests beside its stack
// does not call itself that end: connections of guests outlive its run, and one word
// stands for all of them.

// maxStreams bounds the connections that a lane remembers beyond an epoch, at about 60
// bytes each; further ones find out by what they send. Chosen, not measured: six times
// as many connections as e2e holds open.
const maxStreams = 1 << 16

// resetBatch is how many resets are handed out together, which bounds their buffer at
// 4 kB. Chosen, not measured.
const resetBatch = 64

// streams are the connections that a peer ends itself.
type streams struct {
	instance [8]byte                    // of the peer's run; zero before the first handshake
	ends     bool                       // the peer ends connections itself
	next     map[parsers.FlowKey]uint32 // what the peer sent last, by flow
}

// begin notes a peer's hello. If the peer began anew it returns the flows that
// ended with its last run, with the sequence numbers that their hosts expect next.
func (s *streams) begin(h wire.Hello) (over map[parsers.FlowKey]uint32) {
	if h.Instance != s.instance {
		over, s.next = s.next, nil
	}
	s.instance, s.ends = h.Instance, h.Ends
	return over
}

// keep notes the flows of an epoch that ended, as list gives them. The flows of
// earlier epochs stay as long as there is room.
func (s *streams) keep(list func(func(parsers.FlowKey, uint32))) {
	if !s.ends {
		return
	}
	old := s.next
	s.next = make(map[parsers.FlowKey]uint32)
	add := func(key parsers.FlowKey, next uint32) {
		if len(s.next) < maxStreams {
			s.next[key] = next
		}
	}
	list(add)
	for key, next := range old {
		if _, newer := s.next[key]; !newer {
			add(key, next)
		}
	}
}

// reset hands out a reset for each flow, as from the peer.
func (l *laneRunner) reset(flows map[parsers.FlowKey]uint32) {
	if len(flows) == 0 {
		return
	}
	l.log.Info("peer began anew, the connections that ended with it are reset",
		"peer", l.peer, "lane", l.class, "connections", len(flows))
	var buf []byte
	var packets [][]byte
	for key, next := range flows {
		start := len(buf)
		from, to := netip.AddrPortFrom(key.SrcAddr(), key.SrcPort), netip.AddrPortFrom(key.DstAddr(), key.DstPort)
		buf = netstack.AppendReset(buf, from, to, next)
		packets = append(packets, buf[start:len(buf):len(buf)])
		if len(packets) == resetBatch {
			l.accept(packets)
			buf, packets = buf[:0], packets[:0]
		}
	}
	if len(packets) > 0 {
		l.accept(packets)
	}
}
