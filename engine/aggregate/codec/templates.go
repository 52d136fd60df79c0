package codec

import "bytes"

const (
	// templateDepth is how many bodies a template remembers: copies of one message
	// can be a round trip apart (30 to 80 ms were measured behind a broker with Nagle
	// on), in which a topic has up to three newer messages. In the captures of testdata
	// 2 cost 0.01 % more bytes, 8 save as much.
	templateDepth = 4
	// maxBody bounds a remembered body, in bytes; longer ones are sent and forgotten. It
	// bounds memory: 4 and 64 kB change no capture of testdata.
	maxBody = 1 << 14

	// setMinimum is how many members make a group worth learning. 2 cost 0.01 % more, 6
	// save 0.1 %, but leave small fan-outs without a set, and so without a complete group.
	setMinimum = 3
	// setMisses is how many absences in a row drop a member from a set: 3 cost 0.06 % more,
	// 48 save 0.02 %, and would wait four times as long for a client that is gone.
	setMisses = 12
	// setLimit bounds a set, and what is listed of the flows that are expected; so
	// does the number of packets in a frame.
	setLimit = 1 << 13
)

// A template remembers comparable spans: the newest bodies, against which the next
// ones are written, and the flows that get them.
type template struct {
	bodies [templateDepth][]byte // without their holes
	count  int
	newest int
	exact  bool   // its last span was one of them again
	holes  []Hole // of the newest body
	set    []setMember
	next   templateNumber // of the span that followed in the same flow
	follow templateNumber // of the group of several that followed
	clock  uint32         // when the newest body was coded
	older  templateNumber // neighbours in order of use
	newer  templateNumber
	used   bool
}

// A setMember is a flow that gets a template's messages.
type setMember struct {
	cid    CID
	misses uint8 // groups in a row that it was not in
}

// body returns the k-th newest body.
func (t *template) body(k int) []byte {
	return t.bodies[(t.newest+templateDepth-k)%templateDepth]
}

// find returns which of the newest bodies is the same, -1 when none is.
func (t *template) find(body []byte) int {
	for k := range t.count {
		if bytes.Equal(t.body(k), body) {
			return k
		}
	}
	return -1
}

// templates is the table of templates, in order of use. It is bounded in number and
// in bytes; what was used longest ago gives way.
type templates struct {
	table          []template // its capacity is never passed: pointers into it stay right
	bytes          int        // of all bodies
	oldest, newest templateNumber
	free           []templateNumber
}

// at returns the template of a number that the table holds, or held.
func (t *templates) at(n templateNumber) *template { return &t.table[n.place()] }

// holds tells whether n is the number of a template in use.
func (t *templates) holds(n templateNumber) bool {
	return n.place() < uint32(len(t.table)) && t.at(n).used
}

// take returns the number of an unused template, which it makes by dropping the
// oldest when there are max already.
func (t *templates) take(max int) templateNumber {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		t.link(i)
		return i
	}
	if len(t.table) >= max {
		t.drop(t.oldest)
		return t.take(max)
	}
	t.table = append(t.table, template{})
	i := templateAt(uint32(len(t.table) - 1))
	t.link(i)
	return i
}

func (t *templates) link(n templateNumber) {
	e := t.at(n)
	e.used = true
	e.older, e.newer = t.newest, templateNumber{}
	if !t.newest.none() {
		t.at(t.newest).newer = n
	} else {
		t.oldest = n
	}
	t.newest = n
}

func (t *templates) unlink(n templateNumber) {
	e := t.at(n)
	if !e.older.none() {
		t.at(e.older).newer = e.newer
	} else {
		t.oldest = e.newer
	}
	if !e.newer.none() {
		t.at(e.newer).older = e.older
	} else {
		t.newest = e.older
	}
}

// touch makes n the template used last.
func (t *templates) touch(n templateNumber) {
	if t.newest != n {
		t.unlink(n)
		t.link(n)
	}
}

func (t *templates) drop(n templateNumber) {
	e := t.at(n)
	for k := range e.bodies {
		t.bytes -= len(e.bodies[k])
	}
	t.unlink(n)
	*e = template{set: e.set[:0], holes: e.holes[:0]}
	t.free = append(t.free, n)
}

// remember makes body, which it copies, the newest of template n, the one used last,
// and keeps the bodies of all other templates together with it below max bytes.
func (t *templates) remember(n templateNumber, body []byte, clock uint32, max int) {
	e := t.at(n)
	e.newest = (e.newest + 1) % templateDepth
	e.count = min(e.count+1, templateDepth)
	e.clock = clock
	old := e.bodies[e.newest]
	t.bytes += len(body) - len(old)
	e.bodies[e.newest] = append(old[:0], body...)
	for t.bytes > max && t.oldest != n {
		t.drop(t.oldest)
	}
}
