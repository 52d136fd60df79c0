package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sheaf/engine"
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
	carried := uint64(0)
	for _, n := range r.Carried {
		carried += n
	}
	return r.Records == 0 && carried == 0 && len(r.Suites) == 0
}

// opens tells whether all TLS was opened, but for records that are not worth it.
func opens(rows ...tlsRow) bool {
	opened := false
	for i := range rows {
		opened = opened || rows[i].Records > 0
		for why, n := range rows[i].Carried {
			if n > 0 && why != seal.CarriedShort.String() {
				return false
			}
		}
	}
	return opened
}

// writeTLS writes what became of TLS, unless there was none, and of how many connections
// the cipher suite cannot be opened. Of the reasons for which records were not opened it
// has those that there were.
func writeTLS(w io.Writer, suites map[string]uint64, rows ...tlsRow) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r tlsRow) bool { return r.empty() })
	if len(rows) == 0 {
		return
	}
	heading := []string{"TLS", "\tconnections opened", "\trecords", "\tin them"}
	var reasons []string
	for why := range seal.NumCarried {
		name := why.String()
		if !slices.ContainsFunc(rows, func(r tlsRow) bool { return r.Carried[name] > 0 }) {
			continue
		}
		if len(reasons) == 0 {
			heading = append(heading, "\tnot opened: "+name)
		} else {
			heading = append(heading, "\t"+name)
		}
		reasons = append(reasons, name)
	}
	t := newTable(heading...)
	for i := range rows {
		r := &rows[i]
		cells := []string{r.name, number(r.Connections), number(r.Records), size(float64(r.Bytes))}
		for _, why := range reasons {
			cells = append(cells, number(r.Carried[why]))
		}
		t.add(cells...)
	}
	t.write(w)
	for _, suite := range slices.Sorted(maps.Keys(suites)) {
		fmt.Fprintf(w, "  not opened because of its cipher suite, %s: %s\n", printable(suite), count(suites[suite], "connection"))
	}
}

// writeLanesTLS writes what became of TLS that was sent to a peer, by lane, and returns
// whether all was opened.
func writeLanesTLS(w io.Writer, p *engine.PeerStatus) (opened bool) {
	var rows []tlsRow
	suites := make(map[string]uint64)
	for i := range p.Lanes {
		l := &p.Lanes[i]
		rows = append(rows, tlsRow{printable(l.Class), replay.TLSReport(l.TLS)})
		for suite, n := range l.TLS.Suites {
			suites[suite] += n
		}
	}
	writeTLS(w, suites, rows...)
	return opens(rows...)
}

// writeKeys writes which TLS connections are opened, and how it is with their secrets at
// this end.
func writeKeys(w io.Writer, s *engine.Status) {
	k := s.Secrets
	if k == nil {
		return
	}
	fmt.Fprintf(w, "  TLS is opened of %s", count(uint64(len(k.Servers)), "server"))
	if k.Connections > 0 {
		fmt.Fprintf(w, ": secrets of %s, %s of them met", count(k.Connections, "connection"), number(k.Asked))
	}
	fmt.Fprintln(w)
	if k.Evicted > 0 {
		fmt.Fprintf(w, "  secrets of %s gave way to others\n", count(k.Evicted, "connection"))
	}
	if k.Bad > 0 {
		fmt.Fprintf(w, "  %s of key logs could not be read\n", count(k.Bad, "line"))
	}
	for i := range k.KeyLogs {
		f := &k.KeyLogs[i]
		state := cmp.Or(oneLine(f.Fault), size(float64(f.Bytes))+" read")
		if f.Fault == "" && !f.Grew.IsZero() {
			state += ", grew " + lasting(s.Since.Add(s.Uptime).Sub(f.Grew)) + " ago"
		}
		fmt.Fprintf(w, "  key log %s: %s\n", printable(f.Path), state)
	}
}

// writeTLSServer writes about a TLS server that the gateway is itself.
func writeTLSServer(w io.Writer, s *engine.TLSServerStatus) {
	fmt.Fprintf(w, "  TLS server %s in front of %s: %d open, %d opened, %d of them resumed, certificate until %s\n",
		printable(strings.Join(s.Servers, ", ")), printable(s.To), s.Stats.Active, s.Stats.Opened, s.Stats.Resumed, s.Until.UTC().Format(time.DateTime))
	var failed []string
	for _, why := range slices.Sorted(maps.Keys(s.Failed)) {
		failed = append(failed, fmt.Sprintf("%s %d", printable(why), s.Failed[why]))
	}
	if len(failed) > 0 {
		fmt.Fprintf(w, "    handshakes failed because of: %s\n", strings.Join(failed, ", "))
	}
	if s.Fault != "" {
		fmt.Fprintf(w, "    not in order: %s\n", oneLine(s.Fault))
	}
}
