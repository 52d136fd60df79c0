package nats

import (
	"slices"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[string]{
	Name: func(name uint8) string { return Name(name).String() },
	Hole: parsertest.ShowField,
	Span: func(sp parsers.Span) bool {
		return !slices.ContainsFunc(sp.Holes[:sp.NumHoles], func(h parsers.Hole) bool { return h.Kind == parsers.HoleBig })
	},
	Piece: func(sp, whole parsers.Span, _ int) bool { return sp.Name == whole.Name || sp.Name == 0 },
}

var scanAll, checkSpans, showSpans, cut = suite.ScanAll, suite.CheckSpans, suite.ShowSpans, parsertest.Cut[string]

func newScanner() parsers.Scanner { return NewScanner(testID) }

var atBoundary = parsertest.AtBoundary("PING\r\n")
