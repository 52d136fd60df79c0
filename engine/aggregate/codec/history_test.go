package codec

import (
	"errors"
	"testing"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

// write has h know of a frame whose items are new flows of these CIDs.
func (h *history) write(cids ...uint32) {
	h.frames++
	var items []item
	for _, c := range cids {
		items = append(items, item{cid: cidAt(c), fresh: true, context: &context{key: parsers.FlowKey{SrcPort: uint16(c)}}})
	}
	h.add(items)
}

// known returns which CIDs of the peer a state has views of.
func (s *state) known() (cids []int) {
	for i := range s.views.table {
		if s.views.table[i].valid {
			cids = append(cids, i)
		}
	}
	return cids
}

// What the peer acknowledges is applied, in order, once, and dropped; frames behind it
// wait, and frames that changed nothing are only counted.
func TestAcknowledgedFramesAreApplied(t *testing.T) {
	var h history
	var s state
	h.write(0, 1)
	h.write()
	h.write(3)
	h.write(1, 4)
	if h.sent.len() != 3 || h.items.len() != 5 || h.frames != 4 {
		t.Errorf("%d items of %d frames are kept, of %d", h.items.len(), h.sent.len(), h.frames)
	}
	for _, step := range []struct {
		done, n            uint64
		views, sent, items int
		unpaired           uint32
		what               string
	}{
		{0, 0, 0, 3, 5, 0, "nothing"},
		{0, 1, 2, 2, 3, 1, "the first"},
		{1, 1, 2, 2, 3, 1, "the first again"},
		{1, 2, 2, 2, 3, 1, "one without items"},
		{2, 4, 4, 0, 0, 4, "two at once"},
		{4, 4, 4, 0, 0, 4, "all again"},
	} {
		if err := h.acknowledge(&s, step.done, step.n); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := len(s.known()); got != step.views {
			t.Errorf("%s: %d views, expected %d", step.what, got, step.views)
		}
		if h.sent.len() != step.sent || h.items.len() != step.items {
			t.Errorf("%s: %d items of %d frames are left", step.what, h.items.len(), h.sent.len())
		}
		if step.views > 0 && s.views.unpaired != peerCIDAt(step.unpaired) {
			t.Errorf("%s: the newest flow is %v", step.what, s.views.unpaired)
		}
	}
}

// Frames that were never sent, or fewer than before, cannot be acknowledged.
func TestAcknowledgedFramesWereSent(t *testing.T) {
	for _, tt := range []struct {
		done, n uint64
		valid   bool
	}{{0, 2, true}, {0, 3, false}, {2, 2, true}, {2, 1, false}, {1, 1 << 63, false}} {
		h, s := history{}, state{}
		h.write(0)
		h.write(1)
		err := h.acknowledge(&s, tt.done, tt.n)
		if (err == nil) != tt.valid || err != nil && !errors.Is(err, ErrFrame) {
			t.Errorf("%d frames acknowledged, %d of them before, of 2: %v", tt.n, tt.done, err)
		}
		if err != nil && (len(s.known()) != 0 || h.sent.len() != 2) {
			t.Errorf("%d frames acknowledged: something was applied", tt.n)
		}
	}
}

// A frame is recorded while what is kept of others leaves room for its packets.
func TestRecordsAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name           string
		packets        uint32 // limit of a frame
		kept, members  int
		verbatim, want bool
	}{
		{"nothing kept", 10, 0, 1, false, true},
		{"at four frames", 10, 35, 5, false, true},
		{"past four frames", 10, 36, 5, false, false},
		{"a packet as it is at four frames", 10, 39, 0, true, true},
		{"a packet as it is past them", 10, 40, 0, true, false},
		{"at the bound of all", 1 << 15, maxSentItems - 5, 5, false, true},
		{"past the bound of all", 1 << 15, maxSentItems - 4, 5, false, false},
	} {
		limits := wire.DefaultLimits
		limits.Packets = tt.packets
		e, _ := New(Config{Limits: limits})
		e.past.items.push(make([]item, tt.kept)...)
		g := Group{Kind: TCP4, Members: make([]Member, tt.members)}
		if tt.verbatim {
			g.Kind = Verbatim
		}
		for i := range g.Members {
			g.Members[i].Flow = &Flow{}
		}
		if h := e.chooseHead(&Frame{Groups: []Group{g}}); h.record != tt.want {
			t.Errorf("%s: recorded %t", tt.name, h.record)
		}
	}
}
