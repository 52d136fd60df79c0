package codec

import (
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// codeContext codes a new context: its CID, and its addresses and ports as those
// of the flow in the other direction, turned round, or against the newest. A broker's
// SYN-ACK so costs a few bits for its whole address, behind the SYN that the peer sent.
func (x *codec) codeContext(kind Kind, mb *Member) error {
	md := &x.models
	reuse := x.coder.Bool(&md.reuse, mb.cid.place() < uint32(len(x.contexts)))
	switch {
	case reuse:
		mb.cid = cidAt(x.coder.Index(mb.cid.place(), uint32(len(x.contexts))))
		if mb.cid.place() >= uint32(len(x.contexts)) {
			return invalid("context number")
		}
	case len(x.contexts) >= int(x.limits.Flows):
		return pastLimit("contexts")
	default:
		mb.cid = cidAt(uint32(len(x.contexts)))
	}
	f := &context{}
	if mb.Flow != nil {
		f.key = mb.Flow.Key
	}
	x.enterContext(mb.cid, f)

	p := &x.views
	if x.coder.Bool(&md.reversed, !mb.reverse.none()) {
		if !p.unpaired.none() && x.coder.Bool(&md.unpaired, mb.reverse == p.unpaired) {
			mb.reverse = p.unpaired
		} else {
			mb.reverse = peerCIDAt(x.coder.Index(mb.reverse.place(), uint32(len(p.table))))
		}
		v := x.viewAt(mb.reverse)
		if v == nil {
			return invalid("other direction unknown")
		}
		f.key = v.key.Reverse()
		x.pair(mb.cid, mb.reverse)
	} else {
		x.codeKey(kind, &f.key)
	}
	if KindOf(&f.key) != kind {
		return invalid("context of another kind")
	}
	x.newest = f.key
	return nil
}

// enterContext gives a CID, which is in use or the next one, to a flow.
func (x *codec) enterContext(c CID, f *context) {
	if c.place() < uint32(len(x.contexts)) {
		if old := x.contexts[c.place()]; x.sealer != nil && old != nil {
			x.sealer.Forget(&old.key)
		}
		x.forget(c)
		x.contexts[c.place()] = f
		x.marks[c.place()] = 0
		return
	}
	x.contexts = append(x.contexts, f)
	x.marks = append(x.marks, 0)
}

// codeKey codes addresses, ports and protocol against those of the newest flow: behind
// 10.1.0.7:40312 to 10.2.0.10:1883 the next client, 10.1.0.8:51840, is one byte of a
// difference of 1, 16 bits of port, and a dozen decisions that the rest is the same.
func (x *codec) codeKey(kind Kind, key *parsers.FlowKey) {
	md := &x.models
	old := &x.newest
	n := 16
	key.Version = 6
	if kind.v4() {
		n, key.Version = 4, 4
	}
	x.codeAddress(0, old.Src[:n], key.Src[:n])
	x.codeAddress(1, old.Dst[:n], key.Dst[:n])
	for i, port := range [...]*uint16{&key.SrcPort, &key.DstPort} {
		was := [...]uint16{old.SrcPort, old.DstPort}[i]
		if x.coder.Bool(&md.keySame[32+i], *port == was) {
			*port = was
		} else {
			*port = uint16(x.coder.Bits(uint64(*port), 16))
		}
	}
	if kind.TCP() {
		key.Proto = ip.TCP
		return
	}
	if x.coder.Bool(&md.keySame[34], key.Proto == old.Proto) {
		key.Proto = old.Proto
	} else {
		key.Proto = uint8(x.coder.Bits(uint64(key.Proto), 8))
	}
}

// codeAddress codes the bytes of an address, which is the first or the second of
// its key: against old, of the same length, or as they are where few of them would
// be the same. A byte that is not costs about ten bits against old.
func (x *codec) codeAddress(which int, old, b []byte) {
	md := &x.models
	others := 0
	for i := range b {
		if b[i] != old[i] {
			others++
		}
	}
	explicit := x.coder.Bool(&md.keyBits[which], 5*others > 4*len(b))
	for i := range b {
		switch {
		case explicit:
			b[i] = byte(x.coder.Bits(uint64(b[i]), 8))
		case x.coder.Bool(&md.keySame[16*which+i], b[i] == old[i]):
			b[i] = old[i]
		default:
			b[i] = old[i] + byte(md.keyStep.Int(&x.coder, int64(int8(b[i]-old[i]))))
		}
	}
}
