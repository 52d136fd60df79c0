package codec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// A crowd is an Encoder with flows of one kind, that a test makes groups of.
type crowd struct {
	*Encoder
	flows    []Flow
	template templateNumber // of what is sent
}

func newCrowd(t *testing.T, flows int) *crowd {
	t.Helper()
	e, _ := New(Config{Similarity: ByAll, Limits: wire.DefaultLimits})
	c := &crowd{Encoder: e, flows: make([]Flow, flows), template: e.templates.take(9)}
	for i := range c.flows {
		f := &c.flows[i]
		f.Key = parsers.FlowKey{SrcPort: uint16(40000 + i), DstPort: 1883, Proto: ip.TCP, Version: 4}
		f.cid = cidAt(uint32(i))
		e.enterContext(f.cid, &context{key: f.Key})
	}
	return c
}

// group makes a group of the flows' segments; each has its flow's number as the value
// of a hole and its place as sequence number.
func (c *crowd) group(members ...int) *Group {
	g := &Group{Kind: TCP4, Spans: []Span{{
		Body: []byte("x"), Holes: []Hole{{kind: parsers.HoleDecimal}}, template: c.template,
	}}}
	for i, m := range members {
		g.Members = append(g.Members, Member{Flow: &c.flows[m], Fields: Fields{layout: &layout{}, seq: uint32(i)}})
		g.Values = append(g.Values, uint64(m))
	}
	g.CountHoles()
	c.Encoder.group++
	c.chooseContexts(g)
	return g
}

// order returns the flows of a group's members in their order, by their values too.
func orderOf(t *testing.T, g *Group) string {
	t.Helper()
	var order []int
	for i := range g.Members {
		m := int(g.Members[i].Flow.Key.SrcPort) - 40000
		if g.Values[i] != uint64(m) {
			t.Errorf("member %d of flow %d has what is flow %d's", i, m, g.Values[i])
		}
		order = append(order, m)
	}
	return fmt.Sprint(order)
}

// members makes what sets are made of.
func members(places ...int) (set []setMember) {
	for _, p := range places {
		set = append(set, setMember{cid: cidAt(uint32(p))})
	}
	return set
}

// expect has flows expected to acknowledge.
func (c *crowd) expect(places ...int) {
	for _, p := range places {
		c.views.expected.push(cidAt(uint32(p)))
	}
}

// Where the members of a group are listed from, and the order that comes of it: what is
// cheaper, with 4 for each member that is not there and 1 for each change between those that are and
// those that are not.
func TestChooseSourceOfMembers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		group    []int
		set      []int
		expected []int
		source   memberSource
		order    string
	}{
		{"nothing to list from", []int{2, 1}, nil, nil, sourceNone, "[2 1]"},
		{"the set", []int{2, 0, 1}, []int{0, 1, 2}, nil, sourceSet, "[0 1 2]"},
		{"the set, and others", []int{5, 2, 4, 0}, []int{0, 1, 2, 3}, nil, sourceSet, "[0 2 4 5]"},
		{"those expected", []int{2, 0, 1}, []int{7, 8}, []int{1, 2, 0}, sourceExpected, "[1 2 0]"},
		{"both cost the same", []int{2, 0, 1}, []int{0, 1, 2}, []int{1, 2, 0}, sourceExpected, "[1 2 0]"},
		{"the set has more", []int{2, 0, 1}, []int{0, 1, 2}, []int{1, 2}, sourceSet, "[0 1 2]"},
		{"those expected have more", []int{2, 0, 1}, []int{0, 1}, []int{1, 2, 0}, sourceExpected, "[1 2 0]"},
		{"the set has fewer others", []int{2, 0, 1}, []int{0, 1, 2}, []int{1, 2, 0, 4}, sourceSet, "[0 1 2]"},
		{"those expected have fewer others", []int{2, 0, 1}, []int{0, 1, 2, 4}, []int{1, 2, 0}, sourceExpected, "[1 2 0]"},
		{"nobody of those there are", []int{2, 1}, []int{7, 8}, []int{9}, sourceNone, "[2 1]"},
		{"a set of one is no dearer than its member", []int{1, 2}, []int{1}, nil, sourceSet, "[1 2]"},
		{"four changes for a member", []int{1, 2}, []int{9, 1, 8, 2, 7, 6}, nil, sourceSet, "[1 2]"},
		{"as many changes as members cost", []int{3}, []int{9, 3, 8}, nil, sourceSet, "[3]"},
		{"a message's first group", []int{2, 0, 1}, nil, []int{1, 2, 0}, sourceNone, "[2 0 1]"},
		{"its first group of two", []int{2, 0}, nil, []int{0, 2}, sourceExpected, "[0 2]"},
	} {
		c := newCrowd(t, 10)
		g := c.group(tt.group...)
		c.templates.at(c.template).set = members(tt.set...)
		c.expect(tt.expected...)
		c.chooseMembers(g)
		if got := orderOf(t, g); g.source != tt.source || got != tt.order {
			t.Errorf("%s: from source %d, in the order %s, expected %d and %s", tt.name, g.source, got, tt.source, tt.order)
		}
		if g.source == sourceNone && len(c.present) != 0 {
			t.Errorf("%s: %d candidates of no source", tt.name, len(c.present))
		}
	}
}

// The first group of acknowledgements is listed from those that are expected, though it
// has no set yet.
func TestChooseSourceOfAcknowledgements(t *testing.T) {
	c := newCrowd(t, 5)
	g := c.group(2, 0, 1)
	g.Spans, g.holes = nil, 0
	c.expect(1, 2, 0, 4)
	c.chooseMembers(g)
	if g.source != sourceExpected {
		t.Errorf("source %d", g.source)
	}
	if want := []bool{true, true, true, false}; !slices.Equal(c.present, want) {
		t.Errorf("present are %v of those expected", c.present)
	}
}

// Up to 16 candidates for a member are looked at.
func TestChooseSourceOfFew(t *testing.T) {
	for n, want := range map[int]memberSource{32: sourceExpected, 33: sourceNone} {
		c := newCrowd(t, 40)
		g := c.group(1, 2)
		for i := range n {
			c.expect(i + 1)
		}
		if c.chooseMembers(g); g.source != want {
			t.Errorf("%d candidates for 2 members: source %d", n, g.source)
		}
	}
}

// A source costs a change where its first candidate is none of the members, one for each
// run's end, and 4 for each member that is not there.
func TestSourceCost(t *testing.T) {
	for _, tt := range []struct {
		group, set []int
		want       int
		ok         bool
	}{
		{[]int{0, 1, 2}, []int{0, 1, 2}, 0, true},
		{[]int{0, 1, 2}, []int{2, 1, 0}, 0, true},
		{[]int{0, 1, 2}, []int{0, 1, 2, 3}, 1, true},
		{[]int{0, 1, 2}, []int{3, 0, 1, 2}, 2, true},
		{[]int{0, 1, 2}, []int{3, 0, 4, 1, 5, 2, 6}, 7, true},
		{[]int{0, 1, 2}, []int{0, 1}, 4, true},
		{[]int{0, 1, 2}, []int{3, 0}, 10, true},
		{[]int{0, 1, 2}, []int{3, 4}, 13, false},
		{[]int{0, 1, 2}, nil, 12, false},
	} {
		c := newCrowd(t, 7)
		g := c.group(tt.group...)
		g.Spans = nil
		c.ackSet = members(tt.set...)
		c.chooseMembers(g) // which finds who is there
		if cost, ok := c.sourceCost(g, sourceSet); cost != tt.want || ok != tt.ok {
			t.Errorf("%v from %v costs %d (%t), expected %d (%t)", tt.group, tt.set, cost, ok, tt.want, tt.ok)
		}
	}
}

// Members that were in another group before are not taken for members of this one, nor
// is a new flow for the one that had its CID.
func TestPlacedInThisGroup(t *testing.T) {
	c := newCrowd(t, 4)
	c.ackSet = members(0, 1, 2, 3)
	g := c.group(0, 1, 2)
	g.Spans, g.holes = nil, 0
	c.chooseMembers(g)
	g = c.group(2, 3)
	g.Spans, g.holes = nil, 0
	c.flows[3].cid = CID{}
	c.chooseContexts(g)
	c.chooseMembers(g)
	if want := []bool{false, false, true, false}; g.source != sourceSet || !slices.Equal(c.present, want) {
		t.Errorf("source %d, present are %v, expected %v", g.source, c.present, want)
	}
	c.contexts[2] = nil
	if c.placed(cidAt(2)) {
		t.Error("a CID without a context is placed")
	}
}

// Whatever the members and the candidates are, the members come out in the candidates'
// order, and all others behind.
func TestOrderOfMembers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newCrowd(t, 12)
	listed := 0
	for range 500 {
		for i := range c.flows {
			c.flows[i].cid = cidAt(uint32(i))
		}
		all := random.Perm(12)
		n := 1 + random.IntN(11)
		candidates := random.Perm(12)[:1+random.IntN(11)]
		g := c.group(all[:n]...)
		for i := range g.Members {
			if random.IntN(4) == 0 { // a new flow
				g.Members[i].Flow.cid = CID{}
			}
		}
		c.chooseContexts(g)
		c.templates.at(c.template).set = members(candidates...)
		var want []int
		for _, m := range candidates {
			if slices.Contains(all[:n], m) && !c.flows[m].cid.none() {
				want = append(want, m)
			}
		}
		if c.chooseMembers(g); g.source != sourceSet {
			continue
		}
		listed++
		var got []int
		for i := range g.Members {
			if m := int(g.Values[i]); len(got) < len(want) {
				got = append(got, m)
			}
		}
		orderOf(t, g)
		if !slices.Equal(got, want) || len(g.Members) != n {
			t.Fatalf("%v from %v: %v come first, expected %v", all[:n], candidates, got, want)
		}
	}
	if listed < 300 {
		t.Errorf("%d of 500 groups were listed from their set", listed)
	}
}

// A new flow is called what the caller says, in turn, or by the next new number; and it
// is told what its other direction is.
func TestChooseNew(t *testing.T) {
	c := newCrowd(t, 5)
	for i := range c.flows {
		if i != 1 {
			c.flows[i].cid = CID{}
		}
	}
	back := c.flows[3].Key.Reverse()
	c.views.table = []view{{}, {key: back, valid: true}}
	c.unpaired[back] = peerCIDAt(1)
	c.reuse = []CID{cidAt(4), {}, cidAt(2)}
	g := c.group(0, 1, 2, 3, 4)
	c.chooseNew(g)
	for i, want := range []struct {
		cid     CID
		reverse peerCID
	}{{cidAt(4), peerCID{}}, {cidAt(1), peerCID{}}, {cidAt(5), peerCID{}}, {cidAt(2), peerCIDAt(1)}, {cidAt(6), peerCID{}}} {
		mb := &g.Members[i]
		if mb.cid != want.cid || mb.Flow.cid != want.cid || mb.reverse != want.reverse {
			t.Errorf("member %d is called %v, its flow %v, its other direction %v; expected %+v", i, mb.cid, mb.Flow.cid, mb.reverse, want)
		}
		if mb.fresh != (i != 1) {
			t.Errorf("member %d is new: %t", i, mb.fresh)
		}
	}
	if len(c.reuse) != 0 || len(c.unpaired) != 0 {
		t.Errorf("%d CIDs and %d flows are left", len(c.reuse), len(c.unpaired))
	}
	if g := c.group(0); g.Members[0].fresh {
		t.Error("a flow is new again")
	}
}

// The clock is set so that the first TSval of a known flow is as predicted; where
// there is none that says something of the time, by the caller's.
func TestTick(t *testing.T) {
	const far = 1 << 20
	for _, tt := range []struct {
		name   string
		change func(c *crowd, first, second *Member)
		want   uint32
	}{
		{"no flow is known", func(c *crowd, a, b *Member) { a.Flow.cid, b.Flow.cid = CID{}, CID{} }, 1250},
		{"the first", func(c *crowd, a, b *Member) { a.tsval, b.tsval = 507_000, 10 }, 7000},
		{"back", func(c *crowd, a, b *Member) { a.tsval, b.tsval = 500_990, 10 }, 990},
		{"the first is not known", func(c *crowd, a, b *Member) { a.Flow.cid = CID{}; b.tsval = 601_300 }, 1300},
		{"the first had no timestamp", func(c *crowd, a, b *Member) { c.contexts[0].hasTSval = false; b.tsval = 601_300 }, 1300},
		{"the first has no timestamp", func(c *crowd, a, b *Member) { a.layout = &layout{}; b.tsval = 601_300 }, 1300},
		{"the first is far ahead", func(c *crowd, a, b *Member) { a.tsval, b.tsval = 501_000+far, 601_300 }, 1300},
		{"the first is nearly far ahead", func(c *crowd, a, b *Member) { a.tsval, b.tsval = 501_000+far-1, 601_300 }, 1000 + far - 1},
		{"the first is far behind", func(c *crowd, a, b *Member) { a.tsval, b.tsval = 501_000, 601_300; a.tsval -= far }, 1300},
		{"all are far", func(c *crowd, a, b *Member) { a.tsval, b.tsval = 501_000+far, 601_000+far }, 1250},
	} {
		c := newCrowd(t, 2)
		c.clock, c.now = 1000, 3*time.Second
		c.contexts[0].offset, c.contexts[1].offset = 500_000, 600_000
		stamped := &layout{tsval: 44}
		for i := range c.contexts {
			c.contexts[i].hasTSval = true
		}
		f := &Frame{Now: 3250*time.Millisecond + 999*time.Microsecond, Groups: []Group{*c.group(0), *c.group(1)}}
		a, b := &f.Groups[0].Members[0], &f.Groups[1].Members[0]
		a.layout, b.layout = stamped, stamped
		tt.change(c, a, b)
		if got := c.tick(f); got != tt.want {
			t.Errorf("%s: the clock is set to %d, expected %d", tt.name, got, tt.want)
		}
	}
}

// A header checksum that is not right is told in 16 bits, but where it is the flow's
// last one that was not.
func TestChooseSums(t *testing.T) {
	c := newCrowd(t, 1)
	g := c.group(0, 0, 0)
	g.Members[0].context.ipSum = 5
	g.Members[0].ipSum = 5 // and right
	g.Members[1].ipSum, g.Members[1].ipSumMode = 5, ipSumExplicit
	g.Members[2].ipSum, g.Members[2].ipSumMode = 6, ipSumExplicit
	c.chooseSums(g)
	for i, want := range []ipSumMode{ipSumRight, ipSumSame, ipSumExplicit} {
		if got := g.Members[i].ipSumMode; got != want {
			t.Errorf("member %d: mode %d, expected %d", i, got, want)
		}
	}
}

// A difference costs nothing where there is none, else 3 half bits and two for each bit
// that it is long.
func TestHalfBits(t *testing.T) {
	for d, want := range map[int32]int{0: 0, 1: 5, -1: 5, 2: 7, 3: 7, -4: 9, 255: 19, 256: 21, -1 << 31: 67} {
		if got := halfBits(d); got != want {
			t.Errorf("a difference of %d costs %d half bits, expected %d", d, got, want)
		}
	}
}

// TSvals are compared with the first where they are nearer to it than each to the one
// before it. Groups of two are not, nor are others than TCP.
func TestChooseShuffled(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tsvals []int32 // beyond what is predicted by the flow's offset; -1 for no timestamp, -2 for a flow without
		want   bool
	}{
		{"one after the other", []int32{0, 1, 2, 3, 4}, false},
		{"all the same", []int32{7, 7, 7}, false},
		{"to and fro", []int32{8, 9, 8, 10, 8, 9, 8}, true},
		{"of two", []int32{8, 50}, false},
		{"of three", []int32{8, 50, 8}, true},
		{"rising, then as the first", []int32{8, 50, 51}, false},
		{"without those that have none", []int32{-1, 8, -2, 50, -1, 8}, true},
		{"only one has any", []int32{-1, 8, -1}, false},
	} {
		c := newCrowd(t, len(tt.tsvals))
		c.clock = 90_000
		all := make([]int, len(tt.tsvals))
		for i := range all {
			all[i] = i
		}
		g := c.group(all...)
		g.shuffled = true // of an earlier frame
		for i, v := range tt.tsvals {
			mb := &g.Members[i]
			mb.context.offset = uint32(i) * 0x30303030
			mb.context.hasTSval = v != -2
			if v != -1 {
				mb.layout = &layout{tsval: 44}
			}
			mb.tsval = c.clock + mb.context.offset + uint32(v)
		}
		if c.chooseShuffled(g); g.shuffled != tt.want {
			t.Errorf("%s: shuffled %t", tt.name, g.shuffled)
		}
		g.Kind = IP4
		if c.chooseShuffled(g); g.shuffled {
			t.Errorf("%s: shuffled, though not TCP", tt.name)
		}
	}
}

// Packets are counted by members, and those that are carried as they are by themselves.
func TestPacketsOfGroups(t *testing.T) {
	groups := []Group{{Members: make([]Member, 3)}, {Kind: Verbatim}, {Members: make([]Member, 1)}}
	if got := packets(groups); got != 5 {
		t.Errorf("%d packets, expected 5", got)
	}
}
