package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"sheaf/engine/aggregate/seal"
	"sheaf/tools/replay"
)

// A tlsRow is what was opened of TLS in a direction, and what was carried as it is.
type tlsRow struct {
	name string
	replay.TLSReport
}

// empty tells whether there is nothing to tell.
func (r *tlsRow) empty() bool {
	return r.Records == 0 && len(r.Carried) == 0 && len(r.Suites) == 0
}

// writeTLS writes what became of TLS, unless there was none whose servers are named.
func writeTLS(w io.Writer, rows ...tlsRow) {
	rows = slices.DeleteFunc(rows, func(r tlsRow) bool { return r.empty() })
	if len(rows) == 0 {
		return
	}
	heading := []string{"TLS", "\tconnections opened", "\trecords", "\tin them"}
	for why := range seal.NumCarried {
		heading = append(heading, "\t"+why.String())
	}
	heading[len(heading)-int(seal.NumCarried)] = "\tnot opened: " + seal.Carried(0).String()
	t := newTable(heading...)
	suites := make(map[string]uint64)
	for i := range rows {
		r := &rows[i]
		cells := []string{r.name, number(r.Connections), number(r.Records), size(float64(r.Bytes))}
		for why := range seal.NumCarried {
			cells = append(cells, number(r.Carried[why.String()]))
		}
		t.add(cells...)
		for suite, n := range r.Suites {
			suites[suite] += n
		}
	}
	t.write(w)
	for _, suite := range slices.Sorted(maps.Keys(suites)) {
		fmt.Fprintf(w, "  not opened because of its cipher suite, %s: %s\n", printable(suite), count(suites[suite], "direction"))
	}
}
