package replay

import (
	"cmp"
	"net/netip"
	"slices"

	"sheaf/parsers"
)

// A GuestReport is what one guest sent and got: a host that Config.Names has, by one or
// more addresses. The bytes of a frame are shared out among its packets by their sizes,
// so that what is said of one guest depends on whom its packets were merged with.
type GuestReport struct {
	Name        string  `json:"name"`
	Packets     uint64  `json:"packets"`
	Together    uint64  `json:"together"` // of these, in frames with packets of other guests
	BytesIn     uint64  `json:"bytes_in"` // of IP packets
	BytesFrames float64 `json:"bytes_frames"`
	BytesWire   float64 `json:"bytes_wire"` // with the carrier's overhead
}

// guests counts by guest. It is nil where none has a name.
type guests struct {
	names map[netip.Addr]string
	at    map[string]int // in all
	all   []GuestReport
}

// newGuests returns what counts the guests with these names, nil where there are none.
func newGuests(names map[netip.Addr]string) *guests {
	if len(names) == 0 {
		return nil
	}
	return &guests{names: names, at: make(map[string]int)}
}

// of returns the guests that are the ends of a flow: none, one or two.
func (g *guests) of(key *parsers.FlowKey) (ends []int) {
	if g == nil {
		return nil
	}
	for _, a := range [...]netip.Addr{key.SrcAddr(), key.DstAddr()} {
		name, ok := g.names[a]
		if !ok {
			continue
		}
		i, known := g.at[name]
		if !known {
			i = len(g.all)
			g.at[name] = i
			g.all = append(g.all, GuestReport{Name: name})
		}
		if !slices.Contains(ends, i) {
			ends = append(ends, i)
		}
	}
	return ends
}

// count counts the packets of a frame of so many bytes, and so many on the link.
func (g *guests) count(l *ledger, frame, wire int) {
	if g == nil || len(l.bytes) == 0 {
		return
	}
	first, several := -1, false
	for i := range l.entries {
		for _, guest := range l.entries[i].flow.of.guests {
			if first < 0 {
				first = guest
			}
			several = several || guest != first
		}
	}
	for i := range l.entries {
		e := &l.entries[i]
		share := float64(e.to-e.from) / float64(len(l.bytes))
		for _, guest := range e.flow.of.guests {
			r := &g.all[guest]
			r.Packets++
			r.BytesIn += uint64(e.to - e.from)
			r.BytesFrames += share * float64(frame)
			r.BytesWire += share * float64(wire)
			if several {
				r.Together++
			}
		}
	}
}

// report returns what was counted, most bytes first.
func (g *guests) report() []GuestReport {
	if g == nil {
		return nil
	}
	all := slices.Clone(g.all)
	for i := range all {
		all[i].BytesFrames, all[i].BytesWire = round(all[i].BytesFrames, 2), round(all[i].BytesWire, 2)
	}
	slices.SortFunc(all, func(a, b GuestReport) int {
		return cmp.Or(cmp.Compare(b.BytesIn, a.BytesIn), cmp.Compare(a.Name, b.Name))
	})
	return all
}
