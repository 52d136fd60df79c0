package aggregate

import (
	"time"

	"github.com/klauspost/compress/zstd"

	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// A writer is the Merger's side of writing frames: its memory, and what it has
// to look up in order to tell the peer.
type writer struct {
	memory
	cfg     *Config
	stats   *Stats
	sources map[parsers.FlowKey]*source
	all     []*source
	hand    int // index in all of the source last looked at for giving way
	shapes  map[string]*layout
	now     time.Duration
	frames  uint64 // written
	rebuilt uint64 // frames of the peer that the Expander has rebuilt

	// What the peer's frames may come to refer to, in the order written.
	sent       queue[sentFrame]
	sentItems  queue[item]
	unpaired   map[parsers.FlowKey]uint32 // the peer's flows whose other direction is not known
	links      []link
	slotOf     map[uint64]uint32 // by key of the span
	slotAlike  map[uint64]uint32 // the newest by name, by length, by both
	heads      [256]uint64       // judge's keys of random bytes, seen lately
	current    *group
	zstd       *zstd.Encoder
	literals   []byte // of the frame that is being written
	compressed []byte
	costs      groupCosts
	debts      []debt // of the frame that is being written
	effort     int    // literal bytes of this frame given to the Text model
	plan       model.Plan
}

// A sentFrame is a frame that changed something: its number, from 1, and how
// many items it has in sentItems.
type sentFrame struct {
	number uint64
	items  int
}

// maxSentItems bounds what is kept for the peer to refer to: beyond it, frames
// say that they must not be referred to. Where frames are small it is what four
// of them can hold.
const maxSentItems = 1 << 15

func (w *writer) maxSentItems() int { return min(maxSentItems, 4*int(w.limits.Packets)) }

func (w *writer) init(cfg *Config, stats *Stats) {
	w.cfg, w.stats = cfg, stats
	w.memory.w = w
	w.memory.init(cfg.Limits)
	w.sources = make(map[parsers.FlowKey]*source)
	w.shapes = make(map[string]*layout)
	w.unpaired = make(map[parsers.FlowKey]uint32)
	w.slotOf = make(map[uint64]uint32)
	w.slotAlike = make(map[uint64]uint32)
	w.slots.dropped = func(s *slot) {
		if w.slotOf[s.source.key] == s.source.slot {
			delete(w.slotOf, s.source.key)
		}
		for _, k := range s.source.alike {
			if w.slotAlike[k] == s.source.slot {
				delete(w.slotAlike, k)
			}
		}
	}
}

// source returns what is known of a flow.
func (w *writer) source(now time.Duration, key *parsers.FlowKey) *source {
	src := w.sources[*key]
	if src == nil {
		src = &source{index: len(w.all)}
		src.key = *key
		w.sources[*key] = src
		w.all = append(w.all, src)
	}
	src.used = now
	return src
}

// drop forgets a source.
func (w *writer) drop(src *source) {
	delete(w.sources, src.key)
	last := w.all[len(w.all)-1]
	w.all[src.index], last.index = last, src.index
	w.all[len(w.all)-1] = nil
	w.all = w.all[:len(w.all)-1]
}

// abandon forgets a flow of which nothing is or will be known to the peer.
func (w *writer) abandon(src *source) {
	if src.announced || src.group >= 0 {
		return
	}
	w.drop(src)
}

// layout returns the layout for a zeroed header, nil where there cannot be one.
func (w *writer) layout(h []byte, ip int, proto uint8) *layout {
	if l := w.shapes[string(h)]; l != nil && l.ip == ip && l.proto == proto {
		return l
	}
	l, ok := newLayout(h, ip, proto)
	if !ok {
		return nil
	}
	if len(w.shapes) > 4*maxLayouts {
		clear(w.shapes)
	}
	w.shapes[string(h)] = l
	return l
}

// assign returns the CID for a flow that is to be announced: a new one, or that
// of a flow that has been silent for long.
func (w *writer) assign(f *flow) uint32 {
	w.stats.Contexts++
	full := len(w.flows) >= int(w.limits.Flows)
	old := w.silent()
	for full && old == nil {
		old = w.silent() // a frame has no more flows than there are contexts
	}
	if old == nil || !full && w.now-old.used < w.cfg.MaxIdle {
		return uint32(len(w.flows))
	}
	w.stats.Evicted++
	w.drop(old)
	old.announced = false
	return old.cid
}

// silent returns, of a few sources looked at in turn, the one that was used
// longest ago and can give way; nil if none of them can. A list in order of use
// would find the very oldest, and cost each packet two more sources to touch.
func (w *writer) silent() (oldest *source) {
	for range min(sampled, len(w.all)) {
		w.hand = (w.hand + 1) % len(w.all)
		src := w.all[w.hand]
		if src.announced && src.frame != w.frames+1 && (oldest == nil || src.used < oldest.used) {
			oldest = src
		}
	}
	return oldest
}

// sampled is how many sources silent looks at.
const sampled = 16

// reverse returns the peer's flow with a key's reverse, plus one.
func (w *writer) reverse(key *parsers.FlowKey) uint32 {
	back := key.Reverse()
	cid, ok := w.unpaired[back]
	if !ok {
		return 0
	}
	delete(w.unpaired, back)
	if v := &w.peers.views[cid]; !v.valid || v.own != 0 || v.key != back {
		return 0
	}
	return cid + 1
}

// write writes the control field of a frame of so many packets.
func (w *writer) write(c *model.Coder, now time.Duration, list []group, packets int) {
	c.Literals, w.debts = w.literals[:0], w.debts[:0]
	w.effort = 0
	w.items = w.items[:0]
	h := head{
		record: w.sentItems.len()+packets <= w.maxSentItems(),
		named:  w.rebuilt,
		clock:  w.tick(now, list),
		links:  w.sound(w.links),
	}
	w.now = now
	if err := w.codeHead(c, &h); err != nil {
		panic(err) // as below
	}
	w.links = w.links[:0]
	w.costs = groupCosts{begin: c.Cost()}
	w.stats.Out[PartFrames] += w.costs.begin / 8
	if err := w.code(c, list); err != nil {
		panic(err) // a Merger writes what its own limits allow
	}
	w.literals = c.Literals
	w.frames++
	if !h.record {
		w.items = w.items[:0]
	}
	if len(w.items) > 0 {
		w.sent.push(sentFrame{w.frames, len(w.items)})
		w.sentItems.push(w.items...)
	}
}

// tick returns what the clock is set to: so that the first timestamp of a known
// flow is exactly as predicted, else by the time.
func (w *writer) tick(now time.Duration, list []group) uint32 {
	for i := range list {
		for k := range list[i].members {
			mb := &list[i].members[k]
			if mb.flow.stamped && mb.layout.stamp != 0 {
				t := mb.tsval - mb.flow.offset
				if d := int32(t - w.clock); d > -1<<20 && d < 1<<20 {
					return t
				}
			}
		}
	}
	return w.clock + uint32((now - w.now).Milliseconds())
}

// named gives the Expander's memory what the peer has rebuilt by now: all that
// frames up to n changed, of which done were applied before.
func (w *writer) named(done, n uint64, m *memory) error {
	if n > w.frames || n < done {
		return bad("frames named that were never sent")
	}
	for w.sent.len() > 0 && w.sent.first(1)[0].number <= n {
		items := w.sentItems.first(w.sent.first(1)[0].items)
		for i := range items {
			m.apply(&items[i])
		}
		w.sentItems.pop(len(items))
		w.sent.pop(1)
	}
	return nil
}

// learned takes in what a frame of the peer changed.
func (w *writer) learned(items []item) {
	for i := range items {
		it := &items[i]
		w.apply(it)
		if !it.fresh {
			continue
		}
		if v := &w.peers.views[it.cid]; v.own != 0 {
			continue
		}
		back := it.flow.key.Reverse()
		if src := w.sources[back]; src != nil && src.announced && src.flow.reverse == 0 {
			w.links = append(w.links, link{src.cid, it.cid})
		} else {
			w.lonely(it.flow.key, it.cid)
		}
	}
	w.rebuilt++
}

// lonely notes a flow of the peer whose other direction is not known. Flows
// that are long gone are sorted out when there are too many.
func (w *writer) lonely(key parsers.FlowKey, cid uint32) {
	if len(w.unpaired) > 2*len(w.peers.views)+64 {
		clear(w.unpaired)
		for i := range w.peers.views {
			if v := &w.peers.views[i]; v.valid && v.own == 0 {
				w.unpaired[v.key] = uint32(i)
			}
		}
	}
	w.unpaired[key] = cid
}

// sound drops the pairs whose flows have changed since they were found. The others
// are pairs from now on, so that a flow that was found twice is in one of them only.
func (w *writer) sound(links []link) []link {
	keep := links[:0]
	for _, l := range links {
		v := &w.peers.views[l.peer]
		if f := w.flow(l.own + 1); f != nil && v.valid && v.own == 0 && f.reverse == 0 && v.key == f.key.Reverse() {
			w.pair(l.own, l.peer)
			keep = append(keep, l)
		}
	}
	return keep
}

// squeeze returns the literals of the frame as they are sent.
func (w *writer) squeeze() ([]byte, wire.Coding) {
	const worthwhile = 64
	if w.cfg.Compression < 0 || len(w.literals) < worthwhile {
		return w.literals, 0
	}
	if w.zstd == nil {
		var err error
		w.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(w.cfg.Compression)),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			panic(err) // the options are constants
		}
	}
	w.compressed = w.zstd.EncodeAll(w.literals, w.compressed[:0])
	if len(w.compressed) >= len(w.literals) {
		return w.literals, 0
	}
	return w.compressed, wire.Coding(w.cfg.Compression)
}
