package aggregate

import (
	"bytes"

	"sheaf/engine/aggregate/model"
)

// A run is a range of a header whose bytes mean nothing here: IPv4 options, IPv6
// extension headers, and what is in TCP options that neither a column nor the
// layout is for. Such are signatures (RFC 2385, RFC 5925) and the numbers of
// multipath TCP (RFC 8684), which are others in each segment: as a part of the
// layout they would make each segment a layout of its own. So a layout has zeros
// in its runs, and their bytes go beside it where they are not the flow's last.
type run struct{ from, to uint8 }

// The options of TCP that are no runs (RFC 9293 section 3.2, RFC 7323, RFC 2018).
const (
	optionEnd    = 0
	optionNop    = 1
	optionMSS    = 2
	optionWindow = 3
	optionSACK   = 5
	optionStamp  = 8
)

// appendRuns appends the runs of header h, whose IP part has ip bytes. It does not
// look at the bytes in them.
func appendRuns(dst []run, h []byte, ip int, tcp bool) []run {
	fixed := 40
	if h[0]>>4 == 4 {
		fixed = 20
	}
	if ip > fixed {
		dst = append(dst, run{uint8(fixed), uint8(ip)})
	}
	if !tcp {
		return dst
	}
	stamped, sacked := false, false
	for i := ip + 20; i+1 < len(h); {
		switch h[i] {
		case optionNop:
			i++
			continue
		case optionEnd: // what follows is padding
			return append(dst, run{uint8(i + 1), uint8(len(h))})
		}
		n := int(h[i+1])
		if n < 2 || i+n > len(h) {
			break
		}
		known := n == 2
		switch h[i] {
		case optionMSS:
			known = n == 4
		case optionWindow:
			known = n == 3
		case optionSACK:
			known = known || sackBlocks(n) > 0 && !sacked
			sacked = sacked || sackBlocks(n) > 0
		case optionStamp:
			known = n == 10 && !stamped
			stamped = stamped || known
		}
		if !known {
			dst = append(dst, run{uint8(i + 2), uint8(i + n)})
		}
		i += n
	}
	return dst
}

// cut moves the bytes of the runs of h, a header with its fields zeroed, to dst.
func cut(dst, h []byte, runs []run) []byte {
	for _, r := range runs {
		dst = append(dst, h[r.from:r.to]...)
		clear(h[r.from:r.to])
	}
	return dst
}

// paste puts the bytes that cut moved back.
func paste(h, b []byte, runs []run) {
	for _, r := range runs {
		b = b[copy(h[r.from:r.to], b):]
	}
}

// opaque takes the bytes that mean nothing out of a header with its fields zeroed,
// and returns them, borrowed until the next frame.
func (m *Merger) opaque(h []byte, k kind) []byte {
	m.runs = appendRuns(m.runs[:0], h, m.seg.HeaderLen, k.tcp())
	if len(m.runs) == 0 {
		return nil
	}
	w := &m.writer
	start := len(w.texts)
	w.texts = cut(w.texts, h, m.runs)
	return w.texts[start:len(w.texts):len(w.texts)]
}

// codeOpaque codes the bytes of the members' runs: those of the flow's last
// segment, for a flow without any of so many bytes those that came last of all,
// or else as they are, which never costs more than they do.
func (m *memory) codeOpaque(c *model.Coder, g *group, pi int) error {
	some := false
	for i := range g.members {
		some = some || g.members[i].layout.opaque > 0
	}
	if !some {
		return nil
	}
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			mb := &g.members[i]
			if n := mb.layout.opaque; n > 0 && !bytes.Equal(m.expectOpaque(mb.flow, n), mb.opaque) {
				res[i] = 1
			}
		}
	}
	m.models.opaque[pi].Code(c, res)
	var last *flow
	for i := range g.members {
		mb := &g.members[i]
		f, n := mb.flow, mb.layout.opaque
		if n == 0 {
			continue
		}
		if res[i] == 0 {
			b := m.expectOpaque(f, n)
			if b == nil {
				return bad("options unknown")
			}
			o := f.oddity()
			o.opaque = append(o.opaque[:0], b...)
		} else {
			own := f.oddity().opaque[:0]
			for k := range n {
				var b byte
				if !c.Reading() {
					b = mb.opaque[k]
				}
				own = append(own, byte(c.Bits(uint64(b), 8)))
			}
			f.odd.opaque = own
		}
		mb.opaque, last = f.odd.opaque, f
	}
	m.opaque = append(m.opaque[:0], last.odd.opaque...)
	return nil
}

// expectOpaque returns the n bytes that are expected in a flow's runs, nil where
// there are none.
func (m *memory) expectOpaque(f *flow, n int) []byte {
	switch {
	case f.odd != nil && len(f.odd.opaque) == n:
		return f.odd.opaque
	case len(m.opaque) == n:
		return m.opaque
	}
	return nil
}
