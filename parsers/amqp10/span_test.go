package amqp10

import (
	"fmt"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[[]byte]{
	Name:   func(name uint8) string { return Name(name).String() },
	Hole:   func(h parsers.Hole, _ []byte) string { return fmt.Sprintf("%d+%d:%d", h.Off, h.Len, h.Counter) },
	Frames: true,
}

var scanAll, showSpans = suite.ScanAll, suite.Show

func newScanner() parsers.Scanner { return NewScanner(testID) }

var atBoundary = parsertest.AtBoundary(empty())
