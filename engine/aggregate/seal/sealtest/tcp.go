package sealtest

import "sheaf/parsers"

// A Segment is a TCP segment of a connection.
type Segment struct {
	Side    int
	Flags   uint8
	Seq     uint32
	Payload []byte
}

// Segments returns what the connection wrote since the last call, in segments as they pass
// by a gateway where none is lost: behind a SYN of each side, if begun is set, and before
// a FIN, if ended is.
func (c *Conn) Segments(begun, ended bool) (all []Segment) {
	if begun {
		c.next = [2]uint32{uint32(c.choose(3)) * 0x7fff_fff0, uint32(c.choose(3)) * 0x7fff_ff00} // two wrap
		for side := range c.next {
			all = append(all, Segment{Side: side, Flags: parsers.FlagSYN, Seq: c.next[side]})
			c.next[side]++
		}
	}
	for _, f := range c.Flights {
		for rest := f.Bytes; len(rest) > 0; {
			n := c.size()
			if !c.Odd && rest[0] == handshake {
				n = max(n, helloCut)
			}
			n = min(n, len(rest))
			all = append(all, Segment{f.Side, parsers.FlagACK, c.next[f.Side], rest[:n]})
			c.next[f.Side] += uint32(n)
			rest = rest[n:]
		}
	}
	c.Flights = nil
	if ended {
		for side := range c.next {
			all = append(all, Segment{Side: side, Flags: parsers.FlagFIN | parsers.FlagACK, Seq: c.next[side]})
		}
	}
	return all
}

// helloCut is what a segment has of a hello at least, where nobody hides it on purpose: its
// random is in it, and a ServerHello's suite.
const helloCut = 100

// size returns how long a segment is.
func (c *Conn) size() int {
	switch c.choose(6) {
	default:
		return 1448
	case 3:
		return 1 + c.choose(30)
	case 4:
		return 1 + c.choose(600)
	case 5:
		return 1 + c.choose(30000) // several that a host's card put together
	}
}

// Disturb returns segments as they pass by where the network, or somebody in it, does n
// things to them.
func (c *Conn) Disturb(all []Segment, n int) []Segment {
	for range n {
		if len(all) == 0 {
			break
		}
		i := c.choose(len(all))
		s := all[i]
		switch c.choose(16) {
		default: // again, later
			all = insert(all, i+1+c.choose(min(8, len(all)-i)), s)
		case 1: // again, cut otherwise
			all = insert(all, min(len(all), i+1+c.choose(4)), c.recut(all, i))
		case 2: // in another order
			j := min(len(all)-1, i+1+c.choose(4))
			all[i], all[j] = all[j], all[i]
		case 3: // lost, and never sent again
			all = append(all[:i:i], all[i+1:]...)
		case 4:
			s.Payload = c.bytes(1 + c.choose(200))
			all = insert(all, i, s)
		case 5:
			s.Seq, s.Payload = s.Seq+uint32(c.choose(5000))-2500, c.bytes(1+c.choose(200))
			all = insert(all, i, s)
		case 6:
			flags := [...]uint8{parsers.FlagSYN, parsers.FlagFIN | parsers.FlagACK, parsers.FlagRST}
			s.Flags, s.Payload = flags[c.choose(len(flags))], nil
			all = insert(all, i, s)
		case 7: // the flags with what the segment holds
			flags := [...]uint8{parsers.FlagSYN, parsers.FlagFIN | parsers.FlagACK, parsers.FlagRST}
			all[i].Flags = flags[c.choose(len(flags))]
		case 8: // ends of it cut off
			from := c.choose(len(s.Payload) + 1)
			to := from + c.choose(len(s.Payload)-from+1)
			all[i].Seq, all[i].Payload = s.Seq+uint32(from), s.Payload[from:to]
		}
	}
	return all
}

// recut returns what lies around segment i, from inside the one before on its side or from
// inside it, to somewhere in the one behind it.
func (c *Conn) recut(all []Segment, i int) Segment {
	s := all[i]
	s.Payload = append([]byte(nil), s.Payload...)
	for k := i + 1; k < len(all); k++ {
		if t := all[k]; t.Side == s.Side && t.Seq == s.Seq+uint32(len(s.Payload)) && len(t.Payload) > 0 {
			s.Payload = append(s.Payload, t.Payload[:c.choose(len(t.Payload)+1)]...)
			break
		}
	}
	from := c.choose(len(s.Payload) + 1)
	s.Seq, s.Payload = s.Seq+uint32(from), s.Payload[from:]
	return s
}

func insert(all []Segment, i int, s Segment) []Segment {
	all = append(all[:i:i], append([]Segment{s}, all[i:]...)...)
	return all
}
