package aggregate

import (
	"errors"
	"fmt"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// ErrFrame tells that a frame asked for what its receiver does not have or will
// not give: it is malformed, or what the two ends remember has drifted apart. The
// epoch is over; nothing of the frame was delivered.
var ErrFrame = codec.ErrFrame

// ErrLimit tells that a frame asked for more than the limits that both ends agreed
// on. It matches [ErrFrame].
var ErrLimit = codec.ErrLimit

// ErrDigest tells that the packets of a frame came out other than they went in.
// It matches [ErrFrame].
var ErrDigest = fmt.Errorf("%w: digest mismatch", ErrFrame)

// An Expander is the reading end of one direction of a lane: it takes frames
// apart and gives back the packets that went in at the other end, byte for
// byte. It is not safe for concurrent use, also not together with the Merger of
// its lane.
type Expander struct {
	decoder  *codec.Decoder
	merger   *Merger // of the other direction, which predicts by what is rebuilt here
	literals decompressor
	packets  [][]byte
	broken   error
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
	if errors.Is(err, wire.ErrShort) {
		return nil, 0, err
	}
	if err == nil {
		err = x.expand(f)
	}
	if err != nil {
		x.broken = err
		return nil, 0, err
	}
	return x.packets, n, nil
}

func (x *Expander) expand(f wire.Frame) error {
	literals, err := x.literals.decompress(f)
	if err != nil {
		return err
	}
	r, err := x.decoder.Decode(f.Control, literals)
	if err != nil {
		return err
	}
	if r.Digest != f.Digest {
		return fmt.Errorf("%w: %08x, expected %08x", ErrDigest, r.Digest, f.Digest)
	}
	x.packets = x.packets[:0]
	start := 0
	for _, end := range r.Ends {
		x.packets = append(x.packets, r.Packets[start:end:end])
		start = end
	}
	x.merger.learn(x.decoder)
	if t := x.merger.cfg.TLS; t != nil {
		t.Acknowledged(x.decoder.Acked())
	}
	return nil
}

// Streams calls yield with each TCP flow that came from the peer, and the sequence
// number after its last byte, in the order of their contexts. Flows whose
// connection has ended are among them: nothing in a context says so.
func (x *Expander) Streams(yield func(key parsers.FlowKey, next uint32)) { x.decoder.Streams(yield) }
