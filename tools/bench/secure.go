package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/engine/aggregate/seal"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

const (
	// securePort is the broker's, for MQTT inside TLS.
	securePort = 8883

	// flightTime is how long a flight of the handshake takes to get an answer, so much
	// later all that follows comes. It is longer than a frame waits: who answers has had what the
	// frame told, as it has where the frame's packets go on to the one who answers.
	flightTime = 4 * window
)

// served says whether connections to a server are opened.
func served(server netip.AddrPort) bool { return server.Port() == securePort }

// secrets are those of a trace's connections. It is a seal.Source.
type secrets map[[seal.RandomLen]byte]seal.Secrets

// Secrets implements seal.Source.
func (s secrets) Secrets(random *[seal.RandomLen]byte) seal.Secrets {
	of := s[*random]
	for _, b := range []*[]byte{&of.Master, &of.ClientHandshake, &of.ServerHandshake, &of.ClientTraffic, &of.ServerTraffic} {
		*b = bytes.Clone(*b) // the caller clears them
	}
	return of
}

// A securer makes of a trace the one that there would be if its connections spoke TLS: a
// handshake before a connection's first payload, then a record for each payload, and
// sequence numbers, lengths and checksums as they are with these. It takes IPv4 from the
// SYN on, nothing lost or repeated.
type securer struct {
	suite   seal.Suite
	out     []packet // owned
	secrets secrets
	conns   map[parsers.FlowKey]*secureConn
	random  *rand.ChaCha8
	seg     parsers.Segment
}

// A secureConn is a connection, by its client's flow.
type secureConn struct {
	flows  [2]secureFlow
	spoken bool // the handshake is over
}

// A secureFlow is one direction of it.
type secureFlow struct {
	shift map[uint32]uint32 // by how much TLS moves a sequence number at which a segment ends
	begin uint32            // the first payload's
	ids   uint16            // IP identifications that the handshake took
	keys  *seal.Keys
	next  uint64 // number of the next record
	nonce uint64 // explicit nonce of record 0, where there is one
}

// secured returns a trace inside TLS, and its secrets.
func secured(t *trace, suite seal.Suite) (*trace, secrets, error) {
	s := &securer{
		suite: suite, secrets: make(secrets), conns: make(map[parsers.FlowKey]*secureConn),
		random: rand.NewChaCha8([32]byte{byte(suite)}),
	}
	var decoder parsers.Decoder
	n := 0
	for p := range t.packets {
		if n++; decoder.Decode(p.data, &s.seg) != nil || s.seg.Key.Proto != ip.TCP || s.seg.Key.Version != 4 {
			return nil, nil, fmt.Errorf("packet %d is not TCP over IPv4", n)
		}
		if err := s.packet(&p); err != nil {
			return nil, nil, fmt.Errorf("packet %d: %w", n, err)
		}
	}
	slices.SortStableFunc(s.out, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	out := &trace{}
	for _, p := range s.out {
		out.add(p.at, p.dir, p.data)
	}
	return out, s.secrets, nil
}

// packet writes what becomes of a packet, s.seg.
func (s *securer) packet(p *packet) error {
	seg := &s.seg
	key := seg.Key
	if p.dir == down {
		key = key.Reverse()
	}
	c := s.conns[key]
	if c == nil {
		c = &secureConn{}
		s.conns[key] = c
	}
	f, back := &c.flows[p.dir], &c.flows[1-p.dir]
	end := seg.Seq + uint32(len(seg.Payload()))
	if seg.Flags&parsers.FlagSYN != 0 {
		end++
		f.shift = map[uint32]uint32{seg.Seq: 0, end: 0}
		f.begin = end
	}
	if seg.Flags&parsers.FlagFIN != 0 {
		end++
	}
	payload := seg.Payload()
	if len(payload) > 0 {
		if !c.spoken {
			if p.dir != up {
				return fmt.Errorf("the server speaks first")
			}
			if err := s.handshake(p, c); err != nil {
				return err
			}
		}
		payload = f.seal(applicationData, payload)
	}
	shift, known := f.shift[seg.Seq]
	ackShift, acked := back.shift[seg.Ack]
	if !known || !acked && seg.Flags&parsers.FlagACK != 0 {
		return fmt.Errorf("it begins or acknowledges where no segment ended")
	}
	f.shift[end] = shift + uint32(len(payload)-len(seg.Payload()))
	r := rewrite{seq: seg.Seq + shift, ack: seg.Ack + ackShift, ids: f.ids, payload: payload}
	if c.spoken {
		r.later = maxFlights * flightTime
	}
	s.write(p, r)
	return nil
}

// A rewrite is what changes of a packet.
type rewrite struct {
	seq, ack uint32
	ids      uint16 // that are added to the IP identification
	back     bool   // it goes the other way
	payload  []byte
	later    time.Duration
}

// write writes the packet s.seg as changed.
func (s *securer) write(p *packet, r rewrite) {
	size := s.seg.HeaderLen + s.seg.TransportLen
	b := append(append([]byte(nil), p.data[:size]...), r.payload...)
	h := header.IPv4(b)
	t := header.TCP(b[s.seg.HeaderLen:])
	dir, from, to := p.dir, t.SourcePort(), t.DestinationPort()
	if p.dir == up {
		to = securePort
	} else {
		from = securePort
	}
	if r.back {
		dir, from, to = 1-dir, to, from
		src, dst := h.SourceAddress(), h.DestinationAddress()
		h.SetSourceAddress(dst)
		h.SetDestinationAddress(src)
		h.SetTTL(64)
		s.swapTimes(t)
	}
	h.SetTotalLength(uint16(len(b)))
	h.SetID(h.ID() + r.ids)
	h.SetChecksum(0)
	h.SetChecksum(^h.CalculateChecksum())
	t.SetSourcePort(from)
	t.SetDestinationPort(to)
	t.SetSequenceNumber(r.seq)
	t.SetAckNumber(r.ack)
	t.SetChecksum(0)
	sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, h.SourceAddress(), h.DestinationAddress(), uint16(len(t)))
	t.SetChecksum(^checksum.Checksum(t, sum))
	s.out = append(s.out, packet{p.at + r.later, dir, b})
}

// swapTimes swaps TSval and TSecr, which stand behind two bytes of padding, kind and
// length (RFC 7323 appendix A).
func (s *securer) swapTimes(t header.TCP) {
	if o := t.Options(); len(o) == 12 {
		value, echo := binary.BigEndian.Uint32(o[4:]), binary.BigEndian.Uint32(o[8:])
		binary.BigEndian.PutUint32(o[4:], echo)
		binary.BigEndian.PutUint32(o[8:], value)
	}
}

// handshake writes the segments of a connection's handshake, before its first payload p.
func (s *securer) handshake(p *packet, c *secureConn) error {
	flights, err := s.flights(c)
	if err != nil {
		return err
	}
	c.spoken = true
	sent := [2]uint32{}
	for i, payload := range flights {
		dir := i % 2 // the client's is the first
		f, back := &c.flows[dir], &c.flows[1-dir]
		s.write(p, rewrite{
			seq: f.begin + sent[dir], ack: back.begin + sent[1-dir],
			ids: f.ids, back: dir == down, payload: payload, later: time.Duration(i) * flightTime,
		})
		f.ids++
		sent[dir] += uint32(len(payload))
	}
	for dir := range c.flows {
		f := &c.flows[dir]
		f.shift[f.begin] = sent[dir]
	}
	return nil
}
