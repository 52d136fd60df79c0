package kafka

import (
	"fmt"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[[]byte]{
	Name: func(name uint8) string { return Name(name).String() },
	Hole: func(h parsers.Hole, _ []byte) string {
		return fmt.Sprintf("hole %d+%d counter %d", h.Off, h.Len, h.Counter)
	},
	Span: parsertest.Holes(func(h parsers.Hole) bool { return h.Kind != parsers.HoleDecimal }),
	// The key is the message's from where the topic ends.
	Piece: func(sp, whole parsers.Span, _ int) bool {
		return sp.Key != whole.Key || sp.Name == whole.Name && sp.Class == whole.Class
	},
}

var scanAll, showSpans, cut = suite.ScanAll, suite.Show, parsertest.Cut[[]byte]

func newScanner() parsers.Scanner { return NewScanner(testID) }

var atBoundary = parsertest.AtBoundary(request(3, 1, 5, "c-1"))
