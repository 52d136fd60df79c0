package capgen

import (
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"time"
)

const defaultRTT = 8 * time.Microsecond

// A sim is one run of a workload: a queue of events in order of time.
type sim struct {
	cfg    Config
	rng    *rand.Rand
	now    time.Duration
	queue  eventQueue
	pushed uint64
	emit   emitFunc
	err    error
	spare  [][]byte // buffers of packets that were emitted

	broker     host
	clients    []*host
	oneWay     time.Duration // between the capture point, which is at the broker, and the clients
	brokerFree time.Duration // when the broker's one thread has done all it was given so far
}

// A host has an address and a millisecond clock that all its connections share.
type host struct {
	addr  netip.Addr
	phase time.Duration
	ttl   byte // as it arrives at the capture point
}

func (h *host) clock(now time.Duration) uint32 {
	return uint32((now + h.phase) / time.Millisecond)
}

// An event either runs a function or emits a packet.
type event struct {
	at     time.Duration
	order  uint64 // events of one time run in the order in which they were pushed
	run    func()
	packet []byte
}

// simulated makes a workload of a function that sets up the first events.
func simulated(start func(s *sim)) func(Config, emitFunc) error {
	return func(cfg Config, emit emitFunc) error {
		s := newSim(cfg, emit)
		start(s)
		for len(s.queue) > 0 && s.err == nil {
			e := heap.Pop(&s.queue).(event)
			s.now = e.at
			if e.run != nil {
				e.run()
				continue
			}
			s.err = s.emit(e.at, e.packet)
			s.spare = append(s.spare, e.packet)
		}
		return s.err
	}
}

func newSim(cfg Config, emit emitFunc) *sim {
	if cfg.RTT == 0 {
		cfg.RTT = defaultRTT
	}
	s := &sim{cfg: cfg, rng: newRand(cfg.Seed), emit: emit, oneWay: cfg.RTT / 2}
	s.broker = host{addr: brokerAddr(cfg.IPv6), phase: s.between(0, time.Second), ttl: 64}
	for i := range cfg.Hosts {
		s.clients = append(s.clients, &host{addr: clientAddr(i, cfg.IPv6), phase: s.between(0, time.Second), ttl: 62})
	}
	return s
}

// at runs f at a time, or now when that has passed.
func (s *sim) at(t time.Duration, f func()) { s.push(event{at: t, run: f}) }

func (s *sim) after(d time.Duration, f func()) { s.at(s.now+d, f) }

// capture emits a packet at a time; the packet is owned from here on.
func (s *sim) capture(t time.Duration, packet []byte) { s.push(event{at: t, packet: packet}) }

func (s *sim) push(e event) {
	e.at = max(e.at, s.now)
	e.order = s.pushed
	s.pushed++
	heap.Push(&s.queue, e)
}

// onBroker runs f when the broker's thread has done what it was given before
// and then as much work as takes between lo and hi.
func (s *sim) onBroker(lo, hi time.Duration, f func()) {
	s.brokerFree = max(s.brokerFree, s.now) + s.between(lo, hi)
	s.at(s.brokerFree, f)
}

// between draws a duration from lo up to hi.
func (s *sim) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(s.rng.Int64N(int64(hi-lo)))
}

// buffer returns an empty buffer, owned by the caller.
func (s *sim) buffer() []byte {
	if n := len(s.spare); n > 0 {
		b := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return b[:0]
	}
	return make([]byte, 0, 1600)
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5eaf)) }

// brokerAddr is the address of the broker.
func brokerAddr(ipv6 bool) netip.Addr {
	if ipv6 {
		return netip.MustParseAddr("fd00:2::10")
	}
	return netip.AddrFrom4([4]byte{10, 2, 0, 10})
}

// clientAddr is the address of a client host, counted from 0: 10.1.1.1 to
// 10.1.1.250, 10.1.2.1 and so on, or fd00:1::1 and so on.
func clientAddr(i int, ipv6 bool) netip.Addr {
	if ipv6 {
		a := [16]byte{0: 0xfd, 3: 1}
		binary.BigEndian.PutUint32(a[12:], uint32(i+1))
		return netip.AddrFrom16(a)
	}
	return netip.AddrFrom4([4]byte{10, 1, byte(1 + i/250), byte(1 + i%250)})
}
