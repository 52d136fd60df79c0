package firsthop

import (
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sheaf/parsers/ip"
)

const (
	portQueries = 32              // under way for a guest: a host asks for a few names at a time, twice each
	allQueries  = 512             // of all; each has a socket
	resolverMax = 2 * time.Second // until the next resolver is asked, less than the 5 s after which hosts ask again
)

// A relay asks resolvers what guests ask the router.
type relay struct {
	resolvers []netip.AddrPort
	slots     chan struct{} // has a place for each query that is under way
}

func newRelay(resolvers []netip.AddrPort) *relay {
	return &relay{resolvers: append([]netip.AddrPort(nil), resolvers...), slots: make(chan struct{}, allQueries)}
}

// query takes a DNS query of the guest. What there is no room for is dropped, as by any
// busy server: the guest asks again.
func (p *port) query(h *ip.Header) {
	payload, ok := udpPayload(h)
	if !ok || !isQuery(payload) {
		p.count().malformed.Add(1)
		return
	}
	sport, _ := h.Ports()
	client, router := netip.AddrPortFrom(h.Src(), sport), netip.AddrPortFrom(h.Dst(), dnsPort)
	select {
	case p.queries <- struct{}{}:
	default:
		p.count().unserved.Add(1)
		return
	}
	select {
	case p.router.dns.slots <- struct{}{}:
	default:
		<-p.queries
		p.count().unserved.Add(1)
		return
	}
	p.count().queries.Add(1)
	query := append([]byte(nil), payload...)
	p.working.Go(func() {
		defer func() { <-p.router.dns.slots; <-p.queries }()
		answer := p.router.dns.ask(p.ctx, query, p.router.mtu-overhead(client.Addr()))
		if p.ctx.Err() == nil && answer != nil {
			p.answerIP(datagram(router, client, answer))
		}
	})
}

// overhead returns the bytes of the headers of a UDP datagram to an address.
func overhead(a netip.Addr) int {
	if a.Is4() {
		return ip.MinIPv4 + lenUDP
	}
	return ip.MinIPv6 + lenUDP
}

// isQuery reports whether a message is a query, of which alone anything is known.
func isQuery(b []byte) bool {
	var parser dnsmessage.Parser
	head, err := parser.Start(b)
	if err != nil || head.Response {
		return false
	}
	questions, err := parser.AllQuestions()
	return err == nil && len(questions) == 1 // as all servers have it
}

// ask asks the resolvers in turn, and returns the first answer, with the query's own number:
// truncated where it is longer than limit, and a failure where none answers.
func (r *relay) ask(ctx context.Context, query []byte, limit int) []byte {
	for _, resolver := range r.resolvers {
		answer := exchange(ctx, resolver, query, limit+1)
		if answer == nil {
			continue
		}
		copy(answer, query[:2])
		if len(answer) > limit {
			return bare(answer, func(h *dnsmessage.Header) { h.Truncated = true }) // RFC 2181 section 9
		}
		return answer
	}
	return bare(query, func(h *dnsmessage.Header) { h.RCode = dnsmessage.RCodeServerFailure })
}

// exchange asks one resolver, from a port and with a number that nobody can guess (RFC 5452
// section 9), whatever the guest has chosen. It returns the answer or its first room bytes,
// and nil if there is none.
func exchange(ctx context.Context, resolver netip.AddrPort, query []byte, room int) []byte {
	ctx, cancel := context.WithTimeout(ctx, resolverMax)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "udp", resolver.String())
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	asked := append([]byte(nil), query...)
	_, _ = rand.Read(asked[:2]) // never fails
	if _, err := conn.Write(asked); err != nil {
		return nil
	}
	b := make([]byte, room)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return nil
		}
		if answers(b[:n], asked) {
			return b[:n]
		}
	}
}

// answers reports whether a message is the answer to a query: it has its number and
// question (RFC 5452 section 9.1).
func answers(b, query []byte) bool {
	var ask, answer dnsmessage.Parser
	asked, err := ask.Start(query)
	if err != nil {
		return false
	}
	head, err := answer.Start(b)
	if err != nil || !head.Response || head.ID != asked.ID {
		return false
	}
	want, _ := ask.Question()
	got, err := answer.Question()
	return err == nil && got.Name.String() == want.Name.String() && got.Type == want.Type && got.Class == want.Class
}

// bare returns a message as an answer with nothing but its question, its header as set has
// it. It is nil if it has none.
func bare(b []byte, set func(h *dnsmessage.Header)) []byte {
	var parser dnsmessage.Parser
	head, err := parser.Start(b)
	if err != nil {
		return nil
	}
	question, err := parser.Question()
	if err != nil {
		return nil
	}
	head.Response, head.RecursionAvailable = true, true
	set(&head)
	m := dnsmessage.Message{Header: head, Questions: []dnsmessage.Question{question}}
	answer, err := m.Pack()
	if err != nil {
		return nil
	}
	return answer
}
