package resp

import (
	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.TextSuite(func(name uint8) string { return Name(name).String() })

var scanAll, showSpans, cut = suite.ScanAll, suite.ShowSpans, parsertest.Cut[string]

func newScanner() parsers.Scanner { return NewScanner(testID) }

func atBoundary(s parsers.Scanner) bool { return s.(*Scanner).state == boundary }
