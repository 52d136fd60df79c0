package sealtest

import (
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/engine/aggregate/seal"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// Port is that of the server.
const Port = 1883

// Served says that all connections to Port may be opened.
func Served(server netip.AddrPort) bool { return server.Port() == Port }

// Key returns the flow of a side of the connection of a client.
func Key(client uint16, side int) parsers.FlowKey {
	key := parsers.FlowKey{Version: 4, Proto: ip.TCP, SrcPort: 40000, DstPort: Port}
	copy(key.Src[:], []byte{10, 1, byte(client >> 8), byte(client)})
	copy(key.Dst[:], []byte{10, 2, 0, 10})
	if side == Server {
		key = key.Reverse()
	}
	return key
}

// A Gateway does with a Table what a lane does: it opens the segments that it sends, and
// seals those that it receives.
type Gateway struct {
	Table *seal.Table
	Now   time.Duration
	Stats seal.Stats // of the epoch
	flows map[parsers.FlowKey]*seal.Conn
}

// NewGateway returns one whose table has room for so many connections.
func NewGateway(cfg seal.Config, limit int) *Gateway {
	g := &Gateway{Table: seal.NewTable(cfg, limit)}
	g.Begin()
	return g
}

// Begin begins an epoch.
func (g *Gateway) Begin() {
	g.flows = map[parsers.FlowKey]*seal.Conn{}
	g.Stats = seal.Stats{}
	g.Table.Begin(&g.Stats)
}

// A Message is what one gateway tells the other of a segment.
type Message struct {
	Key     parsers.FlowKey
	Forget  bool // the flow is not known any more; there is no segment
	Flags   uint8
	Seq     uint32
	Payload []byte
	Opened  bool
	Secrets []byte
	Pieces  []seal.Piece
	Want    []byte // the payload of the segment
}

// Send opens a segment of a flow.
func (g *Gateway) Send(key parsers.FlowKey, s Segment) Message {
	g.Now += time.Millisecond
	c, known := g.flows[key]
	if !known {
		c = g.Table.Flow(g.Now, &key)
		g.flows[key] = c
	}
	m := Message{Key: key, Flags: s.Flags, Seq: s.Seq, Payload: s.Payload, Want: s.Payload}
	if c == nil {
		return m
	}
	if s.Flags&parsers.FlagSYN != 0 {
		c.Begin(s.Seq)
	}
	if len(s.Payload) > 0 {
		var b []byte
		b, m.Pieces, m.Opened = c.Out.Open(nil, nil, seqnum.Value(s.Seq), s.Payload)
		if !m.Opened && !c.Out.Again {
			var prefix int
			if b, prefix, _, m.Opened = c.AppendHello(nil, s.Payload, 0, 0); m.Opened {
				m.Pieces = []seal.Piece{{At: prefix, To: len(b), Type: handshake, Plain: true, Start: true}}
			}
		}
		if m.Opened {
			m.Payload = b
		}
	}
	m.Secrets = c.Secrets()
	if s.Flags&(parsers.FlagFIN|parsers.FlagRST) != 0 {
		c.End(s.Flags&parsers.FlagRST != 0)
	}
	return m
}

// Drop forgets a flow.
func (g *Gateway) Drop(key parsers.FlowKey) Message {
	if c := g.flows[key]; c != nil {
		c.Drop()
	}
	delete(g.flows, key)
	return Message{Key: key, Forget: true}
}

// Receive returns the payload of a segment that the other gateway sent.
func (g *Gateway) Receive(m Message) ([]byte, error) {
	if m.Forget {
		g.Table.Forget(&m.Key)
		return nil, nil
	}
	if err := g.Table.Tell(&m.Key, m.Secrets); err != nil {
		return nil, err
	}
	if m.Opened {
		b, err := g.Table.Seal(nil, &m.Key, m.Payload)
		if err != nil {
			return nil, err
		}
		m.Payload = b
	}
	const ends = parsers.FlagSYN | parsers.FlagFIN | parsers.FlagRST
	if m.Flags&ends != 0 || len(m.Payload) > 2 && m.Payload[0] == handshake && m.Payload[1] == 3 {
		g.Table.Passed(&m.Key, m.Flags, m.Payload)
	}
	return m.Payload, nil
}
