package codec

import (
	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// columns are the fields of all members of a group. They are coded one after the
// other, in this order, each as differences from what the contexts predict.
var columns = [...]struct {
	name string
	has  func(Kind) bool // whether groups of the kind have it
	code func(*codec, *Group) error
}{
	{"layout", all, (*codec).codeLayouts},
	{"opaque options", all, (*codec).codeOpaque},
	{"IPv4 identification", Kind.v4, (*codec).codeID},
	{"IPv6 flow label", Kind.v6, (*codec).codeLabel},
	{"sequence number", Kind.TCP, (*codec).codeSeq},
	{"acknowledgement number", Kind.TCP, (*codec).codeAck},
	{"SACK blocks", Kind.TCP, (*codec).codeSacks},
	{"window", Kind.TCP, (*codec).codeWindow},
	{"TSval", Kind.TCP, (*codec).codeTSval},
	{"TSecr", Kind.TCP, (*codec).codeTSecr},
	{"checksums", all, (*codec).codeSums},
	{"holes", all, (*codec).codeValues},
}

func all(Kind) bool { return true }

// columnsOf are the columns that groups of a kind have: asking each column whether it is
// one of them took 5 % of the time of small groups.
var columnsOf = func() (of [IP6 + 1][]func(*codec, *Group) error) {
	for k := range of {
		for _, c := range columns {
			if c.has(Kind(k)) {
				of[k] = append(of[k], c.code)
			}
		}
	}
	return of
}()

// codeColumns codes the header fields of a group, and what fills its holes.
func (x *codec) codeColumns(g *Group) error {
	for _, code := range columnsOf[g.Kind] {
		if err := code(x, g); err != nil {
			return err
		}
	}
	return nil
}

// A column's code goes the same way at both ends: differences between the members'
// values and what is predicted are worked out, where the values are there, coded, and
// made values again.

// written returns the members whose values are there: all at the writing end, none at the
// reading end, which is about to read them.
func (x *codec) written(g *Group) []Member {
	if x.coder.Reading() {
		return nil
	}
	return g.Members
}

// column returns the scratch for the differences of n members, zeroed.
func (x *codec) column(n int) []int64 {
	if cap(x.residuals) < n {
		x.residuals = make([]int64, n, 2*n)
	}
	x.residuals = x.residuals[:n]
	clear(x.residuals)
	return x.residuals
}

// codeLabel codes the IPv6 flow label: as last time.
func (x *codec) codeLabel(g *Group) error {
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		mb := &g.Members[i]
		res[i] = int64(int32(mb.label - mb.context.label))
	}
	x.models.label[g.payload].Code(&x.coder, res)
	for i := range g.Members {
		mb := &g.Members[i]
		mb.label = mb.context.label + uint32(res[i])
	}
	return nil
}

// codeID codes the IPv4 identification: the last one, or one more, as it went last
// time. A host with a counter of its own for each flow has 7, 8, 9; one that leaves
// it out has 0, 0, 0 (RFC 6864).
func (x *codec) codeID(g *Group) error {
	res := x.column(len(g.Members))
	for i := range g.Members {
		mb := &g.Members[i]
		if !mb.fresh {
			res[i] = int64(int16(mb.id - mb.context.predictID()))
		} else if x.coder.Bool(&x.models.zeroID, mb.id == 0) {
			mb.id = 0
		} else {
			mb.id = uint16(x.coder.Bits(uint64(mb.id), 16)) // random
		}
	}
	x.models.id[g.payload].Code(&x.coder, res)
	for i := range g.Members {
		if mb := &g.Members[i]; !mb.fresh {
			mb.id = mb.context.predictID() + uint16(res[i])
		}
	}
	return nil
}

func (f *context) predictID() uint16 { return f.id + f.idStep }

// codeSeq codes the sequence number: where the flow's last segment ended.
func (x *codec) codeSeq(g *Group) error {
	res := x.column(len(g.Members))
	for i := range g.Members {
		mb := &g.Members[i]
		if base, ok := x.predictSeq(mb.context); ok {
			res[i] = int64(int32(mb.seq - base))
		} else {
			mb.seq = uint32(x.coder.Bits(uint64(mb.seq), 32))
		}
	}
	x.models.seq[g.payload].Code(&x.coder, res)
	for i := range g.Members {
		mb := &g.Members[i]
		if base, ok := x.predictSeq(mb.context); ok {
			mb.seq = base + uint32(res[i])
		}
	}
	return nil
}

// predictSeq returns the sequence number expected next. A flow joined in its
// middle goes on where the other side has acknowledged it: where the peer's last
// segment had ack 1201, the flow's first here has seq 1201.
func (s *state) predictSeq(f *context) (uint32, bool) {
	if f.started {
		return f.end, true
	}
	if v := s.view(f); v != nil && v.hasAck {
		return v.ack, true
	}
	return 0, false
}

// The ways to write an acknowledgement number.
const (
	ackEdge  = 0 // to ackEdge+3: where the other side's segments ended, newest first
	ackSame  = 4 // as last time
	ackOther = 5 // a difference to last time follows
)

// predictAck returns the acknowledgement number that way means. Where the other side's
// last segments ended at 900, 800 and 700, the ways are 900, 800, 700, none, and what
// the flow acknowledged last time: an acknowledgement of every second segment is way 0
// each time, one that lags behind by a segment way 1 each time.
func (s *state) predictAck(f *context, way int) (uint32, bool) {
	v := s.view(f)
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

// codeAck codes the acknowledgement number: where one of the other side's last segments
// ended, mostly the newest.
func (x *codec) codeAck(g *Group) error {
	x.codeWays(len(g.Members), ways{
		column: &x.models.ack[g.payload], explicit: &x.models.ackOther[g.payload], other: ackOther,
		field:   func(i int) *uint32 { return &g.Members[i].ack },
		predict: func(i, way int) (uint32, bool) { return x.predictAck(g.Members[i].context, way) },
		base:    func(i int) uint32 { return g.Members[i].context.ack },
	})
	return nil
}

// ways are the likely values of a field, and what else it is compared with.
type ways struct {
	column   *model.Column                        // which way it is, of each member
	explicit *model.Column                        // differences to base, of those that are none
	other    int                                  // how many ways there are
	field    func(i int) *uint32                  // of the i-th member
	predict  func(i, way int) (v uint32, ok bool) // what a way means; not ok where it means nothing
	base     func(i int) uint32
}

// way returns the first way that fits the i-th member's field, other where none does.
func (w *ways) way(i int) int {
	for way := range w.other {
		if v, ok := w.predict(i, way); ok && v == *w.field(i) {
			return way
		}
	}
	return w.other
}

// codeWays codes a field of n members that has several likely values, as which of
// them it is. What is none of them is a difference to base. So an acknowledgement of
// the other side's newest segment is way 0, of the one before it way 1, and one in
// the middle of a segment is way 5 and a difference.
func (x *codec) codeWays(n int, w ways) {
	res := x.column(n)
	if !x.coder.Reading() { // trying all ways takes long
		for i := range res {
			res[i] = int64(w.way(i))
		}
	}
	w.column.Code(&x.coder, res)
	x.explicit = x.explicit[:0]
	for i := range res {
		if res[i] < 0 || res[i] >= int64(w.other) {
			x.explicit = append(x.explicit, int64(int32(*w.field(i)-w.base(i))))
		} else if x.coder.Reading() {
			*w.field(i), _ = w.predict(i, int(res[i]))
		}
	}
	if len(x.explicit) == 0 {
		return
	}
	w.explicit.Code(&x.coder, x.explicit)
	k := 0
	for i := range res {
		if res[i] < 0 || res[i] >= int64(w.other) {
			*w.field(i) = w.base(i) + uint32(x.explicit[k])
			k++
		}
	}
}

// codeWindow codes the receive window: as last time; one that grew grows by the
// same step again. From behind its SYN on a window is scaled (RFC 7323 section
// 2.2), and then mostly what the newest other flow's became there.
func (x *codec) codeWindow(g *Group) error {
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		mb := &g.Members[i]
		res[i] = int64(int16(mb.window - x.predictWindow(mb.context, g.Flags)))
	}
	x.models.window[g.payload].Code(&x.coder, res)
	for i := range g.Members {
		mb := &g.Members[i]
		mb.window = x.predictWindow(mb.context, g.Flags) + uint16(res[i])
	}
	return nil
}

// predictWindow returns the receive window expected next: 501 and then 503 predict 505.
func (s *state) predictWindow(f *context, flags uint8) uint16 {
	switch {
	case !f.started:
		return s.freshWindow
	case f.opened(flags):
		return s.openWindow
	default:
		return f.window + f.step
	}
}

// opened tells whether a segment with flags is the first behind the flow's SYN.
func (f *context) opened(flags uint8) bool { return f.syn && flags&parsers.FlagSYN == 0 }
