package amqp10

import "sheaf/parsers"

// A Scanner finds AMQP 1.0 frames in one flow. It remembers, beside the frame it
// is in, at most maxFront bytes of a frame whose beginning was cut, and the
// addresses of links.
type Scanner = parsers.Cutter[framer, *framer]

// NewScanner returns a scanner at a frame boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[framer](id, maxFront, resyncBudget)
}

// A framer tells a parsers.Cutter of AMQP 1.0.
type framer struct {
	parsers.Sized
	frozen bool // leaves links alone
	links  *links
}

// Begin implements parsers.Framer.
func (fr *framer) Begin(again bool) {
	if fr.frozen = again; !again && fr.links != nil {
		fr.links.turn++
	}
}

// Front implements parsers.Framer.
func (fr *framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	var f front
	bad := parseFront(b, &f)
	if bad == short && f.name == 0 {
		f.name = Performative
	}
	whole.Name = uint8(f.name)
	whole.Class = performatives[f.name].class
	switch bad {
	case ok:
	case short:
		return parsers.NeedMore
	default:
		return parsers.Invalid
	}
	whole.Len = f.size
	whole.Body = f.body
	if f.name >= Open {
		addHoles(whole, b, &f)
	}
	if f.linked {
		fr.link(b, &f, whole)
		return parsers.Complete
	}
	if fr.links != nil && !fr.frozen {
		switch f.name {
		case End:
			fr.links.end(f.channel)
		case Open:
			fr.links.close()
		}
	}
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, nil, 0)
	return parsers.Complete
}

// link sets the event of a frame that names a link: the link's address.
func (fr *framer) link(b []byte, f *front, whole *parsers.Span) {
	var event []byte
	if f.name == Attach {
		event = f.address.of(b)
		if !fr.frozen {
			if fr.links == nil {
				fr.links = &links{turn: 1}
			}
			fr.links.attach(f.channel, f.handle, event)
		}
	} else if fr.links != nil {
		turn := fr.links.turn
		if fr.frozen {
			turn++ // a Scan may follow while the event is still borrowed
		}
		event = fr.links.address(f.channel, f.handle, turn)
		if f.name == Detach && !fr.frozen {
			fr.links.detach(f.channel, f.handle)
		}
	}
	if len(event) == 0 {
		if event = nil; f.handle < maxLinks {
			event = numbers[f.handle]
		} else {
			h := f.handle
			number := [5]byte{0, byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)} // no address begins with 0
			whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, number[:], len(number))
			return
		}
	}
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, event, len(event))
	whole.Event = event
}

// addHoles adds the fields of a frame that belong to the flow.
func addHoles(sp *parsers.Span, b []byte, f *front) {
	add := func(p place, kind parsers.HoleKind, counter, step uint8) {
		if p.len > 0 {
			sp.AddHole(p.off, p.len, kind, counter, step)
		}
	}
	if !f.sasl {
		sp.AddHole(6, 2, parsers.HoleBig, counterChannel, 0)
	}
	switch f.name {
	case Transfer:
		add(f.id, parsers.HoleBig, counterDelivery, 1)
		if f.tag.len > 0 {
			p, kind, step := tagHole(f.tag, f.tag.of(b))
			add(p, kind, counterTag, step)
		}
	case Disposition:
		add(f.first, parsers.HoleBig, counterAck, 1)
		add(f.last, parsers.HoleBig, counterAck, 0) // mostly the first is the last
	}
}

// tagHole returns what of a delivery-tag is the hole. Tags are made by the
// sending library: decimal numbers (Qpid Proton for Python), numbers in network
// byte order (Qpid JMS, Artemis, Azure for Go) or in the processor's (Qpid
// Proton for C++), or something unique (Azure).
func tagHole(p place, tag []byte) (place, parsers.HoleKind, uint8) {
	switch {
	case parsers.IsDecimal(tag):
		return p, parsers.HoleDecimal, 1
	case len(tag) > 8:
		return p, parsers.HoleText, 0
	case len(tag) >= 4 && tag[0] != 0 && tag[len(tag)-1] == 0:
		p.len = 1 // the low byte of a number turned round, which alone counts up
	}
	return p, parsers.HoleBig, 1
}

// Resync implements parsers.Framer.
func (fr *framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, begin, &budget)
	return n, budget
}
