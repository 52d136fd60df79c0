package codec

import (
	"math"
	"testing"
)

// The zero value of a number is none, and is past the end of every table.
func TestNumberNone(t *testing.T) {
	var c CID
	if !c.none() || c.place() != math.MaxUint32 {
		t.Errorf("the zero CID has place %d, none %t", c.place(), c.none())
	}
	if c := cidAt(0); c.none() || c.place() != 0 {
		t.Errorf("the first CID has place %d, none %t", c.place(), c.none())
	}
}

// Each kind of number is made of a place and gives it back.
func TestNumberOfAPlace(t *testing.T) {
	for _, place := range []uint32{0, 1, 1 << 20} {
		for kind, got := range map[string]uint32{
			"CID": cidAt(place).place(), "peer CID": peerCIDAt(place).place(),
			"template": templateAt(place).place(), "layout": layoutAt(place).place(),
		} {
			if got != place {
				t.Errorf("the %s of place %d has %d", kind, place, got)
			}
		}
	}
}

// What is a flow's CID in one direction is the other's peer CID, and none stays none.
func TestNumbersOfBothDirections(t *testing.T) {
	if got := thePeers(cidAt(7)); got != peerCIDAt(7) {
		t.Errorf("the peer's CID is %v", got)
	}
	if got := ours(peerCIDAt(7)); got != cidAt(7) {
		t.Errorf("our CID is %v", got)
	}
	if !ours(peerCID{}).none() || !thePeers(CID{}).none() {
		t.Error("none became a number")
	}
}
