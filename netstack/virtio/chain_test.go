package virtio_test

import (
	"errors"
	"math"
	"testing"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// chainTest is a chain of readable buffers. Each is tried in the other direction, too.
type chainTest struct {
	name  string
	table []virtiotest.Descriptor // of the ring, of size 4
	other []virtiotest.Descriptor // a table at data, for indirect descriptors
	want  error
	n     int
}

// The addresses of chainTests: the second table, and buffers.
const (
	chainTable = virtiotest.Origin + 4*page
	chainData  = virtiotest.Origin + 8*page
	chainEnd   = virtiotest.Origin + 16*page // of the memory
)

// desc is one descriptor.
func desc(addr uint64, n uint32, flags, next uint16) virtiotest.Descriptor {
	return virtiotest.Descriptor{Addr: addr, Len: n, Flags: flags, Next: next}
}

func one(d virtiotest.Descriptor) []virtiotest.Descriptor { return []virtiotest.Descriptor{d} }

// Each rule of a chain that holds without indirect descriptors (virtio 1.2 section 2.7.5),
// at its bound and past it.
var directChains = []chainTest{
	{"one", one(desc(chainData, 10, 0, 9)), nil, nil, 10},
	{"no bytes", one(desc(chainData, 0, 0, 0)), nil, virtio.ErrLength, 0},
	{"no bytes at the end", []virtiotest.Descriptor{desc(chainData, 1, next, 1), desc(chainData, 0, 0, 0)}, nil, virtio.ErrLength, 0},
	{"as long as the ring", chainOf(0, chainData, 1, 2, 3, 4), nil, nil, 10},
	{"a loop", []virtiotest.Descriptor{desc(chainData, 1, next, 1), desc(chainData, 1, next, 0)}, nil, virtio.ErrChain, 0},
	{"a loop of one", one(desc(chainData, 1, next, 0)), nil, virtio.ErrChain, 0},
	{"a next at the end of the table", []virtiotest.Descriptor{desc(chainData, 1, next, 3), {}, {}, desc(chainData, 1, 0, 0)}, nil, nil, 2},
	{"a next past the table", one(desc(chainData, 1, next, 4)), nil, virtio.ErrDescriptor, 0},
	{"a next far past the table", one(desc(chainData, 1, next, 65535)), nil, virtio.ErrDescriptor, 0},
	{"the other direction", one(desc(chainData, 1, write, 0)), nil, virtio.ErrDirection, 0},
	{"the other direction at the end", []virtiotest.Descriptor{desc(chainData, 1, next, 1), desc(chainData, 1, write, 0)}, nil, virtio.ErrDirection, 0},
	{"flags that nobody knows", one(desc(chainData, 1, 0xfff8, 0)), nil, nil, 1},
	{"up to the end of the memory", one(desc(chainEnd-5, 5, 0, 0)), nil, nil, 5},
	{"past the end of the memory", one(desc(chainEnd-5, 6, 0, 0)), nil, virtio.ErrAddress, 0},
	{"before the memory", one(desc(virtiotest.Origin-1, 2, 0, 0)), nil, virtio.ErrAddress, 0},
	{"past the end of all addresses", one(desc(math.MaxUint64, 2, 0, 0)), nil, virtio.ErrAddress, 0},
	{"all of the memory", one(desc(virtiotest.Origin, 16*page, 0, 0)), nil, nil, 16 * page},
	{"2^31 bytes", one(desc(chainData, 1<<31, 0, 0)), nil, virtio.ErrLength, 0},
	{"2^31-1 bytes, of which few are there", one(desc(chainData, 1<<31-1, 0, 0)), nil, virtio.ErrAddress, 0},
	{"2^32 bytes in four", []virtiotest.Descriptor{
		desc(chainData, 1, next, 1), desc(chainData, math.MaxUint32, 0, 0),
	}, nil, virtio.ErrLength, 0},
}

// And those of indirect descriptors (section 2.7.5.3).
var indirectChains = []chainTest{
	{"a table of one", one(desc(chainTable, 16, indirect, 9)), one(desc(chainData, 10, 0, 9)), nil, 10},
	{"a table whose reference has a direction", one(desc(chainTable, 16, indirect|write, 0)), one(desc(chainData, 10, 0, 0)), nil, 10},
	{"a table after others", []virtiotest.Descriptor{desc(chainData, 1, next, 2), {}, desc(chainTable, 48, indirect, 0)}, chainOf(0, chainData, 1, 2, 3), nil, 7},
	{"a table after others that is too long", []virtiotest.Descriptor{desc(chainData, 1, next, 2), {}, desc(chainTable, 64, indirect, 0)}, chainOf(0, chainData, 1, 2, 3, 4), virtio.ErrChain, 0},
	{"a table with a next", []virtiotest.Descriptor{desc(chainTable, 16, indirect|next, 1), desc(chainData, 1, 0, 0)}, one(desc(chainData, 10, 0, 0)), virtio.ErrIndirect, 0},
	{"as many as the ring's size", one(desc(chainTable, 64, indirect, 0)), chainOf(0, chainData, 1, 2, 3, 4), nil, 10},
	{"more than the ring's size", one(desc(chainTable, 80, indirect, 0)), chainOf(0, chainData, 1, 2, 3, 4, 5), virtio.ErrChain, 0},
	{"a longer table of which few are used", one(desc(chainTable, 80, indirect, 0)), []virtiotest.Descriptor{desc(chainData, 1, next, 4), {}, {}, {}, desc(chainData, 2, 0, 0)}, nil, 3},
	{"a next past the table", one(desc(chainTable, 32, indirect, 0)), one(desc(chainData, 1, next, 2)), virtio.ErrDescriptor, 0},
	{"a loop", one(desc(chainTable, 32, indirect, 0)), one(desc(chainData, 1, next, 0)), virtio.ErrChain, 0},
	{"a table in a table", one(desc(chainTable, 32, indirect, 0)), []virtiotest.Descriptor{desc(chainTable+16, 16, indirect, 0), desc(chainData, 1, 0, 0)}, virtio.ErrIndirect, 0},
	{"a table in a table, later", one(desc(chainTable, 48, indirect, 0)), []virtiotest.Descriptor{desc(chainData, 1, next, 1), desc(chainTable+32, 16, indirect, 0), desc(chainData, 1, 0, 0)}, virtio.ErrIndirect, 0},
	{"an empty table", one(desc(chainTable, 0, indirect, 0)), one(desc(chainData, 1, 0, 0)), virtio.ErrIndirect, 0},
	{"a table of 15 bytes", one(desc(chainTable, 15, indirect, 0)), one(desc(chainData, 1, 0, 0)), virtio.ErrIndirect, 0},
	{"a table of 17 bytes", one(desc(chainTable, 17, indirect, 0)), one(desc(chainData, 1, 0, 0)), virtio.ErrIndirect, 0},
	{"a table past the end of the memory", one(desc(chainEnd-8, 16, indirect, 0)), nil, virtio.ErrAddress, 0},
	{"a table nowhere", one(desc(1, 16, indirect, 0)), nil, virtio.ErrAddress, 0},
	{"a table past all addresses", one(desc(math.MaxUint64-7, 16, indirect, 0)), nil, virtio.ErrAddress, 0},
	{"the other direction", one(desc(chainTable, 16, indirect, 0)), one(desc(chainData, 10, write, 0)), virtio.ErrDirection, 0},
	{"no bytes", one(desc(chainTable, 16, indirect, 0)), one(desc(chainData, 0, 0, 0)), virtio.ErrLength, 0},
}

// run takes or gives the chain; in the second case, readable and writable change places.
func (c chainTest) run(t *testing.T, features uint64, writable bool) (n int, err error) {
	t.Helper()
	m := newMemory(t, 8*page, 8*page)
	r, err := virtiotest.NewRing(m, 4, features)
	if err != nil {
		t.Fatal(err)
	}
	turn := func(d virtiotest.Descriptor) virtiotest.Descriptor {
		if writable {
			d.Flags ^= write
		}
		return d
	}
	for i, d := range c.table {
		r.SetDescriptor(i, turn(d))
	}
	for i, d := range c.other {
		turn(d).Put(m, chainTable+16*uint64(i))
	}
	offer(r, 0)
	q := newQueue(t, r)
	if writable {
		n, _, err = q.Room()
	} else {
		n, _, err = q.Take(nil, nil)
	}
	return n, err
}

func TestChains(t *testing.T) {
	for _, writable := range []bool{false, true} {
		for _, c := range directChains {
			for _, features := range []uint64{0, virtio.FeatureIndirect} {
				if n, err := c.run(t, features, writable); n != c.n || !errors.Is(err, c.want) {
					t.Errorf("%s, writable %v: %d, %v", c.name, writable, n, err)
				}
			}
		}
		for _, c := range indirectChains {
			if n, err := c.run(t, virtio.FeatureIndirect, writable); n != c.n || !errors.Is(err, c.want) {
				t.Errorf("indirect, %s, writable %v: %d, %v", c.name, writable, n, err)
			}
			if n, err := c.run(t, 0, writable); n != 0 || !errors.Is(err, virtio.ErrIndirect) {
				t.Errorf("indirect without having been negotiated, %s: %d, %v", c.name, n, err)
			}
		}
	}
}

// An indirect table may lie anywhere, also across two regions and not aligned.
func TestIndirectTableAnywhere(t *testing.T) {
	m := newMemory(t, 8*page, 8*page)
	r, err := virtiotest.NewRing(m, 4, virtio.FeatureIndirect)
	if err != nil {
		t.Fatal(err)
	}
	q := newQueue(t, r)
	for _, at := range []uint64{chainTable + 1, chainTable + 2, chainTable + 8, chainData - 16, chainData - 8, chainData - 5, chainData - 27, chainEnd - 32} {
		for i, d := range chainOf(0, chainData+page, 3, 4) {
			d.Put(m, at+16*uint64(i))
		}
		give(r, one(desc(at, 32, indirect, 0)))
		if n, ok, err := q.Take(nil, nil); n != 7 || !ok || err != nil {
			t.Errorf("table at %#x: %d, %v, %v", at, n, ok, err)
		}
		q.Publish()
	}
}

// A head is a descriptor of the ring.
func TestHeadIsBounded(t *testing.T) {
	for head, want := range map[uint16]error{3: nil, 4: virtio.ErrDescriptor, 65535: virtio.ErrDescriptor} {
		r, data := newRing(t, 4, 0)
		r.SetDescriptor(3, desc(data, 1, 0, 0))
		offer(r, head)
		if _, _, err := newQueue(t, r).Take(nil, nil); !errors.Is(err, want) {
			t.Errorf("head %d: %v", head, err)
		}
	}
}

// The longest loop that a guest can make ends, in each kind of table.
func TestLongestLoopEnds(t *testing.T) {
	r, data := newRing(t, virtio.MaxSize, virtio.FeatureIndirect)
	for i := range virtio.MaxSize {
		r.SetDescriptor(i, desc(data, 1, next, uint16((i+1)%virtio.MaxSize)))
	}
	offer(r, 0)
	if _, _, err := newQueue(t, r).Take(nil, nil); !errors.Is(err, virtio.ErrChain) {
		t.Error(err)
	}
	r.SetDescriptor(0, desc(r.Config.Desc+16, 16*(virtio.MaxSize-1), indirect, 0))
	r.SetDescriptor(virtio.MaxSize-1, desc(data, 1, next, 0))
	if _, _, err := newQueue(t, r).Room(); !errors.Is(err, virtio.ErrDirection) {
		t.Error(err)
	}
	if _, _, err := newQueue(t, r).Take(nil, nil); !errors.Is(err, virtio.ErrChain) {
		t.Error(err)
	}
}
