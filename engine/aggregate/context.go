package aggregate

import (
	"sheaf/parsers"
	"sheaf/tunnel/wire"
)

// codeFlow codes a new context: its CID, and its addresses and ports as those
// of the flow in the other direction, turned round, or against the newest.
func (m *memory) codeFlow(c *wire.Coder, k kind, mb *member) error {
	md := &m.models
	if !c.Reading() {
		mb.cid = m.w.assign(mb.flow)
	}
	reuse := c.Bool(&md.reuse, int(mb.cid) < len(m.flows))
	switch {
	case reuse:
		mb.cid = c.Index(mb.cid, uint32(len(m.flows)))
		if int(mb.cid) >= len(m.flows) {
			return bad("context number")
		}
		m.forget(mb.cid)
	case len(m.flows) >= int(m.limits.Flows):
		return bad("too many contexts")
	default:
		mb.cid = uint32(len(m.flows))
		m.flows = append(m.flows, nil)
	}
	f := mb.flow
	if c.Reading() {
		f = &flow{}
		mb.flow, mb.fresh = f, true
	}
	m.flows[mb.cid] = f
	f.cid, f.announced = mb.cid, true

	p := &m.peers
	var peer uint32
	if !c.Reading() {
		peer = m.w.reverse(&f.key)
	}
	if c.Bool(&md.reversed, peer != 0) {
		if p.unpaired != 0 && c.Bool(&md.unpaired, peer == p.unpaired) {
			peer = p.unpaired
		} else {
			peer = c.Index(peer-1, uint32(len(p.views))) + 1
		}
		if int(peer) > len(p.views) || !p.views[peer-1].valid {
			return bad("other direction unknown")
		}
		f.key = p.views[peer-1].key.Reverse()
		m.pair(mb.cid, peer-1)
	} else {
		m.codeKey(c, k, &f.key)
	}
	if kindOf(&f.key) != k {
		return bad("context of another kind")
	}
	m.newest = f.key
	return nil
}

// forget ends the context of a CID.
func (m *memory) forget(cid uint32) {
	if f := m.flows[cid]; f != nil && f.reverse != 0 {
		if v := &m.peers.views[f.reverse-1]; v.own == cid+1 {
			v.own = 0
		}
	}
	m.peers.owing.remove(cid)
	m.flows[cid] = nil
}

// codeKey codes addresses, ports and protocol against those of the newest flow.
func (m *memory) codeKey(c *wire.Coder, k kind, key *parsers.FlowKey) {
	md := &m.models
	old := &m.newest
	n := 16
	key.Version = 6
	if k.v4() {
		n, key.Version = 4, 4
	}
	for i := range n {
		key.Src[i] = m.codeKeyByte(c, i, old.Src[i], key.Src[i])
	}
	for i := range n {
		key.Dst[i] = m.codeKeyByte(c, 16+i, old.Dst[i], key.Dst[i])
	}
	for i, port := range [...]*uint16{&key.SrcPort, &key.DstPort} {
		was := [...]uint16{old.SrcPort, old.DstPort}[i]
		if c.Bool(&md.keySame[32+i], *port == was) {
			*port = was
		} else {
			*port = uint16(c.Raw(uint64(*port), 16))
		}
	}
	if k.tcp() {
		key.Proto = protoTCP
		return
	}
	if c.Bool(&md.keySame[34], key.Proto == old.Proto) {
		key.Proto = old.Proto
	} else {
		key.Proto = uint8(c.Raw(uint64(key.Proto), 8))
	}
}

func (m *memory) codeKeyByte(c *wire.Coder, i int, old, b byte) byte {
	if c.Bool(&m.models.keySame[i], b == old) {
		return old
	}
	return old + byte(m.models.keyStep.Int(c, int64(int8(b-old))))
}
