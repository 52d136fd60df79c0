package capgen

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"time"
)

// FlowStream makes the packets of very many flows from the middle of their
// life: in each round, every flow gets one PUBLISH with QoS 0 of about 60 bytes,
// the same for all. What a flow needs is computed from its number, so a stream of
// 100,000 flows takes no more memory than a stream of one.
type FlowStream struct {
	// Acks puts the client's pure acknowledgement behind every PUBLISH, as a flow
	// of its own. Set it before the first Next.
	Acks bool

	n      int
	seed   uint64
	ipv6   bool
	broker netip.Addr

	flow, round int
	ack         bool          // the acknowledgement of the current flow comes next
	now         time.Duration // of the next packet
	gap, pause  time.Duration
	sent        uint32 // bytes each flow had sent before this round
	message     []byte
	packet      []byte
	options     [12]byte
}

// NewFlows makes a stream of n flows, 1 to MaxFlows; it panics for other n.
func NewFlows(n int, seed uint64) *FlowStream {
	if n < 1 || n > MaxFlows {
		panic("capgen: NewFlows: " + strconv.Itoa(n) + " flows: want 1 to " + strconv.Itoa(MaxFlows))
	}
	s := &FlowStream{n: n, seed: seed, broker: brokerAddr(false), gap: 18 * time.Microsecond}
	s.message = s.appendMessage(nil)
	return s
}

// Next returns the next packet and its time; there is always one. The packet is
// borrowed until the next call.
func (s *FlowStream) Next() (time.Duration, []byte) {
	key := mix(s.seed + uint64(s.flow))
	down, up := mix(key), mix(key+1)
	clock := uint32(s.now / time.Millisecond)
	size := uint32(len(s.message))
	client := flowAddr(s.flow, s.ipv6)
	port := 1<<15 | uint16((mix(uint64(s.flow%flowHosts))+uint64(s.flow/flowHosts))&0x7fff)

	seg := segment{
		ip:      ipHeader{src: s.broker, dst: client, ttl: 64, id: uint16(key) + uint16(s.round), frag: dontFragment, label: uint32(key>>16) & 0xfffff},
		srcPort: brokerPort, dstPort: port,
		seq: uint32(down) + s.sent, ack: uint32(up), flags: flagPSH | flagACK, window: 64,
	}
	tsVal, tsEcr := uint32(down>>32)+clock, uint32(up>>32)+s.lastAck()
	payload := s.message
	if s.ack {
		seg.ip.src, seg.ip.dst, seg.ip.ttl = client, s.broker, 62
		seg.ip.id, seg.ip.label = uint16(key>>32)+uint16(s.round), uint32(key>>40)&0xfffff
		seg.srcPort, seg.dstPort = port, brokerPort
		seg.seq, seg.ack, seg.flags, seg.window = uint32(up), uint32(down)+s.sent+size, flagACK, 63
		tsVal, tsEcr = uint32(up>>32)+clock, tsVal
		payload = nil
	}
	seg.options = appendTimestamps(s.options[:0], tsVal, tsEcr)
	s.packet = appendSegment(s.packet[:0], &seg, payload)
	at := s.now
	s.advance()
	return at, s.packet
}

// lastAck is the clock of the client's host when it acknowledged the round before.
func (s *FlowStream) lastAck() uint32 {
	packets := time.Duration(s.n)
	if s.Acks {
		packets *= 2
	}
	return uint32((s.now + s.gap - packets*s.gap - s.pause) / time.Millisecond)
}

func (s *FlowStream) advance() {
	s.now += s.gap
	if s.Acks && !s.ack {
		s.ack = true
		return
	}
	s.ack = false
	if s.flow++; s.flow < s.n {
		return
	}
	s.flow = 0
	s.round++
	s.now += s.pause
	s.sent += uint32(len(s.message))
	s.message = s.appendMessage(s.message[:0])
}

func (s *FlowStream) appendMessage(dst []byte) []byte {
	var room [64]byte
	body := append(room[:0], `{"n":`...)
	body = strconv.AppendInt(body, int64(s.round), 10)
	body = append(body, `,"v":`...)
	body = appendDecimal(body, int(mix(s.seed^uint64(s.round))%100000), 2)
	body = append(body, `,"unit":"kW"}`...)
	return appendPublish(dst, "grid/meter/total", 0, 0, body)
}

const flowHosts = 60_000

// flowAddr spreads flows over 10.1.0.0/16, or fd00:1::/64.
func flowAddr(flow int, ipv6 bool) netip.Addr {
	h := uint16(1 + flow%flowHosts)
	if ipv6 {
		a := [16]byte{0: 0xfd, 3: 1}
		binary.BigEndian.PutUint16(a[14:], h)
		return netip.AddrFrom16(a)
	}
	return netip.AddrFrom4([4]byte{10, 1, byte(h >> 8), byte(h)})
}

// runFlows is the Flows workload: Messages rounds over Clients flows.
func runFlows(cfg Config, emit emitFunc) error {
	s := NewFlows(cfg.Clients, cfg.Seed)
	s.ipv6, s.broker = cfg.IPv6, brokerAddr(cfg.IPv6)
	s.pause = max(0, cfg.period()-time.Duration(cfg.Clients)*s.gap)
	for range cfg.Messages * cfg.Clients {
		if err := emit(s.Next()); err != nil {
			return err
		}
	}
	return nil
}
