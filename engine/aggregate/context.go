package aggregate

import (
	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// codeFlow codes a new context: its CID, and its addresses and ports as those
// of the flow in the other direction, turned round, or against the newest.
func (m *memory) codeFlow(c *model.Coder, k kind, mb *member) error {
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
func (m *memory) codeKey(c *model.Coder, k kind, key *parsers.FlowKey) {
	md := &m.models
	old := &m.newest
	n := 16
	key.Version = 6
	if k.v4() {
		n, key.Version = 4, 4
	}
	m.codeAddress(c, 0, old.Src[:n], key.Src[:n])
	m.codeAddress(c, 1, old.Dst[:n], key.Dst[:n])
	for i, port := range [...]*uint16{&key.SrcPort, &key.DstPort} {
		was := [...]uint16{old.SrcPort, old.DstPort}[i]
		if c.Bool(&md.keySame[32+i], *port == was) {
			*port = was
		} else {
			*port = uint16(c.Bits(uint64(*port), 16))
		}
	}
	if k.tcp() {
		key.Proto = protoTCP
		return
	}
	if c.Bool(&md.keySame[34], key.Proto == old.Proto) {
		key.Proto = old.Proto
	} else {
		key.Proto = uint8(c.Bits(uint64(key.Proto), 8))
	}
}

// codeAddress codes the bytes of an address, which is the first or the second of
// its key: against old, of the same length, or as they are where few of them would
// be the same. A byte that is not costs about ten bits against old.
func (m *memory) codeAddress(c *model.Coder, which int, old, b []byte) {
	md := &m.models
	others := 0
	for i := range b {
		if b[i] != old[i] {
			others++
		}
	}
	raw := c.Bool(&md.keyRaw[which], 5*others > 4*len(b))
	for i := range b {
		switch {
		case raw:
			b[i] = byte(c.Bits(uint64(b[i]), 8))
		case c.Bool(&md.keySame[16*which+i], b[i] == old[i]):
			b[i] = old[i]
		default:
			b[i] = old[i] + byte(md.keyStep.Int(c, int64(int8(b[i]-old[i]))))
		}
	}
}
