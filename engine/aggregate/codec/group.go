package codec

import "sheaf/parsers"

// A Group is a run of segments merged with one another: they have the same kind
// of header, the same flags and the same payload, but for holes. A verbatim packet
// is a group of its own, whose spans are its bytes.
//
// An Encoder is given groups; it fills in what it chooses, reorders the members, and
// says in Cost what the group took. A Decoder has one that it fills anew each time.
type Group struct {
	Kind    Kind
	Flags   uint8 // TCP flags, the byte at offset 13 of the header
	Members []Member
	Spans   []Span
	Values  []uint64 // what fills the holes, member by member: numbers, or see Encoder.Text
	Cost    Cost     // writing: set by Encode

	// Opened says that the payload is what is in TLS records: the far end's Sealer
	// makes the members' own records of it. Of TCP segments with payload only.
	Opened bool
	// Secrets are what the Sealer is told before it: of a group of one TCP segment
	// only, borrowed from the caller, at most 512 bytes.
	Secrets []byte

	holes    int  // of all spans together
	payload  int  // 1 where there are spans, else 0
	single   bool // there is one member
	source   memberSource
	shuffled bool // TSvals are compared with the first member's, not with the one before
}

// A Member is one segment of a group.
type Member struct {
	Flow *Flow // writing: whose segment it is; reading: nil
	Fields
	// Sealed is the length of the payload as it is in the segment, in bytes, where
	// that of the group is opened.
	Sealed int

	context *context // of the flow, once its CID has been coded
	cid     CID
	reverse peerCID // writing: the flow's other direction, for a fresh one
	fresh   bool    // its context is announced here
}

// A Span is a run of payload with its holes taken out.
type Span struct {
	Body  []byte // borrowed: writing, from the caller; reading, from the template or the literals
	Holes []Hole
	Advice

	key      uint64 // writing: of its template
	template templateNumber
	known    bool           // the template was there before
	base     templateNumber // of a new template: whose newest body its first is compared with
	depth    int            // which of the template's bodies it is again, -1 for none
	literal  bool           // the body goes beside the control field as it is
}

// Advice is what the writing end knows about a span beyond its bytes: what it may
// be compared with, and where it is counted. A Decoder knows nothing of it.
type Advice struct {
	Key       uint64 // of what is comparable with it (parsers.Span.Key); of a verbatim packet, any
	Event     []byte // what its message is about, borrowed from the caller; only counted by
	Split     int    // where its message body begins, in Body
	At        int    // where it starts inside its message
	Protocol  parsers.ProtocolID
	Name      uint8
	Class     parsers.Class
	Encrypted bool // not worth a comparison
	noise     bool // its message body looks random

	// Set by Encode.

	Template uint32 // number of its template
	Literals int    // bytes of it that are among the frame's literals
	Hit      Hit    // how it found what it was compared with; NoHit where it found nothing
}

// A Cost is what a group took of the control field, in bits.
type Cost struct {
	Bits     float64 // all of it
	Bodies   float64 // its spans
	Topics   float64 // the part of them before the message bodies
	Literals int     // bytes of the frame's literals
}

// Hit is the criterion by which a span found what it was compared with.
type Hit uint8

const (
	HitEvent Hit = iota
	HitNameLength
	HitName
	HitLength
	HitContent
	NumHits
	NoHit   = NumHits     // nothing was found
	Unasked = NumHits + 1 // nothing was compared: a packet as it is, or a flow's own by setting
)

func (h Hit) String() string {
	return [...]string{"event", "name+length", "name", "length", "content", "none", "unasked"}[h]
}

// A memberSource says where the candidates for a group's members come from.
type memberSource uint8

const (
	sourceNone     memberSource = iota
	sourceSet                   // the set of the group's template
	sourceExpected              // the flows that are expected to acknowledge
)

// member returns the i-th member, which is new at a reading end that has i.
func (g *Group) member(i int) *Member {
	if i == len(g.Members) {
		g.Members = append(g.Members, Member{})
	}
	return &g.Members[i]
}

// span returns the i-th span, which is new at a reading end that has i.
func (g *Group) span(i int) *Span {
	if i == len(g.Spans) {
		g.Spans = append(g.Spans, Span{})
	}
	return &g.Spans[i]
}

// CountHoles counts the holes of all spans, once these are there.
func (g *Group) CountHoles() {
	g.holes = 0
	for i := range g.Spans {
		g.holes += len(g.Spans[i].Holes)
	}
}

// Holes returns how many holes the spans have together: as many values there are for each
// member.
func (g *Group) Holes() int { return g.holes }

// Size returns the payload length of member i in bytes.
func (g *Group) Size(i int) int {
	if g.Opened {
		return g.Members[i].Sealed
	}
	n := 0
	at := i * g.holes
	for k := range g.Spans {
		s := &g.Spans[k]
		n += len(s.Body)
		for _, h := range s.Holes {
			n += h.len(g.Values[at])
			at++
		}
	}
	return n
}

// HeaderLen returns the length of member i's headers in bytes.
func (g *Group) HeaderLen(i int) int { return len(g.Members[i].layout.bytes) }

// swap exchanges two members.
func (g *Group) swap(i, j int) {
	g.Members[i], g.Members[j] = g.Members[j], g.Members[i]
	for k := range g.holes {
		a, b := &g.Values[i*g.holes+k], &g.Values[j*g.holes+k]
		*a, *b = *b, *a
	}
}
