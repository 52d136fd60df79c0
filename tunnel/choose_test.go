package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

func callOver(c Carrier) call { return call{carrier: c, answered: func() {}} }

// Of calls that are all answered the one lasts that the calling end chooses, whichever
// the other end saw first, and whatever becomes of the rest.
func TestChosenCallLasts(t *testing.T) {
	for _, chosen := range []string{"first QUIC", "second QUIC", "TLS"} {
		t.Run(chosen, func(t *testing.T) {
			p := newPair(t, []Carrier{QUIC, TLS}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			calls := map[string]candidate{}
			for _, c := range []struct {
				name string
				Carrier
			}{{"first QUIC", QUIC}, {"TLS", TLS}, {"second QUIC", QUIC}} {
				got := p.toB.call(ctx, callOver(c.Carrier), false)
				if got.err != nil {
					t.Fatal(got.err)
				}
				calls[c.name] = got
			}
			eventually(t, "the other end has heard of both of QUIC", func() bool {
				p.toA.mu.Lock()
				defer p.toA.mu.Unlock()
				return len(p.toA.waiting) == 2
			})
			if p.toA.Status().Connected {
				t.Error("connected before there was a lane")
			}
			c := calls[chosen]
			if err := p.toB.take(ctx, &c, ClassMessages); err != nil {
				t.Fatal(err)
			}
			a, b := p.lanes(t, ClassMessages)
			say(t, a, b, "over "+chosen)
			for name, c := range calls {
				if name != chosen {
					c.close(ReasonDuplicate)
				}
			}
			eventually(t, "the others are forgotten", func() bool {
				p.toA.mu.Lock()
				defer p.toA.mu.Unlock()
				return len(p.toA.waiting) == 0
			})
			say(t, b, a, "still")
			if got := p.toA.Status(); got.Carrier != c.carrier || p.toA.open() != 1 {
				t.Errorf("%+v", got)
			}
			if p.b.Refused() != 0 {
				t.Error("a call that was given up counts as a stranger's")
			}
		})
	}
}

// A lane on a connection that the calling end has left comes too late.
func TestLateLaneIsRefused(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	old := p.toB.call(ctx, callOver(QUIC), false)
	if old.err != nil {
		t.Fatal(old.err)
	}
	p.toB.mu.Lock()
	p.toB.epoch++
	late := header{class: ClassBulk, instance: p.a.instance, epoch: p.toB.epoch}
	p.toB.mu.Unlock()
	a, b := p.lanes(t, ClassMessages) // over another one
	if _, err := old.conn.open(ctx, p.toB, late); err != nil {
		t.Fatal(err)
	}
	select {
	case <-old.conn.Context().Done():
	case <-ctx.Done():
		t.Fatal("the late one is taken")
	}
	if why := resetOf(context.Cause(old.conn.Context())); why.Reason != ReasonSuperseded || !why.Remote {
		t.Errorf("the late one: %v", why)
	}
	old.close(ReasonDuplicate)
	say(t, a, b, "the chosen one stays")
}

// Connections that wait for a lane are bounded, the oldest gives way.
func TestWaitingIsBounded(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []candidate
	for i := range maxWaiting + 1 {
		c := p.toB.call(ctx, callOver(QUIC), false)
		if c.err != nil {
			t.Fatal(c.err)
		}
		all = append(all, c)
		eventually(t, "the other end knows", func() bool {
			p.toA.mu.Lock()
			defer p.toA.mu.Unlock()
			return len(p.toA.waiting) == min(i+1, maxWaiting)
		})
	}
	for i, c := range all {
		select {
		case <-c.conn.Context().Done():
			if i != 0 {
				t.Errorf("call %d was ended", i)
			}
		case <-time.After(map[bool]time.Duration{true: patience}[i == 0]):
			if i == 0 {
				t.Error("the first one is still there")
			}
		}
		c.close(ReasonDuplicate)
	}
}

// Both ends call at once, each over the carrier that it prefers: one connection is
// left, and both mean the same one.
func TestBothDialOverUnlikeCarriers(t *testing.T) {
	for _, smaller := range []Carrier{QUIC, TLS} {
		t.Run(fmt.Sprint("the smaller fingerprint prefers ", smaller), func(t *testing.T) {
			small, large := orderedKeys(t)
			order := map[Carrier][]Carrier{QUIC: {QUIC, TLS}, TLS: {TLS, QUIC}}
			portA, portB := freePort(t), freePort(t)
			for range 5 {
				a := newTunnel(t, Config{Key: small, Carriers: order[smaller], Listen: portA,
					Peers: []PeerConfig{{Name: "b", Fingerprint: large.Fingerprint(), Endpoint: portB}}})
				b := newTunnel(t, Config{Key: large, Carriers: order[QUIC+TLS-smaller], Listen: portB,
					Peers: []PeerConfig{{Name: "a", Fingerprint: small.Fingerprint(), Endpoint: portA}}})
				var wg sync.WaitGroup
				for class := range NumClasses {
					wg.Go(func() { settle(t, a.Peer("b"), b.Peer("a"), class) })
				}
				wg.Wait()
				sa, sb := a.Peer("b").Status(), b.Peer("a").Status()
				if sa.Carrier != sb.Carrier || sa.Dialed == sb.Dialed {
					t.Errorf("the ends differ: %+v; %+v", sa, sb)
				}
				a.Close()
				b.Close()
			}
		})
	}
}

// Both ends have dialed at the same moment, each over another carrier, and each has
// what the other one dialed before it: both mean the same connection.
func TestCrossingCarriers(t *testing.T) {
	for _, aSmaller := range []bool{true, false} {
		small, large := orderedKeys(t)
		if !aSmaller {
			small, large = large, small
		}
		portA, portB := freePort(t), freePort(t)
		a := newTunnel(t, Config{Key: small, Listen: portA, Peers: []PeerConfig{{Name: "b", Fingerprint: large.Fingerprint(), Endpoint: portB}}})
		b := newTunnel(t, Config{Key: large, Listen: portB, Peers: []PeerConfig{{Name: "a", Fingerprint: small.Fingerprint(), Endpoint: portA}}})
		toB, toA := a.Peer("b"), b.Peer("a")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ofA, ofB := toB.call(ctx, callOver(QUIC), false), toA.call(ctx, callOver(TLS), false)
		if ofA.err != nil || ofB.err != nil {
			t.Fatal(ofA.err, ofB.err)
		}
		// a has chosen QUIC, of which b does not know yet, and b has a lane over TLS.
		if err := toB.take(ctx, &ofA, ClassMessages); err != nil {
			t.Fatal(err)
		}
		errB := toA.take(ctx, &ofB, ClassMessages)
		if refused := errors.Is(errB, ReasonDuplicate); refused != aSmaller {
			t.Errorf("a smaller %v: a answers b with %v", aSmaller, errB)
		}
		if aSmaller {
			continue
		}
		// b hears of a's choice only now.
		late, err := toB.call(ctx, callOver(QUIC), false), error(nil)
		if late.err != nil {
			t.Fatal(late.err)
		}
		defer late.close(ReasonDuplicate)
		eventually(t, "b has heard the call", func() bool {
			toA.mu.Lock()
			defer toA.mu.Unlock()
			return len(toA.waiting) > 0
		})
		toA.mu.Lock()
		toA.opening = false // as at the end of connect
		k := toA.waiting[len(toA.waiting)-1]
		toA.mu.Unlock()
		if err = toA.adopt(k, &header{class: ClassBulk, instance: a.instance, epoch: 1 << 40}); !errors.Is(err, ReasonDuplicate) {
			t.Errorf("b leaves for a's choice, and a has left for b's: %v", err)
		}
	}
}

// While a lane is asked for over TCP the other end may have it already.
func TestCrossingWhileOpening(t *testing.T) {
	small, large := orderedKeys(t)
	for _, keys := range [][2]Key{{small, large}, {large, small}} {
		p := newPair(t, []Carrier{QUIC}, func(a, b *Config) {
			a.Key, b.Key = keys[0], keys[1]
			b.Peers[0].Fingerprint = keys[0].Fingerprint()
			a.Peers = []PeerConfig{{Name: "b", Fingerprint: keys[1].Fingerprint(), Endpoint: "127.0.0.1:9"}}
		})
		p.toB.mu.Lock()
		p.toB.opening = true
		err := p.toB.refusesFrom(false, nil)
		p.toB.mu.Unlock()
		if keeps := keys[0].Fingerprint() == small.Fingerprint(); keeps != errors.Is(err, ReasonDuplicate) {
			t.Errorf("the smaller %v: %v", keeps, err)
		}
	}
}

// UDP is blocked while connected. The calling end finds the way over TCP long before
// the idle timeout, also where only the other end has anything to send.
func TestUDPBlockedMidSession(t *testing.T) {
	for _, sender := range []string{"calling", "called"} {
		t.Run(sender+" end sends", func(t *testing.T) {
			p := newPair(t, []Carrier{QUIC, TLS}, nil)
			r := newRelay(t, p.b.Addr())
			r.carryTCP(t, p.cfgB.Listen)
			cfg := p.cfgA
			cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: r.front.LocalAddr().String()}}
			a := newTunnel(t, cfg).Peer("b")
			la, lb := openBoth(t, a, p.toA, ClassMessages)
			if la.Carrier() != QUIC {
				t.Fatalf("over %v", la.Carrier())
			}
			from, to := la, lb
			if sender == "called" {
				from, to = lb, la
			}
			for range 20 {
				say(t, from, to, "tick")
				time.Sleep(100 * time.Millisecond)
			}
			r.dropAll.Store(true)
			// The lane ends long before the idle timeout, which is beyond patience.
			for end := time.Now().Add(patience); ; {
				from.SetWriteDeadline(time.Now().Add(time.Second))
				from.Write([]byte("tick"))
				la.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				if _, err := la.Read(make([]byte, 1<<10)); errors.Is(err, ErrReset) {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the lane over QUIC stays")
				}
			}
			la, lb = talk(t, a, p.toA, ClassMessages)
			if la.Carrier() != TLS || lb.Carrier() != TLS {
				t.Errorf("moved to %v", la.Carrier())
			}
		})
	}
}

// carryTCP has the relay's port forward TCP too.
func (r *relay) carryTCP(t testing.TB, target string) {
	ln, err := net.Listen("tcp", r.front.LocalAddr().String())
	if err != nil {
		t.Skip("the relay's port is taken for TCP")
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			d, err := net.Dial("tcp", target)
			if err != nil {
				c.Close()
				return
			}
			go copyConn(d, c)
			go copyConn(c, d)
		}
	}()
}

func copyConn(to, from net.Conn) {
	b := make([]byte, 1<<14)
	for {
		n, err := from.Read(b)
		if err != nil {
			to.Close()
			return
		}
		to.Write(b[:n])
	}
}
