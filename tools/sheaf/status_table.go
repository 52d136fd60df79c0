package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sheaf/engine"
	"sheaf/engine/aggregate"
	"sheaf/netstack"
)

// writeStatus writes what a gateway tells about itself for a person to read, with
// at most so many rows of events for a peer. Where before is not nil it is an
// earlier status of the same run, and what moved since is shown as rates.
func writeStatus(w io.Writer, s, before *engine.Status, events int) {
	fmt.Fprintf(w, "sheaf is up for %s, since %s", lasting(s.Uptime), s.Since.Format(time.DateTime))
	if s.Device != "" {
		fmt.Fprintf(w, ", on device %s", printable(s.Device))
	}
	fmt.Fprintf(w, "\n  fingerprint %s\n", printable(s.Fingerprint))
	if s.Unroutable > 0 {
		fmt.Fprintf(w, "  %s came for addresses behind no peer\n", count(s.Unroutable, "packet"))
	}
	if l := s.Losses; l != (engine.DeviceLosses{}) {
		fmt.Fprintf(w, "  lost at the device: %d malformed, %d unsplit, %d truncated, %d untaken\n", l.Malformed, l.Unsplit, l.Truncated, l.Untaken)
	}
	if s.Joined > 0 {
		fmt.Fprintf(w, "  %s taken by the kernel several at a time\n", count(s.Joined, "packet"))
	}
	if s.Stack != nil {
		writeStack(w, s.Stack)
	}
	for i := range s.TLSServers {
		writeTLSServer(w, &s.TLSServers[i])
	}
	writeKeys(w, s)
	for _, f := range s.Faults {
		fmt.Fprintf(w, "  broken on this host: %s\n", printable(f))
	}
	now := s.Since.Add(s.Uptime)
	writeGuests(w, s, now)
	writePeers(w, s, now)
	for i := range s.Peers {
		p := &s.Peers[i]
		var rates *interval
		if before != nil {
			if j := slices.IndexFunc(before.Peers, func(o engine.PeerStatus) bool { return o.Name == p.Name }); j >= 0 {
				rates = &interval{&before.Peers[j], s.Uptime - before.Uptime}
			}
		}
		writePeer(w, p, rates, events)
	}
}

// writeStack writes what the userspace stack counted, where there is something.
func writeStack(w io.Writer, s *netstack.StackStats) {
	for _, end := range []struct {
		name string
		netstack.EndStats
	}{{"forward", s.Forward}, {"terminate", s.Terminal}} {
		if end.EndStats != (netstack.EndStats{}) {
			fmt.Fprintf(w, "  connections of [%s]: %d open, %d opened, %d refused, %d failed\n", end.name, end.Active, end.Opened, end.Refused, end.Failed)
		}
	}
	if s.Stray+s.Dropped > 0 {
		fmt.Fprintf(w, "  lost at the stack: %d stray, %d dropped\n", s.Stray, s.Dropped)
	}
}

// writePeers writes a row for each peer.
func writePeers(w io.Writer, s *engine.Status, now time.Time) {
	t := newTable("peer", "", "for", "over", "with", "\tround trip", "\tin", "\ton the link", "\tsaved", "\t")
	for i := range s.Peers {
		p := &s.Peers[i]
		state, since, rtt := "down", "ever", "-"
		switch {
		case p.Up:
			state = "up"
		case p.Connected:
			state = "fault"
		}
		if !p.Since.IsZero() {
			since = lasting(now.Sub(p.Since))
		}
		if p.RTT > 0 {
			rtt = milliseconds(p.RTT)
		}
		both := sum(p.Sent, p.Received)
		t.add(printable(p.Name), state, since, cmp.Or(printable(p.Carrier), "-"), cmp.Or(printable(p.Remote), "-"), rtt,
			size(float64(both.Bytes)), size(float64(both.BytesWire)), saved(&both), ratio(float64(both.Bytes), float64(both.BytesWire)))
	}
	t.write(w)
}

// writePeer writes all about one peer.
func writePeer(w io.Writer, p *engine.PeerStatus, rates *interval, events int) {
	fmt.Fprintf(w, "\n%s: behind it %s\n", printable(p.Name), cmp.Or(printable(strings.Join(p.Allowed, ", ")), "nothing"))
	if p.Error != "" {
		what := "is down because of"
		switch {
		case p.Up:
			what = "was down before because of"
		case p.Connected:
			what = "connected, but"
		}
		fmt.Fprintf(w, "  %s: %s\n", what, oneLine(reason(p.Name, p.Error)))
	}
	if p.Refused > 0 {
		fmt.Fprintf(w, "  %s from it refused: sent from addresses that are not behind it\n", count(p.Refused, "packet"))
	}
	writeTraffic(w, p, rates)
	writeLanes(w, p)
	sent := sumLanes(p)
	if sent.parts() > 0 {
		writeParts(w, p, sent)
	}
	opened := writeLanesTLS(w, p)
	writeSums(w, "by kind", sumEvents(p.Lanes, func(e *engine.EventStatus) { e.Event, e.Rest = "", false }), len(sent.events), false)
	writeSums(w, "by event", slices.DeleteFunc(sumEvents(p.Lanes, nil), func(e engine.EventStatus) bool { return e.Event == "" && !e.Rest }), events, true)
	if p.Sent.Frames > 0 {
		fmt.Fprintln(w)
		fmt.Fprintln(w, "  frames sent because of:", counts(sent.flushes))
		fmt.Fprintln(w, "  compared with one of the same:", counts(sent.hits))
	}
	if !opened {
		writeEncrypted(w, encryptedOf(sent.events))
	}
	writeOpaque(w, sent.events)
}

// An interval is what a peer was at its beginning, and how long it took.
type interval struct {
	before *engine.PeerStatus
	length time.Duration
}

// writeTraffic writes what went in and what crossed the link, each way.
func writeTraffic(w io.Writer, p *engine.PeerStatus, rates *interval) {
	heading := []string{"", "\tpackets", "\tin", "\tframes", "\tin frames", "\ton the link", "\tsaved", "\t"}
	if rates != nil {
		heading = append(heading, "\tnow: packets", "\tin", "\ton the link", "\t")
	}
	t := newTable(heading...)
	row := func(name string, now, before engine.Traffic) {
		cells := []string{name, number(now.Packets), size(float64(now.Bytes)), number(now.Frames), size(float64(now.BytesFrames)),
			size(float64(now.BytesWire)), saved(&now), ratio(float64(now.Bytes), float64(now.BytesWire))}
		if rates != nil {
			in, link := rates.each(now.Bytes, before.Bytes), rates.each(now.BytesWire, before.BytesWire)
			cells = append(cells, number(uint64(rates.each(now.Packets, before.Packets)+0.5))+"/s", size(in)+"/s", size(link)+"/s", ratio(in, link))
		}
		t.add(cells...)
	}
	var before engine.PeerStatus
	if rates != nil {
		before = *rates.before
	}
	row("sent", p.Sent, before.Sent)
	row("received", p.Received, before.Received)
	row("both", sum(p.Sent, p.Received), sum(before.Sent, before.Received))
	t.write(w)
}

// each returns by how much a counter moved in a second.
func (i *interval) each(now, before uint64) float64 {
	if now < before || i.length <= 0 {
		return 0
	}
	return float64(now-before) / i.length.Seconds()
}

// sum adds up two ways.
func sum(a, b engine.Traffic) engine.Traffic {
	return engine.Traffic{
		Packets: a.Packets + b.Packets, Bytes: a.Bytes + b.Bytes, Frames: a.Frames + b.Frames,
		BytesFrames: a.BytesFrames + b.BytesFrames, BytesWire: a.BytesWire + b.BytesWire,
	}
}

// saved writes how many bytes did not have to cross the link.
func saved(t *engine.Traffic) string {
	if t.Bytes <= t.BytesWire {
		return "-"
	}
	return size(float64(t.Bytes - t.BytesWire))
}

// writeLanes writes a row for each lane.
func writeLanes(w io.Writer, p *engine.PeerStatus) {
	t := newTable("lane", "", "\tepochs", "\tdropped", "\tverbatim", "\tflows met", "\twaited", "\tlongest", "last epoch ended because of")
	for i := range p.Lanes {
		l := &p.Lanes[i]
		state := "down"
		if l.Up {
			state = "up"
		}
		t.add(printable(l.Class), state, number(l.Epochs), number(l.Dropped), number(l.Verbatim), number(l.Contexts),
			milliseconds(l.Waited/time.Duration(max(l.Packets, 1))), milliseconds(l.Longest), cmp.Or(oneLine(l.Ended), "-"))
	}
	t.write(w)
}

// laneSums are what the lanes of a peer come to together.
type laneSums struct {
	where         map[string]engine.WhereTotal
	flushes, hits map[string]uint64
	events        []engine.EventStatus
}

func sumLanes(p *engine.PeerStatus) *laneSums {
	s := &laneSums{where: map[string]engine.WhereTotal{}, flushes: map[string]uint64{}, hits: map[string]uint64{}}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		for part, t := range l.Where {
			all := s.where[part]
			s.where[part] = engine.WhereTotal{BytesIn: all.BytesIn + t.BytesIn, BytesOut: all.BytesOut + t.BytesOut}
		}
		for k, n := range l.Flushes {
			s.flushes[k] += n
		}
		for k, n := range l.Hits {
			s.hits[k] += n
		}
		s.events = append(s.events, l.Events...)
	}
	return s
}

// parts returns how many parts of the traffic there is something of.
func (s *laneSums) parts() int {
	n := 0
	for _, t := range s.where {
		if t != (engine.WhereTotal{}) {
			n++
		}
	}
	return n
}

// writeParts writes where the bytes sent went.
func writeParts(w io.Writer, p *engine.PeerStatus, s *laneSums) {
	t := newTable("where it went", "\tsent: in", "\ton the link", "\tof all", "\t")
	row := func(name string, in uint64, out float64) {
		t.add(name, size(float64(in)), size(out), fmt.Sprintf("%.0f%%", 100*out/float64(max(p.Sent.BytesWire, 1))), ratio(float64(in), out))
	}
	for part := range aggregate.NumParts {
		total := s.where[part.String()]
		if total == (engine.WhereTotal{}) {
			continue
		}
		name := part.String()
		if part == aggregate.PartFrames {
			name = "frames themselves"
		}
		row(name, total.BytesIn, total.BytesOut)
	}
	if p.Sent.BytesWire > p.Sent.BytesFrames {
		row("carrier overhead", 0, float64(p.Sent.BytesWire-p.Sent.BytesFrames))
	}
	t.write(w)
}

// sumEvents adds up the messages of all lanes that are the same after simplify,
// most bytes first, and behind all of them what is not told apart. simplify may be
// nil.
func sumEvents(lanes []engine.LaneStatus, simplify func(*engine.EventStatus)) []engine.EventStatus {
	type kind struct {
		protocol, message, event string
		rest                     bool
	}
	at := map[kind]int{}
	var all []engine.EventStatus
	for i := range lanes {
		for _, e := range lanes[i].Events {
			if simplify != nil {
				simplify(&e)
			}
			key := kind{e.Protocol, e.Message, e.Event, e.Rest}
			j, ok := at[key]
			if !ok {
				at[key] = len(all)
				all = append(all, e)
				continue
			}
			addEvent(&all[j], &e)
		}
	}
	slices.SortStableFunc(all, func(a, b engine.EventStatus) int {
		if a.Rest != b.Rest {
			return map[bool]int{false: -1, true: 1}[a.Rest]
		}
		return cmp.Or(cmp.Compare(b.BytesIn, a.BytesIn), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Event, b.Event))
	})
	return all
}

func addEvent(sum, e *engine.EventStatus) {
	sum.Messages += e.Messages
	sum.BytesIn += e.BytesIn
	sum.BytesOut += e.BytesOut
}

// writeSums writes at most limit rows of sums, and the rest in one.
func writeSums(w io.Writer, title string, all []engine.EventStatus, limit int, events bool) {
	if len(all) == 0 {
		return
	}
	heading := []string{title, "message"}
	if events {
		heading = append(heading, "event")
	}
	t := newTable(append(heading, "\tmessages", "\tin", "\tin frames", "\ta message", "\t")...)
	row := func(e *engine.EventStatus, cells ...string) {
		t.add(append(cells, number(e.Messages), size(float64(e.BytesIn)), size(e.BytesOut),
			each(e.BytesOut, e.Messages), ratio(float64(e.BytesIn), e.BytesOut))...)
	}
	apart := len(all)
	for apart > 0 && all[apart-1].Rest {
		apart--
	}
	shown := min(limit, apart)
	for i := range all[:shown] {
		cells := []string{marked(printable(all[i].Protocol), hides(all[i].Encrypted, all[i].Message)), cmp.Or(printable(all[i].Message), "-")}
		if events {
			cells = append(cells, shorten(printable(all[i].Event), maxEventWidth))
		}
		row(&all[i], cells...)
	}
	if rest := all[shown:]; len(rest) > 0 {
		var sum engine.EventStatus
		for i := range rest {
			addEvent(&sum, &rest[i])
		}
		cells := make([]string, len(heading))
		cells[len(cells)-1] = others(uint64(apart-shown), apart < len(all))
		row(&sum, cells...)
	}
	t.write(w)
}

// others names the row of what is not listed: so many events, and perhaps those that
// nobody counted apart.
func others(events uint64, rest bool) string {
	if rest {
		return "(all others)"
	}
	return fmt.Sprintf("(%s more)", number(events))
}

// encryptedOf sums up what was sent under encryption.
func encryptedOf(events []engine.EventStatus) (e encrypted) {
	for i := range events {
		e.add(events[i].Protocol, hides(events[i].Encrypted, events[i].Message), events[i].BytesIn)
	}
	return e
}

// writeOpaque writes a hint where much of what was sent is of no known protocol.
func writeOpaque(w io.Writer, events []engine.EventStatus) {
	var opaque, all uint64
	for i := range events {
		all += events[i].BytesIn
		if events[i].Protocol == "opaque" {
			opaque += events[i].BytesIn
		}
	}
	if opaque < opaqueBytes || float64(opaque) < opaqueShare*float64(all) {
		return
	}
	fmt.Fprintf(w, "\n  hint: %.0f%% of what was sent is of no known protocol: it is compared by length and\n", 100*float64(opaque)/float64(all))
	fmt.Fprintln(w, "  content only. If it is one of docs/protocols.md, name its port under protocols =")
	fmt.Fprintln(w, "  [\"NAME@PORT\"].")
}

// oneLine makes a printable line of an error, which may have several.
func oneLine(s string) string {
	return printable(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; "))
}

// lasting writes a duration in its two largest units.
func lasting(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	}
	return fmt.Sprintf("%s d %d h", number(uint64(s/86400)), s%86400/3600)
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
