package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sheaf/parsers"
)

// MaxEvents is how many events of a protocol a ProtocolReport lists.
const MaxEvents = 1000

// maxEventText is how many bytes of an event a Report gives.
const maxEventText = 1024

// A ProtocolReport is what went through in messages of one protocol.
type ProtocolReport struct {
	MessageCounts
	// Encrypted says that the protocol hides what it carries: headers and
	// acknowledgements were all that could be merged.
	Encrypted bool `json:"encrypted,omitempty"`

	Names  map[string]*MessageCounts `json:"names"`  // by kind
	Events map[string]*MessageCounts `json:"events"` // by event, "" for messages without one; those with most bytes
	Other  OtherEvents               `json:"other"`  // the rest
}

// OtherEvents are the events of a protocol that are not listed. Past some thousands
// the lightest events are no longer counted apart: their messages are in here, and
// they are not among Events.
type OtherEvents struct {
	Events int `json:"events"`
	MessageCounts
}

// MessageCounts count messages. A packet's bytes are shared out among the
// messages in it, a frame's among its packets, and the carrier's overhead among
// the events of a direction by the bytes that they have in frames.
type MessageCounts struct {
	Messages     uint64  `json:"messages"`
	MessagesUp   uint64  `json:"messages_up"`
	MessagesDown uint64  `json:"messages_down"`
	BytesIn      uint64  `json:"bytes_in"`
	BytesFrames  float64 `json:"bytes_frames"`
	BytesWire    float64 `json:"bytes_wire"`
}

func (c *MessageCounts) add(r *Row) {
	c.Messages += r.Messages
	if r.Direction == Up {
		c.MessagesUp += r.Messages
	} else {
		c.MessagesDown += r.Messages
	}
	c.BytesIn += r.BytesIn
	c.BytesFrames = round(c.BytesFrames+r.BytesFrames, 2)
	c.BytesWire = round(c.BytesWire+r.BytesWire, 2)
}

// A Row is what went one way in messages of one kind and event.
type Row struct {
	Direction   Direction
	Protocol    string
	Name        string // empty where the protocol is not known
	Event       string // as it is on the wire: any bytes
	Rest        bool   // of the events of this kind that were not counted apart
	Messages    uint64
	BytesIn     uint64
	BytesFrames float64
	BytesWire   float64
	opaque      bool
	encrypted   bool
	content     bool // of a kind that carries content, whether or not an event can be told
}

// rows returns what both mergers counted, most bytes first.
func (r *Replay) rows() []Row {
	var rows []Row
	reg := r.registry()
	for d := range r.ways {
		w := &r.ways[d]
		factor := float64(w.BytesWire) / float64(max(w.BytesFrames, 1))
		for key, s := range r.Stats(Direction(d)).Messages {
			rows = append(rows, Row{
				Direction: Direction(d), Protocol: reg.Name(key.Protocol),
				Name: reg.MessageName(key.Protocol, key.Name), Event: key.Event, Rest: key.Rest,
				Messages: s.Messages, BytesIn: s.BytesIn,
				BytesFrames: s.BytesOut, BytesWire: s.BytesOut * factor,
				opaque: key.Protocol == parsers.Opaque, encrypted: reg.Encrypted(key.Protocol),
				content: slices.Contains(reg.Protocol(key.Protocol).Content, key.Name),
			})
		}
	}
	sortRows(rows)
	return rows
}

// sortRows puts those with most bytes first, and leaves nothing to chance.
func sortRows(rows []Row) {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(
			cmp.Compare(b.BytesIn, a.BytesIn), cmp.Compare(b.Messages, a.Messages),
			cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Event, b.Event),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Direction, b.Direction))
	})
}

// Add adds the numbers of another row.
func (r *Row) Add(o *Row) {
	r.Messages += o.Messages
	r.BytesIn += o.BytesIn
	r.BytesFrames += o.BytesFrames
	r.BytesWire += o.BytesWire
}

// SumRows sums up the rows that are of the same direction, protocol, name and
// event once change was called on them. The heaviest come first.
func SumRows(rows []Row, change func(*Row)) []Row {
	type kind struct {
		direction             Direction
		protocol, name, event string
	}
	at := make(map[kind]int)
	var out []Row
	for _, r := range rows {
		change(&r)
		k := kind{r.Direction, r.Protocol, r.Name, r.Event}
		if i, ok := at[k]; ok {
			out[i].Add(&r)
			continue
		}
		at[k] = len(out)
		out = append(out, r)
	}
	sortRows(out)
	return out
}

// protocols sums rows up, of which those with most bytes come first.
func protocols(rows []Row) map[string]*ProtocolReport {
	out := make(map[string]*ProtocolReport)
	others := make(map[[2]string]bool)
	for i := range rows {
		r := &rows[i]
		p := out[r.Protocol]
		if p == nil {
			p = &ProtocolReport{Encrypted: r.encrypted, Names: make(map[string]*MessageCounts), Events: make(map[string]*MessageCounts)}
			out[r.Protocol] = p
		}
		p.add(r)
		if p.Names[r.Name] == nil {
			p.Names[r.Name] = &MessageCounts{}
		}
		p.Names[r.Name].add(r)
		event := EventText(r.Event)
		e := p.Events[event]
		switch {
		case r.Rest:
			e = &p.Other.MessageCounts
		case e != nil:
		case len(p.Events) < MaxEvents:
			e = &MessageCounts{}
			p.Events[event] = e
		default:
			if at := [...]string{r.Protocol, event}; !others[at] {
				others[at] = true
				p.Other.Events++
			}
			e = &p.Other.MessageCounts
		}
		e.add(r)
	}
	return out
}

// EventText returns an event as text of bounded length: bytes that are not UTF-8
// are written \xNN.
func EventText(event string) string {
	cut := len(event) > maxEventText
	if cut {
		event = event[:maxEventText]
		for i := 1; i < utf8.UTFMax; i++ { // leave no half of a character
			if tail := len(event) - i; utf8.RuneStart(event[tail]) {
				if !utf8.FullRuneInString(event[tail:]) {
					event = event[:tail]
				}
				break
			}
		}
	}
	if !utf8.ValidString(event) {
		var b strings.Builder
		for len(event) > 0 {
			c, n := utf8.DecodeRuneInString(event)
			if c == utf8.RuneError && n == 1 {
				fmt.Fprintf(&b, `\x%02x`, event[0])
			} else {
				b.WriteString(event[:n])
			}
			event = event[n:]
		}
		event = b.String()
	}
	if cut {
		event += "…"
	}
	return event
}
