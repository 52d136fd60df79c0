package codec

import (
	"fmt"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// bits returns what write costs, in whole bits, rounded.
func (e *Encoder) bits(write func()) int {
	e.coder.Write(nil)
	write()
	return int(e.coder.Cost() + 0.5)
}

// A single member is listed by its CID; behind the one that it followed last time that
// costs next to nothing. What follows what is known of segments with payload and of those
// without, each by itself.
func TestMembersFollow(t *testing.T) {
	c := newCrowd(t, 8)
	list := func(flow, payload int) {
		g := &Group{Kind: TCP4, Members: make([]Member, 1), payload: payload, single: true}
		g.Members[0].cid = cidAt(uint32(flow))
		if err := c.codeMember(g, 0); err != nil {
			t.Fatal(err)
		}
		if g.first() != c.contexts[flow] {
			t.Errorf("the member of flow %d has another context", flow)
		}
	}
	order := []int{3, 1, 4, 0}
	cost := 0
	for range 10 {
		cost = c.bits(func() {
			for _, flow := range order {
				list(flow, 1)
			}
		})
	}
	if cost > 1 {
		t.Errorf("four members in an order that is known cost %d bits", cost)
	}
	for i, flow := range order {
		if got, want := c.contexts[flow].next, cidAt(uint32(order[(i+1)%4])); got[1] != want || !got[0].none() {
			t.Errorf("behind flow %d come %v, expected %v", flow, got, want)
		}
	}
	if c.lastMember != [2]CID{{}, cidAt(0)} {
		t.Errorf("the last members are %v", c.lastMember)
	}
	if cost := c.bits(func() { list(4, 1) }); cost < 3 {
		t.Errorf("a member that is not the one expected costs %d bits, less than its number", cost)
	}
	list(2, 0)
	list(5, 0)
	if c.lastMember != [2]CID{cidAt(5), cidAt(4)} || c.contexts[2].next[0] != cidAt(5) || !c.contexts[4].next[0].none() {
		t.Errorf("the last members are %v; behind flow 2 comes %v", c.lastMember, c.contexts[2].next)
	}
}

// Who follows whom is not learned from members that are listed from a source.
func TestListedMembersDoNotFollow(t *testing.T) {
	c := newCrowd(t, 4)
	c.ackSet = members(0, 1, 2)
	g := c.group(2, 0, 1, 3)
	g.Spans, g.holes = nil, 0
	c.chooseMembers(g)
	c.bits(func() {
		if err := c.codeMembers(g); err != nil {
			t.Fatal(err)
		}
	})
	for i, f := range c.contexts {
		if !f.next[0].none() {
			t.Errorf("behind flow %d comes %v", i, f.next[0])
		}
	}
	if c.lastMember != [2]CID{cidAt(3), {}} {
		t.Errorf("the last members are %v", c.lastMember)
	}
	for i := range g.Members {
		mb := &g.Members[i]
		if mb.context != c.context(mb.cid) || !c.marked(mb.cid) {
			t.Errorf("member %d: flow %v, listed %t", i, mb.cid, c.marked(mb.cid))
		}
	}
}

// A new flow costs least where it is the other direction of the newest one of the peer's.
// One that is next to the newest of its own direction costs less than one far from it.
func TestNewContextsCost(t *testing.T) {
	x := newExchange(t, Config{})
	cost := func(d int, s codectest.Segment) float64 {
		s.Flags, s.Down = 2, d == 1
		return x.send(d, s.Packet()).groups[0].Cost.Bits
	}
	for i := range 20 {
		cost(0, codectest.Segment{Client: i, Port: i, Seq: 1})
		cost(1, codectest.Segment{Client: i, Port: i, Seq: 1})
	}
	x.settle()
	near := cost(0, codectest.Segment{Client: 20, Port: 20, Seq: 1})
	reversed := cost(1, codectest.Segment{Client: 20, Port: 20, Seq: 1})
	if far := cost(0, codectest.Segment{Client: 9999, Port: 20000, Seq: 1}); far < near+8 {
		t.Errorf("a flow of another address costs %.1f bits, one of the next %.1f", far, near)
	}
	if reversed > near-8 {
		t.Errorf("the other direction of the newest flow costs %.1f bits, a new flow %.1f", reversed, near)
	}
	e := x.encoder(1)
	if f := e.contexts[len(e.contexts)-1]; f.reverse != peerCIDAt(20) || f.key != x.encoder(0).contexts[20].key.Reverse() {
		t.Errorf("its reverse is %v, its key %v", f.reverse, f.key)
	}
	if e.newest != e.contexts[20].key {
		t.Errorf("the newest flow is %v", e.newest)
	}
}

// A flow whose other direction is not the newest unpaired one names it by its number.
func TestOlderOtherDirections(t *testing.T) {
	x := newExchange(t, Config{})
	for i := range 5 {
		x.send(0, codectest.Segment{Client: i, Port: i, Flags: 2}.Packet())
	}
	for _, i := range []int{4, 1, 3, 0, 2} {
		s := codectest.Segment{Client: i, Port: i, Down: true, Flags: 0x12}
		x.send(1, s.Packet())
		if f := x.context(1, s.Packet()); f.reverse != peerCIDAt(uint32(i)) {
			t.Errorf("the reverse of client %d is %v", i, f.reverse)
		}
	}
	if !x.encoder(1).views.unpaired.none() {
		t.Errorf("%v is unpaired", x.encoder(1).views.unpaired)
	}
	x.settle()
}

// An address of which more than four fifths of the bytes are not the newest one's is
// told as it is, in 8 bits each.
func TestAddressesAsTheyAre(t *testing.T) {
	for _, tt := range []struct{ len, others int }{{4, 3}, {4, 4}, {16, 12}, {16, 13}} {
		for which := range 2 {
			c := newCrowd(t, 0)
			old, b := make([]byte, tt.len), make([]byte, tt.len)
			for i := range tt.others {
				b[i] = byte(100 + i)
			}
			want := string(b)
			cost := c.bits(func() { c.codeAddress(which, old, b) })
			if string(b) != want {
				t.Errorf("the address to be written was changed to %x", b)
			}
			plain := 1 + 8*tt.len
			if asTheyAre := 5*tt.others > 4*tt.len; asTheyAre != (cost == plain) {
				t.Errorf("%d of %d bytes are others: the address costs %d bits; as it is %d", tt.others, tt.len, cost, plain)
			}
			d := newCrowd(t, 0)
			d.coder.Read(c.coder.Finish())
			got := make([]byte, tt.len)
			if d.codeAddress(which, old, got); string(got) != want {
				t.Errorf("%d of %d bytes are others: %x was read as %x", tt.others, tt.len, want, got)
			}
		}
	}
}

// A key comes out as it went in, whatever the newest one is: its version and, for TCP,
// its protocol are those of the group's kind.
func TestCodeKey(t *testing.T) {
	six := parsers.FlowKey{Src: [16]byte{0xfd, 1, 15: 9}, Dst: [16]byte{0xfe, 2, 15: 8}, SrcPort: 5, DstPort: 6, Proto: ip.UDP, Version: 6}
	four := parsers.FlowKey{Src: [16]byte{10, 1, 2, 3}, Dst: [16]byte{10, 2, 0, 10}, SrcPort: 40000, DstPort: 1883, Proto: ip.TCP, Version: 4}
	icmp := four
	icmp.Proto, icmp.SrcPort, icmp.DstPort = 1, 0, 0
	tcp6 := six
	tcp6.Proto = ip.TCP
	w, r := newCrowd(t, 0), newCrowd(t, 0)
	all := []parsers.FlowKey{four, six, icmp, tcp6, four, tcp6, icmp, six}
	w.coder.Write(nil)
	for _, key := range all {
		k := key
		w.codeKey(KindOf(&key), &k)
		if w.newest = k; k != key {
			t.Errorf("%v was written as %v", key, k)
		}
	}
	r.coder.Read(w.coder.Finish())
	for _, key := range all {
		var k parsers.FlowKey
		r.codeKey(KindOf(&key), &k)
		if r.newest = k; k != key {
			t.Errorf("%v was read as %v", key, k)
		}
	}
	cost := 0
	for range 100 {
		cost = w.bits(func() { w.codeKey(IP6, &six) })
	}
	if cost > 1 {
		t.Errorf("the newest key once more costs %d bits", cost)
	}
}

// There are as many contexts as the limits say, also of both ends of a conversation.
func TestContextsAreBounded(t *testing.T) {
	limits := wire.Limits{Flows: 8, Templates: 3, Bodies: 300, Packets: 64, Bytes: 1 << 17}
	x := newExchange(t, Config{Limits: limits})
	f := codectest.NewFanout(25)
	for range 12 {
		f.Send(func(i int) []byte {
			return codectest.Publish(fmt.Sprint("topic/", i%7), fmt.Sprint("a body of some length ", f.Round+i), 0)
		}, x.run)
	}
	x.settle()
	for d := range 2 {
		e := x.encoder(d)
		if got := len(e.contexts); got != 8 {
			t.Errorf("%d contexts with a limit of 8", got)
		}
		if got := e.templates.bytes; got > 300 {
			t.Errorf("%d bytes of bodies with a limit of 300", got)
		}
		if got := len(e.templates.table); got > 3 {
			t.Errorf("%d templates with a limit of 3", got)
		}
		if got := len(e.unpaired); got > 2*8+64 {
			t.Errorf("%d flows without their other direction are kept", got)
		}
	}
}
