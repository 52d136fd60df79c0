package tls

import (
	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[[]byte]{
	Name: func(name uint8) string { return Name(name).String() },
	Span: func(sp parsers.Span) bool { return sp.NumHoles == 0 && sp.Event == nil },
	Piece: func(sp, whole parsers.Span, _ int) bool {
		return sp.Key == whole.Key && sp.Name == whole.Name && sp.Encrypted == whole.Encrypted
	},
}

var scanAll, showSpans = suite.ScanAll, suite.Show

func newScanner() parsers.Scanner { return NewScanner(testID) }

func atBoundary(s parsers.Scanner) bool { return s.(*Scanner).state == boundary }
