package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sheaf/engine"
)

// writeGuests writes about virtual machines: a row for each port, and what went no further
// at it.
func writeGuests(w io.Writer, s *engine.Status, now time.Time) {
	g := s.Guests
	if g == nil {
		return
	}
	if g.Spoofed > 0 {
		fmt.Fprintf(w, "  %s refused: from elsewhere, with an address of a guest\n", count(g.Spoofed, "packet"))
	}
	for _, f := range g.Faults {
		fmt.Fprintf(w, "  guests' ports not in order: %s\n", oneLine(f))
	}
	var networks []string
	for _, n := range g.Networks {
		networks = append(networks, n.String())
	}
	if len(g.Ports) == 0 {
		fmt.Fprintf(w, "  no guest's port in %s\n", strings.Join(networks, ", "))
		return
	}
	t := newTable("guest", "", "for", "addresses", "MAC", "\tfrom it", "\tto it", "\tlost", "at")
	for i := range g.Ports {
		p := &g.Ports[i]
		since := "ever"
		if !p.Link.Since.IsZero() {
			since = lasting(now.Sub(p.Link.Since))
		}
		from, to := p.Counters.Passed, p.Counters.Sent
		if p.Kind == engine.KindVsock {
			from, to = p.Link.Received, p.Link.Sent
		}
		lost := uint64(0)
		for why, n := range p.Losses() {
			if !usual(why) {
				lost += n
			}
		}
		t.add(printable(p.Name), portState(p), since, orDash(addresses(p.Addresses)), orDash(p.MAC), number(from), number(to), number(lost), printable(p.At))
	}
	t.write(w)
	for i := range g.Ports {
		writeGuestFaults(w, &g.Ports[i])
	}
}

// usual tells whether a loss is one of each guest that is well.
func usual(why string) bool { return why == engine.LossGroup || why == engine.LossLocal }

// writeGuestFaults writes why a guest was given up, and why what it sent, or was sent to it,
// went no further.
func writeGuestFaults(w io.Writer, p *engine.PortStatus) {
	if p.Link.Fault != "" {
		fmt.Fprintf(w, "  %s was given up: %s\n", printable(p.Name), oneLine(p.Link.Fault))
	}
	losses := p.Losses()
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(losses)) {
		if n := losses[why]; n > 0 && !usual(why) {
			parts = append(parts, fmt.Sprintf("%s %d", why, n))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(w, "  %s, lost because of: %s\n", printable(p.Name), strings.Join(parts, ", "))
	}
}
