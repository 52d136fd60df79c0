package codec

// A history is what one gateway's Encoder has told of its flows, for as long as the
// peer's frames may come to refer to it: the Encoder adds to it, the Decoder of the same
// gateway takes from it what the peer has acknowledged.
type history struct {
	frames uint64           // written
	sent   queue[sentFrame] // those with items, in the order written
	items  queue[item]      // of all of them
}

// A sentFrame is a frame that changed something: its number, from 1, and how many
// items it has.
type sentFrame struct {
	number uint64
	items  int
}

// maxSentItems bounds what is kept for the peer to refer to: beyond it, frames
// say that they must not be referred to. Where frames are small it is what four
// of them can hold. At 100 bytes an item it is 3 MB a lane.
const maxSentItems = 1 << 15

// add keeps the items of the frame that was written last.
func (h *history) add(items []item) {
	if len(items) > 0 {
		h.sent.push(sentFrame{h.frames, len(items)})
		h.items.push(items...)
	}
}

// acknowledge gives s what the peer had rebuilt when it wrote a frame: all that
// frames up to n changed, of which those up to done were applied before.
func (h *history) acknowledge(s *state, done, n uint64) error {
	if n > h.frames || n < done {
		return invalid("frames acknowledged that were never sent")
	}
	for h.sent.len() > 0 && h.sent.first(1)[0].number <= n {
		items := h.items.first(h.sent.first(1)[0].items)
		for i := range items {
			s.apply(&items[i])
		}
		h.items.pop(len(items))
		h.sent.pop(1)
	}
	return nil
}
