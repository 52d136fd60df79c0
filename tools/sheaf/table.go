package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// A table is rows of cells under a heading. A cell is text, or a number if its
// column's heading begins with a tab: those stand at the right.
type table struct {
	heading []string
	rows    [][]string
}

func newTable(heading ...string) *table { return &table{heading: heading} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table with an empty line before it.
func (t *table) write(w io.Writer) {
	rows := [][]string{make([]string, len(t.heading))}
	width := make([]int, len(t.heading))
	right := make([]bool, len(t.heading))
	for i, h := range t.heading {
		rows[0][i], right[i] = strings.CutPrefix(h, "\t")
	}
	rows = append(rows, t.rows...)
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], columns(cell))
		}
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-columns(cell))
			if right[i] {
				cell = pad + cell
			} else {
				cell += pad
			}
			line.WriteString("  " + cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// columns returns how many columns of a terminal a text takes: characters of East
// Asia and emoji take two, accents of their own none (UAX #11, UAX #29).
func columns(s string) int { return uniseg.StringWidth(s) }

// number writes a number with its thousands apart.
func number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// count writes how many there are of a thing.
func count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

// size writes a number of bytes.
func size(n float64) string {
	units := [...]string{"kB", "MB", "GB", "TB"}
	if n < 999.5 {
		return fmt.Sprintf("%.0f B", n)
	}
	for i, unit := range units {
		if n /= 1000; n < 999.95 || i == len(units)-1 {
			return fmt.Sprintf("%.1f %s", n, unit)
		}
	}
	return ""
}

// each writes bytes shared out among things.
func each(bytes float64, things uint64) string {
	if things == 0 {
		return "-"
	}
	b := bytes / float64(things)
	switch {
	case b < 9.995:
		return fmt.Sprintf("%.2f B", b)
	case b < 999.5:
		return fmt.Sprintf("%.1f B", b)
	}
	return size(b)
}

// ratio says how much less b is than a.
func ratio(a, b float64) string {
	switch {
	case a <= 0 || b <= 0:
		return "-"
	case math.Abs(a/b-1) < 0.005:
		return "the same"
	case a >= b:
		return times(a/b) + " less"
	}
	return times(b/a) + " more"
}

func times(r float64) string {
	if r < 9.95 {
		return fmt.Sprintf("%.1fx", r)
	}
	return fmt.Sprintf("%.0fx", math.Round(r))
}

// printable returns s with what is not printable escaped: events and file names
// are arbitrary bytes, which could steer a terminal.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1, r < ' ', r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// shorten cuts the middle out of s where it takes more than n columns: long events
// tend to differ at their ends.
func shorten(s string, n int) string {
	if columns(s) <= n {
		return s
	}
	tail := n / 2
	return head(s, n-tail-1) + "…" + ending(s, tail)
}

// head returns as much of the beginning of s as takes at most n columns.
func head(s string, n int) string {
	at := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if n -= g.Width(); n < 0 {
			break
		}
		_, at = g.Positions()
	}
	return s[:at]
}

// ending returns as much of the end of s as takes at most n columns.
func ending(s string, n int) string {
	left := columns(s)
	for g := uniseg.NewGraphemes(s); left > n && g.Next(); {
		left -= g.Width()
		_, at := g.Positions()
		if left <= n {
			return s[at:]
		}
	}
	return s
}
