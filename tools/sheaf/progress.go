package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progressAfter is how long a file must take before there is a progress bar.
const progressAfter = 700 * time.Millisecond

// A progress shows how far a file was read, on a terminal only. Nil shows
// nothing.
type progress struct {
	out   io.Writer
	name  string
	size  int64 // -1 if not known
	begun time.Time
	bar   *progressbar.ProgressBar
}

// newProgress returns nil where out is no terminal.
func newProgress(out io.Writer, name string, size int64) *progress {
	f, ok := out.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &progress{out: out, name: shorten(printable(name), 30), size: size, begun: time.Now()}
}

// at shows that so many bytes were read.
func (p *progress) at(offset int64) {
	switch {
	case p == nil || p.bar == nil && time.Since(p.begun) < progressAfter:
		return
	case p.bar == nil:
		p.bar = progressbar.NewOptions64(p.size,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription(p.name),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetWidth(20),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	p.bar.Set64(offset) // an error of a progress bar is nobody's
}

// end takes the bar away.
func (p *progress) end() {
	if p != nil && p.bar != nil {
		p.bar.Clear()
	}
}
