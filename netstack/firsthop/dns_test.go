package firsthop

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// query returns a question for the address of a name.
func dnsQuery(id uint16, name string) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// A resolver answers what it is asked by a function, on a socket of loopback.
func resolver(t *testing.T, answer func(query []byte, reply func([]byte))) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 65535)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			answer(slices.Clone(b[:n]), func(b []byte) { _, _ = conn.WriteToUDPAddrPort(b, from) })
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// answerOf returns an answer to a query, of so many addresses.
func answerOf(query []byte, records int) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		panic(err)
	}
	m.Header.Response, m.Header.RecursionAvailable = true, true
	for i := range records {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 60},
			Body:   &dnsmessage.AResource{A: [4]byte{192, 0, 2, byte(i)}},
		})
	}
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

// A dnsLab is a Router over real sockets, outside of a bubble, with the guest a.
func dnsLab(t *testing.T, resolvers ...netip.AddrPort) (*lab, *wire) {
	t.Helper()
	r, err := New(Config{Addresses: testPrefixes, DNS: resolvers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	l, w := &lab{t: t, Router: r}, newWire()
	if err := r.Plug("a", w, PortConfig{MAC: macA[:], Addresses: testGuest}); err != nil {
		t.Fatal(err)
	}
	return l, w
}

// wait returns the next frame that the guest is given which is not an advertisement.
func (w *wire) wait(t *testing.T) []byte {
	t.Helper()
	for range 1000 {
		w.mu.Lock()
		for len(w.got) > 0 {
			f := w.got[0]
			w.got = w.got[1:]
			if f[0] != 0x33 {
				w.mu.Unlock()
				return f
			}
		}
		w.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing comes")
	return nil
}

func TestDNS(t *testing.T) {
	var own atomic.Int32 // times that the resolver was asked with the guest's number
	server := resolver(t, func(q []byte, reply func([]byte)) {
		id := binary.BigEndian.Uint16(q)
		if id == 7 {
			own.Add(1)
		}
		other := answerOf(dnsQuery(id, "other.example."), 1)
		wrong := answerOf(q, 1)
		wrong[0] ^= 1
		for _, b := range [][]byte{nil, []byte("rubbish"), q, other, wrong, answerOf(q, 2)} { // all but the last are not the answer
			reply(b)
		}
	})
	_, w := dnsLab(t, server)
	for _, pair := range [][2]netip.Addr{{a4, router4}, {a6, router6}, {aLocal, routerLocal}} {
		client, router := netip.AddrPortFrom(pair[0], 4000), netip.AddrPortFrom(pair[1], 53)
		q := dnsQuery(7, "broker.example.")
		w.send(ipFrame(macA, datagram(client, router, q)))
		got, want := w.wait(t), datagram(router, client, answerOf(q, 2))
		if !bytes.Equal(got[headLen:], want) {
			t.Errorf("%v: %x, want %x", pair, got, want)
		}
	}
	if own.Load() == 3 { // by chance, one time in 2^48
		t.Error("the resolver is asked with the guest's number")
	}
}

// The next resolver is asked when one does not answer, and if none does the guest is told.
func TestDNSResolversInTurn(t *testing.T) {
	closed := resolver(t, func([]byte, func([]byte)) {})
	gone, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	refuses := gone.LocalAddr().(*net.UDPAddr).AddrPort() // with an ICMP error
	gone.Close()
	good := resolver(t, func(q []byte, reply func([]byte)) { reply(answerOf(q, 1)) })
	client, router := netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53)
	q := dnsQuery(7, "broker.example.")

	_, w := dnsLab(t, refuses, closed, good)
	w.send(ipFrame(macA, datagram(client, router, q)))
	if got := w.wait(t); !bytes.Equal(got[headLen:], datagram(router, client, answerOf(q, 1))) {
		t.Errorf("%x", got)
	}
	_, w = dnsLab(t, refuses)
	w.send(ipFrame(macA, datagram(client, router, q)))
	failure := answerOf(q, 0)
	failure[3] |= byte(dnsmessage.RCodeServerFailure)
	if got := w.wait(t); !bytes.Equal(got[headLen:], datagram(router, client, failure)) {
		t.Errorf("%x, want %x", got, failure)
	}
}

// An answer as long as fits comes whole, a longer one truncated, and so one that the resolver
// has truncated.
func TestDNSTruncation(t *testing.T) {
	const fits = 1500 - 28
	q := dnsQuery(7, "broker.example.")
	for _, tt := range []struct {
		length    int
		truncated bool
	}{{fits, false}, {fits + 1, true}, {4096, true}} {
		server := resolver(t, func(q []byte, reply func([]byte)) {
			reply(append(answerOf(q, 1), make([]byte, tt.length-len(answerOf(q, 1)))...))
		})
		_, w := dnsLab(t, server)
		w.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), q)))
		got := w.wait(t)[headLen+28:]
		cut := answerOf(q, 0)
		cut[2] |= 2 // TC
		if tt.truncated != bytes.Equal(got, cut) || !tt.truncated && len(got) != tt.length {
			t.Errorf("%d bytes: %d bytes, % x", tt.length, len(got), got[:12])
		}
	}
	server := resolver(t, func(q []byte, reply func([]byte)) { reply(set(answerOf(q, 3), 2, 0x83)) })
	_, w := dnsLab(t, server)
	w.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), q)))
	if got := w.wait(t)[headLen+28:]; !bytes.Equal(got, set(answerOf(q, 3), 2, 0x83)) {
		t.Errorf("% x", got)
	}
}

// What is no query is not relayed, and of a guest's queries so many at a time, which another
// one's do not count against.
func TestDNSBounds(t *testing.T) {
	l, w := dnsLab(t, resolver(t, func([]byte, func([]byte)) {}))
	other := newWire()
	if err := l.Plug("b", other, PortConfig{MAC: macB[:], Addresses: []netip.Addr{b4}}); err != nil {
		t.Fatal(err)
	}
	two := slices.Concat(dnsQuery(7, "broker.example."), dnsQuery(7, "broker.example.")[12:])
	two[5] = 2
	for _, b := range [][]byte{nil, []byte("rubbish"), answerOf(dnsQuery(7, "broker.example."), 1), dnsQuery(7, "broker.example.")[:12], two, set(dnsQuery(7, "broker.example."), 12, 255)} {
		w.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), b)))
	}
	for range portQueries + 3 {
		w.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), dnsQuery(7, "broker.example."))))
	}
	other.send(ipFrame(macB, datagram(netip.AddrPortFrom(b4, 4000), netip.AddrPortFrom(router4, 53), dnsQuery(7, "broker.example."))))
	settled := func() bool {
		c := l.counters("a")
		return c.Malformed == 6 && c.Queries == portQueries && c.Unserved == 3 && l.counters("b").Queries == 1
	}
	for i := 0; !settled(); i++ {
		if i == 1000 {
			t.Fatalf("%+v", l.counters("a"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := l.Unplug("a"); err != nil { // does not wait for resolvers
		t.Fatal(err)
	}
	if n := len(l.dns.slots); n > 1 {
		t.Errorf("%d queries are left", n)
	}
}

// All guests' queries together are bounded, too.
func TestDNSBoundOfAll(t *testing.T) {
	l, w := dnsLab(t, netip.MustParseAddrPort("127.0.0.1:9"))
	for range allQueries {
		l.dns.slots <- struct{}{}
	}
	w.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), dnsQuery(7, "broker.example."))))
	for i := 0; l.counters("a").Unserved == 0; i++ {
		if i == 1000 {
			t.Fatalf("%+v", l.counters("a"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	<-l.dns.slots
	w.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), dnsQuery(7, "broker.example."))))
	w.wait(t)
	if c := l.counters("a"); c.Queries != 1 || c.Unserved != 1 {
		t.Errorf("%+v", c)
	}
}
