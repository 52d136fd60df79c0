package aggregate

import "sheaf/engine/aggregate/model"

// codeColumns codes the fields of a group, one column after the other, as
// differences from what the contexts predict.
func (m *memory) codeColumns(c *model.Coder, g *group, pi int) error {
	if err := m.codeLayouts(c, g, pi); err != nil {
		return err
	}
	if err := m.codeOpaque(c, g, pi); err != nil {
		return err
	}
	if g.kind.v4() {
		m.codeID(c, g, pi)
	} else {
		m.column(c, g, pi, colLabel, func(mb *member) *uint32 { return &mb.label },
			func(mb *member) uint32 { return mb.flow.label })
	}
	if g.kind.tcp() {
		m.codeSeq(c, g, pi)
		m.codeAck(c, g, pi)
		m.codeSacks(c, g)
		m.codeWindow(c, g, pi)
		m.codeStamp(c, g, pi)
		m.codeEcho(c, g, pi)
	}
	if err := m.codeSums(c, g, pi); err != nil {
		return err
	}
	return m.codeValues(c, g)
}

// room returns the scratch column for n members, zeroed.
func (m *memory) room(n int) []int64 {
	if cap(m.residuals) < n {
		m.residuals = make([]int64, n, 2*n)
	}
	m.residuals = m.residuals[:n]
	clear(m.residuals)
	return m.residuals
}

// column codes a field of 32 bits whose prediction needs no more than the flow.
func (m *memory) column(c *model.Coder, g *group, pi, col int, field func(*member) *uint32, predict func(*member) uint32) {
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			res[i] = int64(int32(*field(mb) - predict(mb)))
		}
	}
	m.models.columns[pi][col].Code(c, res)
	if c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			*field(mb) = predict(mb) + uint32(res[i])
		}
	}
}

// codeID codes the IPv4 identification: the last one, or one more.
func (m *memory) codeID(c *model.Coder, g *group, pi int) {
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			res[i] = int64(int16(mb.id - mb.flow.id - mb.flow.idStep))
		}
	}
	for i := range g.members {
		if mb := &g.members[i]; mb.fresh { // random, or zero
			if !c.Bool(&m.models.zeroID, mb.id == 0) {
				mb.id = uint16(c.Bits(uint64(mb.id), 16))
			} else {
				mb.id = 0
			}
			res[i] = 0
		}
	}
	m.models.columns[pi][colID].Code(c, res)
	for i := range g.members {
		if mb := &g.members[i]; c.Reading() && !mb.fresh {
			mb.id = mb.flow.id + mb.flow.idStep + uint16(res[i])
		}
	}
}

// codeSeq codes the sequence number: where the flow's last segment ended.
func (m *memory) codeSeq(c *model.Coder, g *group, pi int) {
	res := m.room(len(g.members))
	for i := range g.members {
		mb := &g.members[i]
		if base, ok := m.expectSeq(mb.flow); !ok {
			mb.seq = uint32(c.Bits(uint64(mb.seq), 32))
		} else {
			res[i] = int64(int32(mb.seq - base))
		}
	}
	m.models.columns[pi][colSeq].Code(c, res)
	if c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			if base, ok := m.expectSeq(mb.flow); ok {
				mb.seq = base + uint32(res[i])
			}
		}
	}
}

// expectSeq returns the sequence number expected next. A flow joined in its
// middle goes on where the other side has acknowledged it.
func (m *memory) expectSeq(f *flow) (uint32, bool) {
	if f.started {
		return f.end, true
	}
	if v := m.view(f); v != nil && v.acked {
		return v.ack, true
	}
	return 0, false
}

// The ways to write an acknowledgement number.
const (
	ackEdge   = 0 // to ackEdge+3: where the other side's segments ended, newest first
	ackSame   = 4 // as last time
	ackOther  = 5 // a difference to last time follows
	echoEdge  = 0 // the timestamp of the segment acknowledged, or the newest
	echoNew   = 1 // the other side's newest timestamp
	echoSame  = 2 // as last time
	echoOlder = 3 // the timestamp of the segment before the one acknowledged
	echoOther = 4 // a difference to the newest, or to last time, follows
)

// expectAck returns the acknowledgement number that way means.
func (m *memory) expectAck(f *flow, way int) (uint32, bool) {
	v := m.view(f)
	switch {
	case way == ackSame:
		return f.ack, true
	case v == nil || v.count == 0:
		return f.ack, way == ackEdge
	case way < v.count && way < ackSame:
		return v.edges[way].end, true
	}
	return 0, false
}

func (m *memory) codeAck(c *model.Coder, g *group, pi int) {
	m.codeWays(c, len(g.members), ways{
		column: &m.models.columns[pi][colAck], explicit: &m.models.explicit[pi][0], other: ackOther,
		field:  func(i int) *uint32 { return &g.members[i].ack },
		expect: func(i, way int) (uint32, bool) { return m.expectAck(g.members[i].flow, way) },
		base:   func(i int) uint32 { return g.members[i].flow.ack },
	})
}

// ways are the likely values of a field, and what else it is compared with.
type ways struct {
	column   *model.Column                        // which way it is, of each member
	explicit *model.Column                        // differences to base, of those that are none
	other    int                                  // how many ways there are
	field    func(i int) *uint32                  // of the i-th member
	expect   func(i, way int) (v uint32, ok bool) // what a way means; not ok where it means nothing
	base     func(i int) uint32
}

// codeWays codes a field of n members that has several likely values, as which of
// them it is: ways are tried in their order, so the first that fits is used. What is
// none of them is a difference to base.
func (m *memory) codeWays(c *model.Coder, n int, w ways) {
	res := m.room(n)
	others := 0
	if !c.Reading() {
		for i := range res {
			way := 0
			for ; way < w.other; way++ {
				if v, ok := w.expect(i, way); ok && v == *w.field(i) {
					break
				}
			}
			res[i] = int64(way)
		}
	}
	w.column.Code(c, res)
	for i := range res {
		if res[i] < 0 || res[i] >= int64(w.other) {
			others++
		} else if c.Reading() {
			*w.field(i), _ = w.expect(i, int(res[i]))
		}
	}
	if others == 0 {
		return
	}
	m.extras = m.extras[:0]
	for i := range res {
		if res[i] < 0 || res[i] >= int64(w.other) {
			m.extras = append(m.extras, int64(int32(*w.field(i)-w.base(i))))
		}
	}
	w.explicit.Code(c, m.extras)
	if c.Reading() {
		k := 0
		for i := range res {
			if res[i] < 0 || res[i] >= int64(w.other) {
				*w.field(i) = w.base(i) + uint32(m.extras[k])
				k++
			}
		}
	}
}

// codeWindow codes the receive window: as last time; one that grew grows by the
// same step again. From behind its SYN on a window is scaled (RFC 7323 section
// 2.2), and then mostly what that of the newest other flow became there.
func (m *memory) codeWindow(c *model.Coder, g *group, pi int) {
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			res[i] = int64(int16(mb.window - m.expectWindow(g, mb)))
		}
	}
	m.models.columns[pi][colWindow].Code(c, res)
	if c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			mb.window = m.expectWindow(g, mb) + uint16(res[i])
		}
	}
}

func (m *memory) expectWindow(g *group, mb *member) uint16 {
	switch f := mb.flow; {
	case !f.started:
		return m.freshWindow
	case f.opened(g.flags):
		return m.openWindow
	default:
		return f.window + f.step
	}
}

// opened tells whether a segment with flags is the first behind the flow's SYN.
func (f *flow) opened(flags uint8) bool { return f.syn && flags&flagSYN == 0 }

// codeSums codes what the checksums are, and those that are nothing that can be
// computed. Both modes of a segment are one number: where neither is as last time
// the other mostly is not either.
func (m *memory) codeSums(c *model.Coder, g *group, pi int) error {
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			if mb.ipSumMode != ipSumRight {
				mb.ipSumMode = ipSumRaw
				if mb.ipSum == mb.flow.ipSum {
					mb.ipSumMode = ipSumSame
				}
			}
			res[i] = int64(mb.sums()) - int64(mb.flow.sums)
		}
	}
	m.models.columns[pi][colSum].Code(c, res)
	limit := int64(numSumModes)
	if g.kind.v4() {
		limit *= int64(numIPSumModes)
	}
	for i := range g.members {
		mb := &g.members[i]
		if c.Reading() {
			mode := int64(mb.flow.sums) + res[i]
			if mode < 0 || mode >= limit {
				return bad("checksum mode")
			}
			mb.sumMode, mb.ipSumMode = sumMode(mode%int64(numSumModes)), ipSumMode(mode/int64(numSumModes))
		}
		switch mb.ipSumMode {
		case ipSumSame:
			mb.ipSum = mb.flow.ipSum
		case ipSumRaw:
			mb.ipSum = uint16(c.Bits(uint64(mb.ipSum), 16))
		}
		if mb.sumMode == sumRaw {
			mb.sum = uint16(c.Bits(uint64(mb.sum), 16))
		}
	}
	return nil
}

// sums returns both checksum modes as one number.
func (f *fields) sums() uint8 { return uint8(numSumModes)*uint8(f.ipSumMode) + uint8(f.sumMode) }
