package coap

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
	Span:      parsertest.Holes(func(h parsers.Hole) bool { return h.Len <= 8 }),
	Datagrams: true,
}

var scanAll, checkSpans, showSpans = suite.ScanAll, suite.CheckSpans, suite.Show

func newScanner() parsers.Scanner { return NewScanner(testID) }
