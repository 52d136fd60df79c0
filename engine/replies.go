package engine

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"sheaf/parsers/ip"
)

// How many ICMP errors are sent. A flow gets one each 100 ms, and ten at once: more
// than TCP sends again while nothing answers (200 ms is Linux's shortest timer), while
// one that waits for nobody is not answered packet by packet. All together get 10,000 a
// second, and as many at once: thousands of clients that lose their link at the same
// time are all told, for a few hundredths of a core at most.
const (
	replyEvery    = 100 * time.Millisecond
	replyBurst    = 10
	allReplyEvery = 100 * time.Microsecond
	allReplyBurst = 10_000
	replyFlows    = 1 << 13 // buckets, of 8 bytes; flows that meet in one share it
)

// A replies says whether a packet that cannot be carried is to be answered: ICMP
// errors are to be bounded (RFC 1812 section 4.3.2.8, RFC 4443 section 2.4 (f)). It is
// for one goroutine.
type replies struct {
	all   bucket
	flows [replyFlows]bucket
	seed  maphash.Seed // so that nobody can choose to meet another's flow
}

func newReplies() *replies { return &replies{seed: maphash.MakeSeed()} }

// allow tells whether a packet with the header h may be answered at a time, and counts
// the answer.
func (r *replies) allow(now time.Duration, h *ip.Header) bool {
	flow := &r.flows[r.hash(h)%replyFlows]
	return flow.take(now, replyEvery, replyBurst) && r.all.take(now, allReplyEvery, allReplyBurst)
}

// hash returns a number for a packet's flow: addresses, protocol, and ports where
// there are any.
func (r *replies) hash(h *ip.Header) uint64 {
	var key [16 + 16 + 4 + 1]byte
	src, dst := h.Src().As16(), h.Dst().As16()
	copy(key[:], src[:])
	copy(key[16:], dst[:])
	sport, dport := h.Ports()
	binary.BigEndian.PutUint16(key[32:], sport)
	binary.BigEndian.PutUint16(key[34:], dport)
	key[36] = h.Proto
	return maphash.Bytes(r.seed, key[:])
}

// A bucket holds tokens; it is the time at which it will be full again.
type bucket time.Duration

// take takes a token, if one is there. The bucket holds burst of them and gets one
// each so often.
func (b *bucket) take(now, every time.Duration, burst int) bool {
	full := max(time.Duration(*b), now)
	if full-now > every*time.Duration(burst-1) {
		return false
	}
	*b = bucket(full + every)
	return true
}
