package mqttsn

import (
	"fmt"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[[]byte]{
	Name:      func(name uint8) string { return Name(name).String() },
	Hole:      func(h parsers.Hole, _ []byte) string { return fmt.Sprintf("hole %d counter %d", h.Off, h.Counter) },
	Span:      parsertest.Holes(func(h parsers.Hole) bool { return h.Off >= 2 && h.Len == 2 && h.Kind == parsers.HoleBig }),
	Datagrams: true,
}

var scanAll, checkSpans = suite.ScanAll, suite.CheckSpans

func newScanner() parsers.Scanner { return NewScanner(testID) }
