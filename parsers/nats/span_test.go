package nats

import (
	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.TextSuite(func(name uint8) string { return Name(name).String() })

var scanAll, showSpans, cut = suite.ScanAll, suite.ShowSpans, parsertest.Cut[string]

func newScanner() parsers.Scanner { return NewScanner(testID) }

var atBoundary = parsertest.AtBoundary("PING\r\n")
