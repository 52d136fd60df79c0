package mqtt

import (
	"fmt"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[[]byte]{
	Name:  func(name uint8) string { return Name(name).String() },
	Hole:  func(h parsers.Hole, _ []byte) string { return fmt.Sprintf("hole %d counter %d", h.Off, h.Counter) },
	Span:  parsertest.Holes(func(h parsers.Hole) bool { return h.Len <= 8 }),
	Piece: func(sp, whole parsers.Span, _ int) bool { return sp.Name == whole.Name && sp.Class == whole.Class },
}

var scanAll, showSpans = suite.ScanAll, suite.Show

func newScanner() parsers.Scanner { return NewScanner(testID) }

var atBoundary = parsertest.AtBoundary(msg(0xc0))
