package aggregate

import (
	"fmt"

	"sheaf/engine/wire"
)

// ErrLength tells that bytes cannot be one IP packet: there are none, or more than
// wire.MaxPacket, as in a jumbogram (RFC 2675) or a super-segment (BIG TCP).
var ErrLength = fmt.Errorf("aggregate: an IP packet has 1 to %d bytes", wire.MaxPacket)

// maxStore bounds the bodies of one frame, which may all become literals.
const maxStore = wire.MaxFrame / 4

const (
	// frameOverhead and packetOverhead are how many bytes a frame can be longer than
	// its packets together, at most, where each packet is unlike all before and of a
	// flow of its own.
	frameOverhead  = 16
	packetOverhead = 40
	// maxContent bounds what a frame can come to: the next packet fits as well.
	maxContent = wire.MaxFrame - wire.MaxPacket - packetOverhead - frameOverhead
)

// fills tells whether the next packet might go past what a frame can hold.
func (m *Merger) fills() bool {
	p, l, packets := &m.pending, &m.cfg.Limits, m.schedule.packets
	return packets >= int(l.Packets) || packets >= int(l.Flows) || p.bytes > int(l.Bytes)-wire.MaxPacket ||
		len(p.store) >= maxStore || len(p.store)+p.beside >= maxContent
}
