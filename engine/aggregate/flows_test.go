package aggregate

import (
	"slices"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// announced returns a Merger and the flows of n clients, which the peer knows and which
// were used last at 0 s, 1 s, 2 s and so on. The next of them to be looked at is the first.
func announced(t *testing.T, n int) (*Merger, []*flow) {
	t.Helper()
	m := newMerger(t, Config{})
	for i := range n {
		add(t, m, time.Duration(i)*time.Second, ack(i, 5).Packet())
	}
	m.Flush(nil, time.Duration(n)*time.Second, FlushEnd)
	for i, f := range m.flows.all {
		if c, ok := f.CID(); !ok || c == (codec.CID{}) || f.used != time.Duration(i)*time.Second {
			t.Fatalf("flow %d, used at %v, is announced: %v", i, f.used, ok)
		}
	}
	m.flows.hand = n - 1
	return m, slices.Clone(m.flows.all)
}

// cid returns the CID of an announced flow.
func (f *flow) cid() codec.CID {
	c, _ := f.CID()
	return c
}

// keyOf returns the key of a client's flow to the broker.
func keyOf(t *testing.T, s segment) parsers.FlowKey {
	t.Helper()
	var d parsers.Decoder
	var seg parsers.Segment
	if err := d.Decode(s.Packet(), &seg); err != nil {
		t.Fatal(err)
	}
	return seg.Key
}

// consistent checks that the table and the list of flows have the same.
func (t *flows) consistent() bool {
	for i, f := range t.all {
		if f.index != i || t.byKey[f.Key] != f {
			return false
		}
	}
	return len(t.byKey) == len(t.all)
}

func TestFlowIsFoundByItsKey(t *testing.T) {
	m := newMerger(t, Config{})
	one, other := keyOf(t, ack(1, 5)), keyOf(t, ack(2, 5))
	f := m.flows.get(3*ms, &one)
	if f.Key != one || f.used != 3*ms || f.frame != 1 {
		t.Errorf("a new flow of %v, used at %v in frame %d", f.Key, f.used, f.frame)
	}
	if m.flows.get(4*ms, &one) != f || f.used != 4*ms {
		t.Errorf("the flow is another, or was used at %v", f.used)
	}
	if m.flows.get(5*ms, &other) == f || f.used != 4*ms {
		t.Error("two keys have one flow")
	}
	if len(m.flows.all) != 2 || !m.flows.consistent() {
		t.Errorf("%d flows are listed for two keys", len(m.flows.all))
	}
}

func TestFlowBeginsEachFrameAnew(t *testing.T) {
	m := newMerger(t, Config{})
	key := keyOf(t, ack(1, 5))
	f := m.flows.get(0, &key)
	for range 2 {
		f.group, f.acks.inFrame = 7, 3
		if m.flows.get(0, &key); f.group != 7 || f.acks.inFrame != 3 {
			t.Errorf("group %d, %d acknowledgements within a frame", f.group, f.acks.inFrame)
		}
		m.flows.frame++
		if m.flows.get(0, &key); f.group != 0 || f.acks.inFrame != 0 || f.frame != m.flows.frame {
			t.Errorf("group %d, %d acknowledgements, frame %d at the start of frame %d", f.group, f.acks.inFrame, f.frame, m.flows.frame)
		}
	}
}

func TestDroppedFlowIsForgotten(t *testing.T) {
	m, all := announced(t, 4)
	for _, i := range []int{1, 0, 3, 2} { // in the middle, first, last, alone
		m.flows.drop(all[i])
		if m.flows.byKey[all[i].Key] != nil || slices.Contains(m.flows.all, all[i]) || !m.flows.consistent() {
			t.Errorf("flow %d is not forgotten", i)
		}
		if slices.Contains(m.flows.all[:cap(m.flows.all)], all[i]) {
			t.Errorf("flow %d is still held", i)
		}
	}
}

func TestAbandonedFlowIsForgottenUnlessItIsOrWillBeKnown(t *testing.T) {
	m, all := announced(t, 1)
	keys := []parsers.FlowKey{keyOf(t, ack(2, 5)), keyOf(t, ack(3, 5))}
	pending, fresh := m.flows.get(0, &keys[0]), m.flows.get(0, &keys[1])
	pending.group, all[0].group = 1, 0
	for _, f := range []*flow{all[0], pending, fresh} {
		m.flows.abandon(f)
	}
	if !slices.Equal(m.flows.all, []*flow{all[0], pending}) || !m.flows.consistent() {
		t.Errorf("%d flows are left", len(m.flows.all))
	}
}

func TestNewFlowsGetNewNumbersBelowTheLimit(t *testing.T) {
	for _, tt := range []struct{ limit, reused int }{{10, 0}, {8, 0}, {7, 1}, {6, 2}, {5, 3}} {
		m, all := announced(t, 5)
		m.flows.limit = tt.limit
		got := m.flows.reuse(nil, 3, 5, 10*time.Second)
		want := make([]codec.CID, 3-tt.reused, 3)
		for _, f := range all[:tt.reused] { // those used longest ago, in turn
			want = append(want, f.cid())
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, expected %v", tt.limit, got, want)
		}
		if len(m.flows.all) != 5-tt.reused || !m.flows.consistent() {
			t.Errorf("limit %d: %d flows are left", tt.limit, len(m.flows.all))
		}
	}
}

func TestIdleFlowGivesWayAtMaxIdle(t *testing.T) {
	for idle, reused := range map[time.Duration]bool{time.Hour - 1: false, time.Hour: true, time.Hour + 1: true} {
		m, all := announced(t, 3)
		m.flows.maxIdle = time.Hour
		for _, f := range all {
			f.used += time.Minute
		}
		got := m.flows.reuse(nil, 1, 3, time.Minute+idle)
		if want := all[0].cid(); (got[0] == want) != reused || (got[0] == codec.CID{}) == reused {
			t.Errorf("idle for %v of an hour: called %v, the idle one %v", idle, got[0], want)
		}
		if got := len(m.flows.all); got != 3-b2i(reused) {
			t.Errorf("idle for %v of an hour: %d flows are left", idle, got)
		}
	}
}

func TestGivesWayThoughNotIdleWhereTheTableIsFull(t *testing.T) {
	m, all := announced(t, 3)
	m.flows.limit, m.flows.maxIdle = 3, time.Hour
	if got := m.flows.reuse(nil, 1, 3, 2*time.Second); got[0] != all[0].cid() {
		t.Errorf("called %v, the idle one %v", got[0], all[0].cid())
	}
}

func TestSixteenFlowsAreLookedAtInTurn(t *testing.T) {
	for _, oldest := range []int{14, 15, 16, 39} {
		m, all := announced(t, 40)
		for _, f := range all {
			f.used += time.Hour
		}
		all[oldest].used = 0
		for turn := range 4 { // 0 to 15, 16 to 31, 32 to 39 and 0 to 7, 8 to 23
			f := m.flows.idle()
			want := all[[]int{0, 16, 0, 8}[turn]]
			if turn == oldest/16 {
				want = all[oldest]
			}
			if oldest <= 16 && turn == 3 {
				want = all[oldest]
			}
			if f != want {
				t.Errorf("turn %d finds flow %d, expected %d", turn, f.index, want.index)
			}
		}
	}
	m, all := announced(t, 3)
	all[1].used = all[0].used // of two that are as idle the first is taken
	if f := m.flows.idle(); f != all[0] {
		t.Errorf("finds flow %d", f.index)
	}
	m, all = announced(t, 3) // fewer than sixteen are looked at once
	if f := m.flows.idle(); f != all[0] || m.flows.hand != 2 {
		t.Errorf("finds flow %d of 3, the last looked at is %d", f.index, m.flows.hand)
	}
}

func TestFlowsOfTheFrameAtHandNeverGiveWay(t *testing.T) {
	m, all := announced(t, 40)
	m.flows.limit = 40
	for i, f := range all {
		if i != 25 && i != 37 {
			m.flows.get(0, &f.Key)
		}
	}
	got := m.flows.reuse(nil, 2, 40, time.Hour)
	if want := []codec.CID{all[25].cid(), all[37].cid()}; !slices.Equal(got, want) {
		t.Errorf("called %v, expected %v", got, want)
	}
}

func TestFlowsThatAreNotAnnouncedHaveNothingToGive(t *testing.T) {
	m, all := announced(t, 1)
	key := keyOf(t, ack(7, 5))
	m.flows.get(0, &key).frame = 0 // older than any, and no longer pending
	for range 2 {
		if f := m.flows.idle(); f != all[0] {
			t.Errorf("finds flow %d", f.index)
		}
	}
	m.flows.drop(all[0])
	if f := m.flows.idle(); f != nil {
		t.Errorf("finds flow %d", f.index)
	}
	if got := m.flows.reuse(nil, 1, 1, time.Hour); !slices.Equal(got, []codec.CID{{}}) {
		t.Errorf("called %v", got)
	}
}

// New flows are called by the CIDs of those that gave way, in the order of the frame.
func TestNewFlowsTakeTheirNumbersInOrder(t *testing.T) {
	limits := wire.DefaultLimits
	limits.Flows = 3
	m := newMerger(t, Config{Limits: limits})
	for i := range 3 {
		add(t, m, time.Duration(i)*ms, ack(i, 5).Packet())
	}
	m.Flush(nil, 10*ms, FlushEnd)
	old := slices.Clone(m.flows.all)
	add(t, m, 20*ms, ack(1, 6).Packet())
	add(t, m, 20*ms, ack(7, 5).Packet())
	add(t, m, 20*ms, data(8, "unlike it").Packet())
	m.Flush(nil, 20*ms, FlushEnd)
	for i, s := range []segment{ack(7, 5), data(8, "")} {
		key := keyOf(t, s)
		if f := m.flows.byKey[key]; f == nil || f.cid() != old[2*i].cid() || f.cid() != m.reuse[i] {
			t.Errorf("new flow %d has another CID than flow %d had", i, 2*i)
		}
	}
	if s := m.Stats(); s.Evicted != 2 || s.Contexts != 5 {
		t.Errorf("%d gave way of %d", s.Evicted, s.Contexts)
	}
	if len(m.flows.all) != 3 || !m.flows.consistent() {
		t.Errorf("%d flows are left", len(m.flows.all))
	}
}

// A flow that was forgotten is announced again when it comes back, whether tables are
// full at once or after a while, and nothing is lost.
func TestFlowsComeBack(t *testing.T) {
	limits := wire.Limits{Flows: 8, Templates: 3, Bodies: 300, Packets: 64, Bytes: 1 << 17}
	p := newPair(t, Config{Limits: limits})
	f := codectest.NewFanout(25)
	for range 12 {
		f.Send(func(i int) []byte { return codectest.Publish("topic/"+string(rune('0'+i%7)), body(f.Round+i), 0) }, p.run)
		p.due(f.Now + 40*ms)
	}
	for d := range p.ends {
		m := &p.ends[d].Merger
		if got := m.encoder.Contexts(); got != 8 {
			t.Errorf("%d contexts with a limit of 8", got)
		}
		if got := len(m.flows.all); got > 8 || !m.flows.consistent() {
			t.Errorf("%d flows are kept with a limit of 8", got)
		}
		// all but the last 8 gave way
		if s := m.Stats(); s.Contexts != 25*12 || s.Evicted != s.Contexts-8 {
			t.Errorf("%d contexts were announced, %d gave way", s.Contexts, s.Evicted)
		}
	}
}

func TestIdleContextsGiveWay(t *testing.T) {
	for _, tt := range []struct {
		apart    time.Duration
		contexts int
	}{{time.Second, 1}, {time.Second - 1, 2}} {
		p := newPair(t, Config{MaxIdle: time.Second})
		for i := range 20 {
			now := time.Duration(i) * tt.apart
			p.add(0, now, ack(i, 5).Packet())
			p.flush(0, now)
		}
		if got := p.ends[0].Merger.encoder.Contexts(); got != tt.contexts {
			t.Errorf("%d contexts where one comes each %v", got, tt.apart)
		}
	}
}
