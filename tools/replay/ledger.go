package replay

import "fmt"

// A ledger holds the packets of one direction that wait for their frame, to
// compare them with what comes out: per flow, in the order in which they were
// sent. Every operation costs the same whatever the number of flows.
type ledger struct {
	bytes   []byte
	entries []entry
	taken   int
}

// An entry is a packet sent.
type entry struct {
	flow     *flow
	from, to int // in bytes
	number   int // of the packet in the capture
	next     int // the flow's next entry, plus one
}

// send notes a packet, which it copies.
func (l *ledger) send(f *flow, number int, packet []byte) {
	from := len(l.bytes)
	l.bytes = append(l.bytes, packet...)
	l.entries = append(l.entries, entry{flow: f, from: from, to: len(l.bytes), number: number})
	if n := len(l.entries); f.first == 0 {
		f.first, f.last = n, n
	} else {
		l.entries[f.last-1].next = n
		f.last = n
	}
}

// take returns what was sent where p came out. It reports false where nothing of
// the flow is left.
func (l *ledger) take(s *sides, dir Direction, p []byte) (sent []byte, number int, ok bool) {
	f := s.flows[flowOf(p)]
	if f == nil || f.dir != dir || f.first == 0 {
		return nil, 0, false
	}
	e := &l.entries[f.first-1]
	f.first = e.next
	l.taken++
	return l.packet(e), e.number, true
}

func (l *ledger) packet(e *entry) []byte { return l.bytes[e.from:e.to] }

// size returns how many packets were sent since the last reset.
func (l *ledger) size() uint64 { return uint64(len(l.entries)) }

func (l *ledger) empty() bool { return len(l.entries) == 0 }

// pending returns how many of them were not taken.
func (l *ledger) pending() uint64 { return uint64(len(l.entries) - l.taken) }

// lost returns the number in the capture of a packet that was not taken.
func (l *ledger) lost() (number int, any bool) {
	if l.taken == len(l.entries) {
		return 0, false
	}
	for i := range l.entries {
		if f := l.entries[i].flow; f.first != 0 {
			return l.entries[f.first-1].number, true
		}
	}
	return 0, false
}

// reset forgets all packets.
func (l *ledger) reset() {
	for i := range l.entries {
		l.entries[i].flow.first = 0
	}
	l.bytes, l.entries, l.taken = l.bytes[:0], l.entries[:0], 0
}

// difference describes where two packets differ.
func difference(sent, rebuilt []byte) string {
	if len(sent) != len(rebuilt) {
		return fmt.Sprintf("%d bytes long, came out with %d", len(sent), len(rebuilt))
	}
	for i := range sent {
		if sent[i] != rebuilt[i] {
			return fmt.Sprintf("%d bytes long, came out with %#02x for %#02x in byte %d", len(sent), rebuilt[i], sent[i], i)
		}
	}
	return "came out the same"
}
