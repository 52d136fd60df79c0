package codec

import "bytes"

// A run is a range of a header whose bytes are opaque here: IPv4 options, IPv6
// extension headers, and what is in TCP options that neither a column nor the
// layout is for. Such are signatures (RFC 2385, RFC 5925) and the numbers of
// multipath TCP (RFC 8684), which are others in each segment: as a part of the
// layout they would make each segment a layout of its own. So a layout has zeros
// in its runs, and their bytes go beside it where they are not the flow's last.
type run struct{ from, to uint8 }

// The options of TCP that are no runs (RFC 9293 section 3.2, RFC 7323, RFC 2018).
const (
	optionEnd        = 0
	optionNop        = 1
	optionMSS        = 2
	optionWindow     = 3
	optionSACK       = 5
	optionTimestamps = 8
)

// appendRuns appends the runs of header h, whose IP part has ip bytes. It does not
// look at the bytes in them.
func appendRuns(dst []run, h []byte, ip int, tcp bool) []run {
	fixed := v6Len
	if h[0]>>4 == 4 {
		fixed = v4Len
	}
	if ip > fixed {
		dst = append(dst, run{uint8(fixed), uint8(ip)})
	}
	if !tcp {
		return dst
	}
	stamped, sacked := false, false
	for i := ip + tcpLen; i+1 < len(h); {
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
		case optionTimestamps:
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

// options are where the values begin of those options of a TCP header that change
// from segment to segment; 0 where there is none.
type options struct {
	tsval  int // of the first timestamp option (RFC 7323 section 3.2)
	sack   int // of the first SACK option with blocks (RFC 2018 section 3)
	blocks int // of it
}

func optionsOf(tcp []byte) (o options) {
	for i := tcpLen; i+1 < len(tcp); {
		switch tcp[i] {
		case optionEnd:
			return o
		case optionNop:
			i++
			continue
		}
		n := int(tcp[i+1])
		if n < 2 || i+n > len(tcp) {
			return o
		}
		switch {
		case tcp[i] == optionTimestamps && n == 10 && o.tsval == 0:
			o.tsval = i + 2
		case tcp[i] == optionSACK && sackBlocks(n) > 0 && o.sack == 0:
			o.sack, o.blocks = i+2, sackBlocks(n)
		}
		i += n
	}
	return o
}

// codeOpaque codes the bytes of the members' runs: those of the flow's last
// segment, for a flow without any of so many bytes those that came last of all,
// or else as they are, which never costs more than they do.
func (x *codec) codeOpaque(g *Group) error {
	some := false
	for i := range g.Members {
		some = some || g.Members[i].layout.opaque > 0
	}
	if !some {
		return nil
	}
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		mb := &g.Members[i]
		if n := mb.layout.opaque; n > 0 && !bytes.Equal(x.predictOpaque(mb.context, n), mb.opaque) {
			res[i] = 1
		}
	}
	x.models.opaque[g.payload].Code(&x.coder, res)
	var last *context
	for i := range g.Members {
		mb := &g.Members[i]
		f, n := mb.context, mb.layout.opaque
		if n == 0 {
			continue
		}
		if res[i] == 0 {
			b := x.predictOpaque(f, n)
			if b == nil {
				return invalid("options unknown")
			}
			o := f.oddity()
			o.opaque = append(o.opaque[:0], b...)
		} else {
			x.codeOpaqueBits(f.oddity(), mb.opaque, n)
		}
		mb.opaque, last = f.odd.opaque, f
	}
	x.newestOpaque = append(x.newestOpaque[:0], last.odd.opaque...)
	return nil
}

// codeOpaqueBits codes n bytes as they are. b are those to be written.
func (x *codec) codeOpaqueBits(o *oddities, b []byte, n int) {
	o.opaque = o.opaque[:0]
	for k := range n {
		v := uint64(0)
		if k < len(b) {
			v = uint64(b[k])
		}
		o.opaque = append(o.opaque, byte(x.coder.Bits(v, 8)))
	}
}

// predictOpaque returns the n bytes that are expected in a flow's runs, nil where
// there are none.
func (s *state) predictOpaque(f *context, n int) []byte {
	switch {
	case f.odd != nil && len(f.odd.opaque) == n:
		return f.odd.opaque
	case len(s.newestOpaque) == n:
		return s.newestOpaque
	}
	return nil
}
