package e2e

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"sheaf/e2e/order"
)

// resolver is what the name role does: a DNS server that knows one name.
type resolver struct {
	At      netip.AddrPort
	Name    string // with a dot at its end
	Address netip.Addr
}

// beside is where it listens beside the hypervisor's gateway, and all that it knows.
var beside = resolver{netip.MustParseAddrPort("127.0.0.1:5353"), "broker.example.net.", netip.MustParseAddr("192.0.2.77")}

func name(a resolver) (queries int, err error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(a.At))
	if err != nil {
		return 0, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			queries++
			if answer := a.answer(b[:n]); answer != nil {
				_, _ = c.WriteToUDPAddrPort(answer, from)
			}
		}
	}()
	sayReady()
	untilTold()
	c.Close()
	<-done
	return queries, nil
}

// answer returns the answer to a query, nil if it is none.
func (a resolver) answer(query []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	switch {
	case q.Name.String() != a.Name:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60}
		m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: a.Address.As4()}}}
	}
	answer, _ := m.Pack()
	return answer
}

// A guest asks its router for names, over IPv4 and IPv6, which asks the host's resolver.
func (h *hypervisor) names(t *testing.T) {
	server := h.host.site.gw.help("name", beside)
	h.useMixed()
	for i, g := range h.guests {
		for _, router := range lastSeat.routers(mixed(i + 1)) {
			ask := order.Resolve{Server: netip.AddrPortFrom(router, 53), Name: beside.Name}
			var got []netip.Addr
			g.ask("resolve", ask, &got)
			if !slices.Equal(got, []netip.Addr{beside.Address}) {
				t.Errorf("guest %d: %s is %v at %v", i+1, beside.Name, got, router)
			}
			ask.Name = "nobody." + beside.Name
			if err := g.try("resolve", ask, &got); err == nil {
				t.Errorf("guest %d: %s is %v at %v", i+1, ask.Name, got, router)
			}
		}
	}
	var queries int
	server.finish(&queries)
	if queries == 0 {
		t.Error("the resolver was not asked")
	}
}
