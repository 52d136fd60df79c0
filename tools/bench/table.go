package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A table is rows of cells under a heading. The first column stands at the left,
// the others at the right.
type table struct {
	title   string
	notes   []string
	heading []string
	rows    [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table with an empty line before it.
func (t *table) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n", t.title)
	rows := append([][]string{t.heading}, t.rows...)
	width := make([]int, len(t.heading))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line.WriteString("  " + cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
	for _, note := range t.notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
}

// verdict says whether a target was met.
func verdict(met bool) string {
	if met {
		return "ok"
	}
	return "MISSED"
}

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
