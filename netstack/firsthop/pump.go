package firsthop

import (
	"net/netip"
	"os"

	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// Read waits for packets of guests to elsewhere, and answers of the router to elsewhere, as
// an engine.Port does. Ports with packets take turns, a batch of their link each.
func (r *Router) Read(bufs [][]byte, sizes []int) (int, error) {
	n := 0
	for n < len(bufs) {
		if r.reading.port == nil {
			if packet, err := r.next(n == 0); err != nil {
				return 0, err
			} else if packet != nil {
				sizes[n] = copy(bufs[n], packet)
				n++
				continue
			} else if r.reading.port == nil {
				break
			}
		}
		n = r.take(bufs, sizes, n)
	}
	return n, nil
}

// next finds what is to be read: an answer, or a port that is reading then. It waits for it
// if it is to.
func (r *Router) next(wait bool) (packet []byte, err error) {
	if r.ctx.Err() != nil {
		return nil, os.ErrClosed
	}
	select {
	case r.reading.port = <-r.handoff:
		return nil, nil
	case packet = <-r.answers:
		return packet, nil
	default:
	}
	if !wait {
		return nil, nil
	}
	select {
	case r.reading.port = <-r.handoff:
		return nil, nil
	case packet = <-r.answers:
		return packet, nil
	case <-r.ctx.Done():
		return nil, os.ErrClosed
	}
}

// take copies packets of the port that is reading into bufs from n on, and returns how many
// are there then. What is left is for the next time, unless the port was taken out.
func (r *Router) take(bufs [][]byte, sizes []int, n int) int {
	p := r.reading.port
	for n < len(bufs) && r.reading.next < len(p.batch) && p.ctx.Err() == nil {
		sizes[n] = copy(bufs[n], p.batch[r.reading.next])
		r.reading.next++
		n++
	}
	if r.reading.next < len(p.batch) && p.ctx.Err() == nil {
		return n
	}
	r.reading = reading{}
	p.handed <- struct{}{} // has room: it was handed off once
	return n
}

// Write hands packets to guests by their destination. It does not wait: what a guest has
// no room for is dropped and counted. What is for no guest is refused, and answered with
// an ICMP error that Read returns, as pings to the router are.
func (r *Router) Write(packets [][]byte) error {
	if r.ctx.Err() != nil {
		return os.ErrClosed
	}
	var first error
	for _, packet := range packets {
		if err := r.forward(packet); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (r *Router) forward(packet []byte) error {
	var h ip.Header
	_ = h.Parse(packet) // whatever follows the addresses is carried
	if h.Version == 0 {
		return errMalformed
	}
	to := r.lookup(h.Dst())
	switch {
	case to == nil && !r.inPrefix(h.Dst()), to != nil && (to.kind == toGroup || to.kind == toNone):
		return errNoGuest
	case to == nil:
		if from := r.own(&h); r.errors.Allow() {
			r.reply(netstack.AppendUnreachable(nil, packet, netstack.NoHost, from))
		}
		return errNoGuest
	case to.kind == toRouter:
		return r.atRouter(&h)
	}
	if !to.port.deliver(&h, &to.port.outside) && r.errors.Allow() {
		r.reply(netstack.AppendTooBig(nil, packet, r.mtu, r.own(&h)))
	}
	return nil
}

// atRouter answers a ping to the router from outside, which is all that it may ask.
func (r *Router) atRouter(h *ip.Header) error {
	echo := appendEchoReply(nil, h)
	if echo == nil {
		return errNoGuest
	}
	r.reply(echo)
	return nil
}

// reply puts a packet among those to be read, if there is one and room for it.
func (r *Router) reply(packet []byte) {
	if len(packet) == 0 {
		return
	}
	select {
	case r.answers <- packet:
	default:
	}
}

// own returns the router's address of a packet's family; not valid without.
func (r *Router) own(h *ip.Header) netip.Addr {
	if h.Version == 4 {
		return r.prefix4.Addr()
	}
	return r.prefix6.Addr()
}
