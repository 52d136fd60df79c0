package codec

// A number names an entry of a table by its place, from 0. Its zero value is none:
// it names no entry, and its place is past the end of every table. Numbers outlive
// what they name: whoever follows one looks whether the entry is there.
type number[entry any] struct {
	plus uint32 // the place, plus one
}

func (n number[entry]) none() bool { return n.plus == 0 }

// place returns the index of the entry, 1<<32 - 1 for none.
func (n number[entry]) place() uint32 { return n.plus - 1 }

// The numbers of the four tables that both ends have. They are types of their own,
// so that the number of one table is never looked up in another.
type (
	// A CID names a context: a flow of the direction at hand (RFC 5795 section 1.2).
	CID = number[context]
	// A peerCID names a view: a flow of the other direction, by the CID that it has there.
	peerCID        = number[view]
	templateNumber = number[template]
	layoutNumber   = number[layout]
)

func cidAt(place uint32) CID                 { return CID{place + 1} }
func peerCIDAt(place uint32) peerCID         { return peerCID{place + 1} }
func templateAt(place uint32) templateNumber { return templateNumber{place + 1} }
func layoutAt(place uint32) layoutNumber     { return layoutNumber{place + 1} }

// thePeers returns what the peer's flow with a CID is called in this direction. Each
// direction's CIDs are the other's peer CIDs.
func thePeers(c CID) peerCID { return peerCID(c) }

// ours returns the CID of a flow which the peer knows by p.
func ours(p peerCID) CID { return CID(p) }

// A groupNumber counts the groups of a direction from 1, over all frames, and wraps.
// 0 is none.
type groupNumber uint32
