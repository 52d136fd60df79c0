package amqp

import (
	"fmt"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

const testID = parsertest.ID

var suite = parsertest.Suite[[]byte]{
	Name: func(name uint8) string { return Name(name).String() },
	Hole: func(h parsers.Hole, _ []byte) string { return fmt.Sprintf("%d+%d:%d", h.Off, h.Len, h.Counter) },
	// Name and class are the message's from where its method is told.
	Piece: func(sp, whole parsers.Span, end int) bool {
		return end < methodHead || sp.Name == whole.Name && sp.Class == whole.Class
	},
	Frames: true,
}

var scanAll, showSpans = suite.ScanAll, suite.Show

func newScanner() parsers.Scanner { return NewScanner(testID) }

func atBoundary(s parsers.Scanner) bool { return s.(*Scanner).state == boundary }
