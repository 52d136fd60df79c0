package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sheaf/tools/replay"
)

// writeReport writes a report for a person to read, with at most so many rows of
// events. w keeps its errors.
func writeReport(w io.Writer, p *replay.Report, events int) {
	writeVerdict(w, p)
	if p.Packets == p.Skipped {
		return
	}
	writeDirections(w, p)
	writeWhere(w, p)
	up, down := p.Directions.Up.TLS, p.Directions.Down.TLS
	writeTLS(w, down.Suites, tlsRow{"up", up}, tlsRow{"down", down}) // both ends see all hellos
	writeKinds(w, p)
	writeEvents(w, p, events)
	writeReplayedGuests(w, p, events)
	if len(p.Compare) > 0 {
		writeRivals(w, p)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "  frames sent because of:", counts(p.FlushReasons))
	fmt.Fprintln(w, "  compared with one of the same:", counts(p.Similarity))
	if replayed := p.Packets - p.Skipped; replayed < timedPackets {
		fmt.Fprintf(w, "  time a packet: too short to tell, %s\n", count(replayed, "packet"))
	} else {
		fmt.Fprintf(w, "  time a packet: %.1f µs to merge, %.1f µs to expand\n", p.EncodeNs/1000, p.DecodeNs/1000)
	}
	writeHints(w, p)
}

// timedPackets is how many packets it takes for the time of one to be told: the first
// ones pay for tables and buffers, about as much together as a thousand later ones.
const timedPackets = 2000

// writeVerdict writes whether all packets came out identical.
func writeVerdict(w io.Writer, p *replay.Report) {
	replayed := p.Directions.Up.Packets + p.Directions.Down.Packets
	fmt.Fprintf(w, "%s: %s in %.1f s\n", printable(p.File), count(p.Packets, "packet"), p.Seconds)
	switch {
	case replayed == 0:
		fmt.Fprintln(w, "  nothing to replay")
	case p.Exact() && p.Error != "":
		fmt.Fprintf(w, "  broken off after %s of %s, which came out identical\n", number(p.Identical), number(replayed))
	case p.Exact():
		fmt.Fprintf(w, "  all %s came out identical\n", number(replayed))
	default:
		fmt.Fprintf(w, "  DIFFERENT: %s of %s came out otherwise than they went in\n", number(p.Mismatched), number(replayed))
	}
	if p.Skipped > 0 {
		fmt.Fprintf(w, "  %s skipped: %s\n", number(p.Skipped), reasons(p.SkipReasons))
	}
	for _, line := range []string{p.Error, p.Damage, p.Fault, p.Difference} {
		if line != "" {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
}

// writeDirections writes what went in and what would cross the link.
func writeDirections(w io.Writer, p *replay.Report) {
	t := newTable("", "\tpackets", "\tmessages", "\tin", "\tframes", "\tin frames", "\tcarrier packets", "\ton the link", "\ta message", "\t")
	row := func(name string, c *replay.Counts, packets, messages uint64) {
		t.add(name, number(packets), number(messages), size(float64(c.BytesIn)), number(c.Frames),
			size(float64(c.BytesFrames)), number(c.CarrierPackets), size(float64(c.BytesWire)),
			each(float64(c.BytesWire), messages), ratio(float64(c.BytesIn), float64(c.BytesWire)))
	}
	up, down := &p.Directions.Up, &p.Directions.Down
	row("up to the broker", &up.Counts, up.Packets, up.EventMessages)
	row("down from it", &down.Counts, down.Packets, down.EventMessages)
	row("both", &p.Counts, up.Packets+down.Packets, up.EventMessages+down.EventMessages)
	t.write(w)
}

// writeWhere writes where the bytes went.
func writeWhere(w io.Writer, p *replay.Report) {
	t := newTable("where it went", "\tup: in", "\ton the link", "\tdown: in", "\ton the link", "\tof all", "\ta message", "\t")
	messages := p.Directions.Up.EventMessages + p.Directions.Down.EventMessages
	names := map[string]string{"frames": "frames themselves", replay.PartCarrier: "carrier overhead"}
	for _, part := range replay.Parts() {
		up, down, both := p.Directions.Up.Where[part], p.Directions.Down.Where[part], p.Where[part]
		if both == (replay.Share{}) {
			continue
		}
		t.add(cmp.Or(names[part], part),
			size(float64(up.BytesIn)), size(up.BytesWire), size(float64(down.BytesIn)), size(down.BytesWire),
			fmt.Sprintf("%.0f%%", 100*both.BytesWire/float64(max(p.BytesWire, 1))),
			each(both.BytesWire, messages), ratio(float64(both.BytesIn), both.BytesWire))
	}
	t.write(w)
}

// writeKinds writes what went through in messages of each kind.
func writeKinds(w io.Writer, p *replay.Report) {
	kinds := replay.SumRows(p.Rows, func(r *replay.Row) { r.Event, r.Rest = "", false })
	if len(kinds) == 0 {
		return
	}
	t := newTable("by kind", "protocol", "message", "\tmessages", "\tin", "\ton the link", "\ta message", "\t")
	for i := range kinds {
		r := &kinds[i]
		t.add(append([]string{r.Direction.String(), marked(r.Protocol, encryptedBy(p, r)), cmp.Or(r.Name, "-")}, amounts(r)...)...)
	}
	t.write(w)
}

// encryptedBy says whether the messages of a row hide what they carry.
func encryptedBy(p *replay.Report, r *replay.Row) bool {
	sum := p.Protocols[r.Protocol]
	return sum != nil && hides(sum.Encrypted, r.Name)
}

// maxEventWidth is how many characters of an event a table shows.
const maxEventWidth = 40

// writeEvents writes the events with most bytes, and the rest in one row.
func writeEvents(w io.Writer, p *replay.Report, limit int) {
	var rest replay.Row
	more, untold := 0, false
	t := newTable("by event", "protocol", "message", "event", "\tmessages", "\tin", "\ton the link", "\ta message", "\t")
	for i := range p.Rows {
		switch r := &p.Rows[i]; {
		case r.Rest:
			untold = true
			rest.Add(r)
		case r.Event == "": // those are among the kinds
		case len(t.rows) < limit:
			event := shorten(printable(replay.EventText(r.Event)), maxEventWidth)
			t.add(append([]string{r.Direction.String(), r.Protocol, r.Name, event}, amounts(r)...)...)
		default:
			more++
			rest.Add(r)
		}
	}
	if len(t.rows) == 0 {
		return
	}
	if more > 0 || untold {
		t.add(append([]string{"", "", "", others(uint64(more), untold)}, amounts(&rest)...)...)
	}
	t.write(w)
}

// amounts returns the cells of a row's numbers.
func amounts(r *replay.Row) []string {
	return []string{
		number(r.Messages), size(float64(r.BytesIn)), size(r.BytesWire),
		each(r.BytesWire, r.Messages), ratio(float64(r.BytesIn), r.BytesWire),
	}
}

// writeRivals writes what the packets would have taken otherwise.
func writeRivals(w io.Writer, p *replay.Report) {
	messages := p.Directions.Up.EventMessages + p.Directions.Down.EventMessages
	t := newTable("compared with", "\twithout carrier", "\tcarrier packets", "\ton the link", "\ta message", "\t", "\tsheaf takes")
	row := func(name string, bytes, packets, wire uint64) {
		t.add(name, size(float64(bytes)), number(packets), size(float64(wire)), each(float64(wire), messages),
			ratio(float64(p.BytesIn), float64(wire)), ratio(float64(wire), float64(p.BytesWire)))
	}
	row("sheaf", p.BytesFrames, p.CarrierPackets, p.BytesWire)
	for _, v := range p.Compare {
		row(strings.Replace(v.Name, "-", " ", 1), v.Bytes, v.CarrierPackets, v.BytesWire)
	}
	t.write(w)
}

// The limits from which on opaque traffic is worth a hint.
const (
	opaqueBytes = 10_000
	opaqueShare = 0.3
)

// writeHints writes what a user could do better.
func writeHints(w io.Writer, p *replay.Report) {
	var e encrypted
	for i := range p.Rows {
		r := &p.Rows[i]
		e.add(r.Protocol, encryptedBy(p, r), r.BytesIn)
	}
	if !opens(tlsRow{"up", p.Directions.Up.TLS}, tlsRow{"down", p.Directions.Down.TLS}) {
		writeEncrypted(w, e)
	}
	writeSecrets(w, p.Secrets)
	writeCaptureHints(w, p)
	share := float64(p.Opaque) / float64(max(p.Opaque+p.WithNames, 1))
	if p.Opaque < opaqueBytes || share < opaqueShare {
		return
	}
	fmt.Fprintf(w, "\n  hint: %.0f%% of the traffic is of no known protocol: it is compared by length and\n  content only.\n", 100*share)
	var ports []string
	for _, o := range p.OddPorts {
		name := map[uint8]string{6: "tcp", 17: "udp"}[o.Proto]
		ports = append(ports, fmt.Sprintf("%d/%s (%s)", o.Port, name, size(float64(o.Bytes))))
	}
	if len(ports) == 0 {
		return
	}
	fmt.Fprintf(w, "  Busiest ports without a known protocol: %s.\n", strings.Join(ports, ", "))
	fmt.Fprintf(w, "  If one carries %s, say so with --protocol NAME@PORT.\n", orList(p.Known))
}

// twiceShare is from which share on packets that may be copies are worth a hint.
const twiceShare = 0.02

// writeCaptureHints writes what the capture could be made better with.
func writeCaptureHints(w io.Writer, p *replay.Report) {
	if p.Truncated > 0 {
		fmt.Fprintf(w, "\n  hint: of %s fewer bytes were captured than they have; tcpdump -s 0 captures\n  them whole.\n", count(p.Truncated, "packet"))
	}
	if p.Copies > 0 {
		fmt.Fprintf(w, "\n  %s came again at another interface, as with tcpdump -i any beside containers,\n  and counted once.\n", count(p.Copies, "packet"))
	}
	if replayed := p.Packets - p.Skipped; float64(p.Twice) > twiceShare*float64(replayed) {
		fmt.Fprintf(w, "\n  hint: %s of %s may be copies of one before, which this capture does not\n  tell: then it saves less than it says here. Capture one interface, tcpdump -i eth0, or\n  with -i any -y LINUX_SLL2.\n",
			number(p.Twice), number(replayed))
	}
}

// reasons writes how many there were of each, most first.
func reasons(m map[string]uint64) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = number(m[k]) + " " + k
	}
	return strings.Join(keys, "; ")
}

// counts writes counters, most first, without those that are zero.
func counts(m map[string]uint64) string {
	keys := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range keys {
		if m[k] > 0 {
			parts = append(parts, k+" "+number(m[k]))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// orList joins names with "or" before the last.
func orList(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
