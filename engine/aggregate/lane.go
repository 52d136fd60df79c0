package aggregate

import (
	"errors"

	"sheaf/engine/aggregate/codec"
)

// A Lane is one gateway's end of a lane: the Merger for what it sends and the
// Expander for what it receives. The two belong together, since each frame may
// refer to what came the other way.
type Lane struct {
	Merger   Merger
	Expander Expander
}

// ErrConfig tells that a Config cannot be used.
var ErrConfig = errors.New("aggregate: configuration")

// NewLane returns an end of a lane at the start of an epoch. When the epoch
// ends, both ends begin again with new Lanes. The error matches ErrConfig.
func NewLane(cfg Config) (*Lane, error) {
	cfg = cfg.withDefaults()
	if cfg.Registry == nil {
		return nil, errors.Join(ErrConfig, errors.New("no registry of protocols"))
	}
	if err := cfg.Limits.Check(); err != nil {
		return nil, errors.Join(ErrConfig, err)
	}
	l := &Lane{}
	coding := codec.Config{Similarity: cfg.Similarity, Limits: cfg.Limits}
	if cfg.TLS != nil {
		coding.Sealer = sealing{cfg.TLS}
	}
	enc, dec := codec.New(coding)
	l.Merger.init(cfg, enc)
	if cfg.TLS != nil {
		cfg.TLS.Begin(&l.Merger.stats.TLS)
	}
	l.Expander.decoder = dec
	l.Expander.merger = &l.Merger
	return l, nil
}

// Outstanding returns how many frames the Merger has written that the peer has
// not yet said it rebuilt. It falls as the lane makes progress.
func (l *Lane) Outstanding() uint64 {
	return l.Merger.encoder.Written() - l.Expander.decoder.Acked()
}
