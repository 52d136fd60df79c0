package firsthop

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"

	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// DNS over TCP, which a guest needs after a truncated answer (RFC 7766 section 5). Each port
// whose guest asks that way has a stack of its own, so that its connections and its memory
// are no other's.
const (
	tcpConnections = 8       // of a guest at a time, and as many that wait for a resolver
	tcpBuffer      = 1 << 16 // bytes of a connection in each direction: the longest message, RFC 1035 section 4.2.2
)

// overTCP takes a packet of the guest to the router's DNS port. The first one makes the
// stack; it is receive's, which closes it at the end.
func (p *port) overTCP(h *ip.Header) {
	if p.stack == nil {
		stack, err := p.newStack()
		if err != nil {
			p.count().unserved.Add(1)
			p.warning.Do(func() { p.router.log.Warn("DNS over TCP", "port", p.name, "err", err) })
			return
		}
		p.stack = stack
		p.working.Go(func() { p.fromStack(stack) })
	}
	p.stack.Input([][]byte{h.Packet})
}

// newStack returns a stack that carries connections to the router's DNS port to resolvers.
// Where the guests' MTU is less than what it can have their MSS keeps its segments short.
func (p *port) newStack() (*netstack.Stack, error) {
	r := p.router
	stack, err := netstack.NewStack(netstack.StackConfig{MTU: max(r.mtu, minMTU6), Buffer: tcpBuffer})
	if err != nil {
		return nil, err
	}
	var own []netip.Prefix
	for _, prefix := range []netip.Prefix{r.prefix4, r.prefix6} {
		if prefix.IsValid() {
			own = append(own, whole(prefix.Addr()))
		}
	}
	_, err = stack.Terminate(netstack.TerminateConfig{
		Prefixes: own,
		Dial:     r.dns.dialTCP,
		Limits:   netstack.Limits{Pending: tcpConnections, Connections: tcpConnections, DialTimeout: resolverMax},
	})
	if err != nil {
		_ = stack.Close()
		return nil, err
	}
	return stack, nil
}

// fromStack gives the guest what its stack says, until that is closed.
func (p *port) fromStack(stack *netstack.Stack) {
	bufs, sizes := make([][]byte, stack.BatchSize()), make([]int, stack.BatchSize())
	for i := range bufs {
		bufs[i] = make([]byte, max(p.router.mtu, minMTU6))
	}
	for {
		n, err := stack.Read(bufs, sizes)
		for i := range n {
			p.answerIP(bufs[i][:sizes[i]])
		}
		if err != nil {
			return
		}
	}
}

// dialTCP connects with the first resolver that answers, for as long as one of the places for
// queries is free.
func (r *relay) dialTCP(ctx context.Context, _ string, _ netip.AddrPort) (net.Conn, error) {
	select {
	case r.slots <- struct{}{}:
	default:
		return nil, unix.ECONNREFUSED
	}
	var dialer net.Dialer
	var failed error
	for _, resolver := range r.resolvers {
		conn, err := dialer.DialContext(ctx, "tcp", resolver.String())
		if err == nil {
			return &slotConn{TCPConn: conn.(*net.TCPConn), free: sync.OnceFunc(func() { <-r.slots })}, nil
		}
		failed = err
	}
	<-r.slots
	return nil, failed
}

// A slotConn has a place among queries until it is closed.
type slotConn struct {
	*net.TCPConn
	free func()
}

func (c *slotConn) Close() error {
	defer c.free()
	return c.TCPConn.Close()
}
