package seal

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
)

// A Table has the TLS connections of one lane. It outlives the lane's epochs: after one
// the connections are opened again without a new handshake, since one of the two ends
// still has their secrets. It is not safe for concurrent use.
type Table struct {
	cfg   Config
	limit int // connections
	conns map[parsers.FlowKey]*Conn
	all   []*Conn
	hand  int // index in all of the one that was looked at last for giving way
	now   time.Duration
	room  room
	// refused says that a flow may have no connection, for want of room, so that its end
	// is not seen.
	refused bool
	resets  []sentReset // whose frames the peer has not acknowledged, in their order
	stats   *Stats
}

// NewTable returns a table of at most limit connections, and of those that the peer opens.
func NewTable(cfg Config, limit int) *Table {
	return &Table{cfg: cfg, limit: limit, conns: make(map[parsers.FlowKey]*Conn), stats: &Stats{}}
}

// Begin begins an epoch, in which the peer knows nothing. What is opened is counted in
// stats from then on.
func (t *Table) Begin(stats *Stats) {
	t.stats = stats
	t.room.texts = texts{}
	t.resets = nil
	for _, c := range t.all {
		c.renew()
	}
}

// server returns the server of a flow, in the client's direction or in the other.
func server(key *parsers.FlowKey, fromClient bool) netip.AddrPort {
	if fromClient {
		return netip.AddrPortFrom(key.DstAddr(), key.DstPort)
	}
	return netip.AddrPortFrom(key.SrcAddr(), key.SrcPort)
}

// allows says whether connections of a flow may be opened.
func (t *Table) allows(key *parsers.FlowKey, fromClient bool) bool {
	return t.cfg.Served != nil && t.cfg.Served(server(key, fromClient))
}

// Flow returns the connection of a TCP flow that is sent, nil where it is not to be
// opened. It is the caller's until Drop.
func (t *Table) Flow(now time.Duration, key *parsers.FlowKey) *Conn {
	t.now = now
	fromClient := t.allows(key, true)
	if !fromClient && !t.allows(key, false) {
		return nil
	}
	c := t.get(key, fromClient)
	if c != nil {
		c.sending, c.used = true, now
	}
	return c
}

// Drop says that the flow that is sent is not known any more: to the peer, if it comes
// again, it is a new one.
func (c *Conn) Drop() {
	c.sending, c.used = false, c.table.now
	c.Out.anew()
	c.table.release(c)
}

// get returns the connection of a flow that is sent, a new one where it is not known; nil
// where there is no room for it.
func (t *Table) get(key *parsers.FlowKey, fromClient bool) *Conn {
	if c := t.conns[*key]; c != nil {
		return c
	}
	t.expire()
	if len(t.all) >= t.limit {
		t.refused = true
		return nil
	}
	return t.add(key, fromClient)
}

// add adds a connection.
func (t *Table) add(key *parsers.FlowKey, fromClient bool) *Conn {
	c := &Conn{table: t, key: *key, fromClient: fromClient, index: len(t.all), used: t.now, ended: t.refused}
	c.Out = Opener{conn: c, room: &t.room}
	c.In.room = &t.room
	t.conns[*key] = c
	t.all = append(t.all, c)
	return c
}

const (
	// maxIdle is how long a connection is kept that neither end has a context for:
	// what a lane takes to come back, and a keepalive.
	maxIdle = 10 * time.Minute
	// expireSteps is how many are looked at when one is added.
	expireSteps = 4
)

// expire forgets a few connections that nobody has used for long.
func (t *Table) expire() {
	for range min(expireSteps, len(t.all)) {
		t.hand = (t.hand + 1) % len(t.all)
		if c := t.all[t.hand]; !c.sending && !c.receiving && t.now-c.used > maxIdle {
			t.remove(c)
			if len(t.all) == 0 {
				return
			}
		}
	}
}

// release forgets a connection that neither end has a use for. What was said is kept, as
// long as any connection: frames that refer to it may be on their way.
func (t *Table) release(c *Conn) {
	switch {
	case c.sending || c.receiving:
	case c.said[stageHandshake].material != nil || c.said[stageTraffic].material != nil:
		c.clear()
	default:
		t.remove(c)
	}
}

// clear forgets all secrets but what was said.
func (c *Conn) clear() {
	c.Out.Clear()
	c.In.Clear()
	c.forget()
	c.closed = false
}

func (t *Table) remove(c *Conn) {
	c.clear()
	c.unsay()
	t.room.clear()
	delete(t.conns, c.key)
	last := t.all[len(t.all)-1]
	t.all[c.index], last.index = last, c.index
	t.all[len(t.all)-1] = nil
	t.all = t.all[:len(t.all)-1]
}

// received returns the connection of a flow that is received, nil where it is not known.
func (t *Table) received(key *parsers.FlowKey) *Conn { return t.conns[key.Reverse()] }

// Tell takes in what the peer says of a connection's secrets, with a segment of a flow.
// The error matches ErrOpened.
func (t *Table) Tell(key *parsers.FlowKey, secrets []byte) error {
	if len(secrets) == 0 {
		return nil
	}
	own := key.Reverse()
	c := t.conns[own]
	if c == nil {
		// The peer opens it, whatever room there is here. It is one of no more than the
		// peer may have contexts, since Forget follows.
		t.expire()
		c = t.add(&own, secrets[0]&tellClient == 0)
	}
	c.receiving = true
	r, suite := reader{b: secrets}, Suite(0)
	for len(r.b) > 0 && !r.bad {
		c.take(&r, &suite)
	}
	if r.bad {
		return fmt.Errorf("%w: secrets", ErrOpened)
	}
	return nil
}

// Seal appends the payload that a flow's segment had to dst, of the opened one. The error
// matches ErrOpened.
func (t *Table) Seal(dst []byte, key *parsers.FlowKey, opened []byte) ([]byte, error) {
	c := t.received(key)
	if len(opened) > 0 && opened[0] == itemClient {
		if own := key.Reverse(); c == nil && t.allows(&own, false) {
			c = t.get(&own, false)
		}
		if c != nil {
			c.receiving = true // so that Forget follows
		}
	}
	if c == nil {
		s := Sealer{room: &t.room} // a hello may be all that there is
		return s.Seal(dst, opened)
	}
	return c.In.Seal(dst, opened)
}

// Written says that what was opened since the last frame is in the frame of a number.
func (t *Table) Written(frame uint64) {
	t.room.texts.written(frame)
	for i := len(t.resets) - 1; i >= 0 && t.resets[i].frame == 0; i-- {
		t.resets[i].frame = frame
	}
}

// Acknowledged says that a frame of the peer has been rebuilt, which it wrote when it had
// rebuilt frames up to n.
func (t *Table) Acknowledged(n uint64) {
	t.room.texts.acknowledged(n)
	done := 0
	for done < len(t.resets) && t.resets[done].frame != 0 && t.resets[done].frame <= n {
		if c := t.resets[done].conn; c.closed { // and none has begun on its ports
			c.over = true
			c.wipe()
		}
		done++
	}
	t.resets = slices.Delete(t.resets, 0, done)
}

// Passed is told of a segment of a flow, sealed or not, that begins like a handshake, or that
// begins or ends a connection.
func (t *Table) Passed(key *parsers.FlowKey, flags uint8, payload []byte) {
	own := key.Reverse()
	c := t.conns[own]
	if c == nil && hello(payload) {
		if fromClient := t.allows(&own, true); fromClient || t.allows(&own, false) {
			c = t.get(&own, fromClient)
		}
	}
	if c == nil {
		return
	}
	if hello(payload) {
		c.hello(payload)
	}
	if flags&(parsers.FlagSYN|parsers.FlagFIN|parsers.FlagRST) != 0 {
		c.In.Clear()
		c.over = flags&parsers.FlagSYN == 0
	}
	if flags&parsers.FlagSYN != 0 {
		c.goesOn()
	}
	if flags&parsers.FlagRST != 0 {
		c.end()
	}
	c.wipe()
}

// Forget says that the peer has given the context of a flow to another.
func (t *Table) Forget(key *parsers.FlowKey) {
	if c := t.received(key); c != nil {
		c.receiving, c.used = false, t.now
		c.In.Clear()
		c.Out.keys.unheard() // the peer may forget what it said
		t.release(c)
	}
}

// Knows says whether keys of a TCP flow, that is sent or received here, are known.
func (t *Table) Knows(key *parsers.FlowKey) bool {
	if c := t.conns[*key]; c != nil {
		return c.Out.keys.any()
	}
	c := t.received(key)
	return c != nil && (c.In.keys != nil || c.theirs[stageHandshake].material != nil || c.theirs[stageTraffic].material != nil)
}

// Begin begins a connection, of which a SYN has a sequence number.
func (c *Conn) Begin(seq uint32) {
	c.closed = false
	c.Out.restart(seqnum.Value(seq).Add(1))
}

// End ends the direction that is sent: nothing more of it is opened.
//
// The other direction may go on, but for a reset: then what the peer has on its way comes
// before a frame that acknowledges the one with the reset, and nothing behind it.
func (c *Conn) End(reset bool) {
	c.end()
	if c.wipe(); reset && !c.over {
		c.table.resets = append(c.table.resets, sentReset{conn: c})
	}
}

func (c *Conn) end() {
	c.Out.Clear()
	c.closed, c.ended = true, true
}

// goesOn notes that the other direction is not over, whatever was said: another connection
// has begun on its ports, or the peer has forgotten that it ended and opens it.
func (c *Conn) goesOn() {
	c.over = false
	c.table.resets = slices.DeleteFunc(c.table.resets, func(r sentReset) bool { return r.conn == c })
}

// wipe forgets all secrets, when both directions have ended.
func (c *Conn) wipe() {
	if c.closed && c.over {
		c.In.Clear()
		if s, ok := c.table.cfg.Secrets.(Forgetter); ok && c.hasRandom {
			s.Forget(&c.random)
		}
		c.forget()
		c.unsay()
	}
}

// A sentReset is a connection that was reset here, and the number of the frame that tells
// the peer, 0 before it is written.
type sentReset struct {
	conn  *Conn
	frame uint64
}
