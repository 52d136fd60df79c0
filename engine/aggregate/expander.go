package aggregate

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// An Expander is the reading end of one direction of a lane: it takes frames
// apart and gives back the packets that went in at the other end, byte for
// byte. It is not safe for concurrent use, also not together with the Merger of
// its lane.
type Expander struct {
	memory
	out     *writer // of the other direction, which shares what it learns
	coder   model.Coder
	packets [][]byte
	buf     []byte
	ends    []int
	literal []byte
	zstd    *zstd.Decoder
	digest  wire.Digest
	broken  error
	body    []byte // scratch: a payload
}

// Expand takes the frame at the start of b apart and returns its packets and
// its length n. The packets are borrowed until the next Expand. Frames must come
// in the order in which they were written, each once.
//
// The error is wire.ErrShort where b holds only the beginning of a frame: call
// again with more. With any other error nothing is delivered and the epoch is
// over: every later call returns the same error, and both ends of the lane have
// to begin anew.
func (x *Expander) Expand(b []byte) (packets [][]byte, n int, err error) {
	if x.broken != nil {
		return nil, 0, x.broken
	}
	f, n, err := wire.ParseFrame(b)
	if err == wire.ErrShort {
		return nil, 0, err
	}
	if err == nil {
		err = x.expand(f)
	}
	if err != nil {
		x.broken = err
		return nil, 0, err
	}
	x.packets = x.packets[:0]
	start := 0
	for _, end := range x.ends {
		x.packets = append(x.packets, x.buf[start:end:end])
		start = end
	}
	return x.packets, n, nil
}

func (x *Expander) expand(f wire.Frame) error {
	x.buf, x.ends = x.buf[:0], x.ends[:0]
	x.digest = 0
	x.items = x.items[:0]
	c := &x.coder
	c.Read(f.Control)
	c.Literals = f.Literals
	if f.Coding != 0 && len(f.Literals) > 0 {
		if err := x.inflate(f.Literals); err != nil {
			return err
		}
	}
	var h head
	if err := x.codeHead(c, &h); err != nil {
		return err
	}
	if err := x.code(c, nil); err != nil {
		return err
	}
	if !c.Complete() || len(c.Literals) != 0 {
		return bad("length")
	}
	if x.digest != f.Digest {
		return fmt.Errorf("%w: %08x, expected %08x", ErrDigest, x.digest, f.Digest)
	}
	if h.record {
		x.out.learned(x.items)
	} else {
		x.out.learned(nil)
	}
	return nil
}

// Streams calls yield with each TCP flow that came from the peer, and the sequence
// number after its last byte, in the order of their contexts. Flows whose
// connection has ended are among them: nothing in a context says so.
func (x *Expander) Streams(yield func(key parsers.FlowKey, next uint32)) {
	for _, f := range x.flows {
		if f != nil && f.started {
			yield(f.key, f.end)
		}
	}
}

// inflate decompresses the literals.
func (x *Expander) inflate(b []byte) error {
	if x.zstd == nil {
		var err error
		x.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(wire.MaxFrame), zstd.WithDecoderMaxWindow(wire.MaxFrame))
		if err != nil {
			panic(err) // the options are constants
		}
	}
	var err error
	x.literal, err = x.zstd.DecodeAll(b, x.literal[:0])
	if err != nil {
		return fmt.Errorf("%w: literals: %v", ErrFrame, err)
	}
	x.coder.Literals = x.literal
	return nil
}

// build appends the packets of a group.
func (x *Expander) build(g *group) error {
	if g.kind == kindRaw {
		if g.holes != 0 {
			return bad("holes in a packet")
		}
		for i := range g.spans {
			x.buf = append(x.buf, g.spans[i].body...)
		}
		return x.end(nil)
	}
	payload, sum := []byte(nil), uint16(0)
	for i := range g.members {
		mb := &g.members[i]
		if i == 0 || g.holes > 0 {
			payload = x.payloadOf(g, i)
			sum = checksum.Checksum(payload, 0)
		}
		if len(mb.layout.bytes)+len(payload) > g.kind.longest() {
			return bad("packet too long")
		}
		x.buf = appendHeader(x.buf, &mb.flow.key, &mb.fields, g.flags, len(payload), sum)
		x.buf = append(x.buf, payload...)
		if err := x.end(mb.flow); err != nil {
			return err
		}
	}
	return nil
}

// payloadOf returns the payload of member i, borrowed until the next call.
func (x *Expander) payloadOf(g *group, i int) []byte {
	if g.holes == 0 && len(g.spans) == 1 {
		return g.spans[0].body
	}
	b := x.body[:0]
	v := i * g.holes
	for k := range g.spans {
		s := &g.spans[k]
		at, from, first := 0, len(b), v
		for _, h := range s.holes {
			b = append(b, s.body[at:h.at]...)
			b = h.append(b, g.values[v], x.texts)
			at = h.at
			v++
		}
		b = append(b, s.body[at:]...)
		if len(s.holes) > 0 {
			s.mask(b[from:], g.values[first])
		}
	}
	x.body = b
	return b
}

// end notes that a packet of a flow is complete, or of none.
func (x *Expander) end(f *flow) error {
	start := 0
	if len(x.ends) > 0 {
		start = x.ends[len(x.ends)-1]
	}
	x.ends = append(x.ends, len(x.buf))
	if f != nil {
		f.crc = x.digest.Add(f.crc, x.buf[start:])
	} else {
		x.digest.AddVerbatim(x.buf[start:])
	}
	if len(x.ends) > int(x.limits.Packets) || len(x.buf) > int(x.limits.Bytes) {
		return bad("frame past its limits")
	}
	return nil
}
