package replay

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// A Rival is what the same packets would have cost otherwise.
//
//   - "plain": as they are, without a tunnel;
//   - "header-compression": see headerModel;
//   - "zstd-3", "zstd-19": one zstd stream a direction, flushed at every frame.
//     The levels are those of klauspost/compress nearest to the reference's: its
//     default, and its best.
//
// All but the first go in carrier packets as frames do, at the same moments.
type Rival struct {
	Name           string `json:"name"`
	Bytes          uint64 `json:"bytes"` // without the carrier's
	CarrierPackets uint64 `json:"carrier_packets"`
	BytesWire      uint64 `json:"bytes_wire"`
	BytesUp        uint64 `json:"bytes_wire_up"`
	BytesDown      uint64 `json:"bytes_wire_down"`
}

// A rival carries the packets of one direction.
type rival interface {
	name() string
	frame(l *ledger) error // the packets of a frame, borrowed
	cost() (bytes, carrierPackets uint64)
}

func newRivals() ([]rival, error) {
	rivals := []rival{&plain{}, &headers{model: newHeaderModel()}}
	for _, level := range []int{3, 19} {
		z, err := newZstdStream(level)
		if err != nil {
			return nil, err
		}
		rivals = append(rivals, z)
	}
	return rivals, nil
}

// rivals returns what the rivals of both directions cost.
func (r *Replay) rivals() []Rival {
	var out []Rival
	for i, v := range r.ways[Up].rivals {
		w := Rival{Name: v.name()}
		for d := range r.ways {
			n, packets := r.ways[d].rivals[i].cost()
			wire := n + packets*uint64(r.cfg.Overhead)
			w.Bytes += n
			w.CarrierPackets += packets
			w.BytesWire += wire
			if Direction(d) == Up {
				w.BytesUp = wire
			} else {
				w.BytesDown = wire
			}
		}
		out = append(out, w)
	}
	return out
}

// sum is what a rival costs.
type sum struct{ bytes, packets uint64 }

func (s *sum) add(n int) {
	s.bytes += uint64(n)
	s.packets += uint64(carriers(n))
}

func (s *sum) cost() (bytes, carrierPackets uint64) { return s.bytes, s.packets }

// plain is no tunnel at all.
type plain struct{ bytes uint64 }

func (*plain) name() string { return "plain" }

func (p *plain) frame(l *ledger) error {
	p.bytes += uint64(len(l.bytes))
	return nil
}

func (p *plain) cost() (bytes, carrierPackets uint64) { return p.bytes, 0 }

// headers is header compression alone. Each packet of a frame has its length
// before it.
type headers struct {
	sum
	model *headerModel
}

func (*headers) name() string { return "header-compression" }

func (h *headers) frame(l *ledger) error {
	n := 0
	for i := range l.entries {
		c := h.model.cost(l.packet(&l.entries[i]))
		n += c + varint(uint32(c))
	}
	h.add(n)
	return nil
}

// A zstdStream compresses the packets one after the other; their own length
// fields tell where one ends.
type zstdStream struct {
	sum
	level int
	enc   *zstd.Encoder
	out   counter
}

type counter int

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func newZstdStream(level int) (*zstdStream, error) {
	z := &zstdStream{level: level}
	var err error
	z.enc, err = zstd.NewWriter(&z.out,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, fmt.Errorf("starting a zstd stream of level %d: %w", level, err)
	}
	return z, nil
}

func (z *zstdStream) name() string { return fmt.Sprintf("zstd-%d", z.level) }

func (z *zstdStream) frame(l *ledger) error {
	before := z.out
	if _, err := z.enc.Write(l.bytes); err != nil {
		return fmt.Errorf("compressing with zstd: %w", err)
	}
	if err := z.enc.Flush(); err != nil {
		return fmt.Errorf("compressing with zstd: %w", err)
	}
	z.add(int(z.out - before))
	return nil
}
