package seal

import (
	"encoding/binary"
	"slices"
)

// What one end tells the other of a connection's secrets is a list of entries:
//
//	flags(1) [suite(2)] [number(varint)] [material]
//
// or the name(8) of a record that the flow's other direction is expected to have.
// The flags say what is there (engine/wire/SPEC.md section 10.2).
const (
	tellReverse = 1 // the material is of the flow's other direction, for the receiver to open it; a number is there
	tellFirst   = 2 // what was told of the flow's own direction before is void
	tellClient  = 4 // the flow is the client's direction
	tellTraffic = 8 // the material is of the traffic, and not of the handshake
	// tellAgain says that the material is what the receiver told of this direction, and is
	// not there; with tellReverse, that the sender keeps it for being told so. Frames cross,
	// so that it is the first of a stage, and no other that takes its place.
	tellAgain = 16
	tellSuite = 32 // a suite is there; else it is that of the entry before
	// tellExpected stands alone: what follows is the name(8) of the record that the
	// client's Finished is to be in, whose flow the receiver sends.
	tellExpected = 64
	tellFlags    = tellReverse | tellFirst | tellClient | tellTraffic | tellAgain | tellSuite

	// maxTold is how many keys of a direction can be told one behind the other: one
	// for each stage, and one more where KeyUpdates were not seen.
	maxTold = 4
)

// known is material of one stage that the far end may have to be told.
type known struct {
	suite    Suite
	material []byte // owned; nil for none
	near     uint64 // a record's number, not long ago
	told     bool   // since the epoch began
}

// saidBefore is the first material of a stage that the far end was told since the epoch
// began, by which it may say the same.
type saidBefore struct {
	suite    Suite
	material []byte // owned; nil for none
}

// entries are a list of them being written.
type entries struct {
	b     []byte
	suite Suite // of the last entry that has one
}

// add appends what tells of some material.
func (t *entries) add(flags byte, s Suite, near uint64, material []byte) {
	if s != t.suite {
		flags |= tellSuite
	}
	t.b = append(t.b, flags)
	if s != t.suite {
		t.b = binary.BigEndian.AppendUint16(t.b, uint16(s))
		t.suite = s
	}
	if flags&tellReverse != 0 {
		t.b = binary.AppendUvarint(t.b, near)
	}
	t.b = append(t.b, material...)
}

// flags returns those of an entry about material of a stage.
func (c *Conn) flags(s stage) (f byte) {
	if c.fromClient {
		f |= tellClient
	}
	if s == stageTraffic {
		f |= tellTraffic
	}
	return f
}

// tell notes that the far end is to be told keys that are used from here on.
func (o *Opener) tell(k *Keys) {
	f := o.conn.flags(o.keys.stage)
	if !o.far.told {
		f |= tellFirst
		o.far.told, o.far.next, o.far.position = true, 0, position{}
	}
	if k.heard {
		o.secrets.b = append(o.secrets.b, f|tellAgain)
		return
	}
	o.secrets.add(f, k.suite.number, 0, k.Material())
}

// Secrets returns what the far end is to be told with the flow's segment that was opened
// last, or with any that is not, before it; nil for nothing. It is the caller's, who
// overwrites it.
func (c *Conn) Secrets() []byte {
	t := c.Out.secrets
	c.Out.secrets = entries{}
	if c.untold {
		c.untold = false
		for s := range c.theirs {
			k := &c.theirs[s]
			if k.material != nil && !k.told && !c.In.knows(stage(s)) && (stage(s) == stageTraffic || c.certificates) {
				k.told = true
				f := c.flags(stage(s)) | tellReverse
				if c.said[s].material == nil && !c.over {
					f |= tellAgain
					c.said[s] = saidBefore{k.suite, append([]byte(nil), k.material...)}
				}
				t.add(f, k.suite, k.near, k.material)
			}
		}
	}
	return t.b
}

// knows says whether the peer told keys of a stage or of a later one, and so needs none
// of the stage.
func (s *Sealer) knows(of stage) bool {
	return slices.ContainsFunc(s.told, func(t told) bool { return t.stage >= of })
}

// take takes in an entry, of which the peer's flow is the one that is received here. last is
// the suite of the entry before.
func (c *Conn) take(r *reader, last *Suite) {
	flags := r.byte()
	if flags == tellExpected {
		c.Out.expected, c.Out.foretold = readName(r), true
		c.table.room.texts.receiveAs(c.Out.expected)
		return
	}
	s := stageHandshake
	if flags&tellTraffic != 0 {
		s = stageTraffic
	}
	suite, near, material := c.said[s].suite, uint64(0), c.said[s].material
	if flags&tellSuite != 0 {
		*last = Suite(r.uint16())
	}
	if flags&tellReverse != 0 {
		near = r.uvarint()
	}
	if flags&(tellAgain|tellReverse) != tellAgain {
		suite = *last
		material = r.bytes(suite.SecretLen())
	} else {
		r.check(flags&tellSuite == 0)
	}
	if r.check(flags&^byte(tellFlags) == 0); r.bad {
		return
	}
	keys, err := NewKeys(suite, material)
	if err != nil {
		r.bad = true
		return
	}
	c.suite = suite
	if flags&tellReverse != 0 {
		if c.opens() && c.trusted() {
			keys.heard = flags&tellAgain != 0 && !c.ended
			c.Out.keys.learn(s, keys, near, true)
		}
		return
	}
	c.goesOn()
	if flags&tellFirst != 0 {
		c.In.unkey()
	}
	c.In.told = append(c.In.told, told{keys, s})
	r.check(len(c.In.told) <= maxTold)
}
