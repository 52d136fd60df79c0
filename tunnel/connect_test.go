package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRestartGivesNewLane(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		a, b := p.lanes(t, ClassMessages)
		say(t, a, b, "x")

		p.b.Close()
		wantReset(t, a, patience)
		p.b = newTunnel(t, p.cfgB) // on the same port
		p.toA = p.b.Peer("a")
		a, b = talk(t, p.toB, p.toA, ClassMessages)
		say(t, b, a, "the listening end is back")

		p.a.Close()
		wantReset(t, b, patience)
		p.a = newTunnel(t, p.cfgA)
		p.toB = p.a.Peer("b")
		a, b = talk(t, p.toB, p.toA, ClassMessages)
		say(t, a, b, "the dialing end is back")
	})
}

// crash stops a gateway without a word to its peers.
func crash(tun *Tunnel) {
	tun.udp.Close()
	tun.Close()
}

func TestCrashIsNoticedAtTheNextPacket(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	a, b := p.lanes(t, ClassMessages)
	say(t, a, b, "x")
	crash(p.b)
	p.b = newTunnel(t, p.cfgB)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for i := 0; ; i++ { // larger than the packets that are never answered with a stateless reset
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				a.Write(make([]byte, 100))
			}
		}
	}()
	if r := wantReset(t, a, 5*time.Second); r.Reason != ReasonRestarted {
		t.Errorf("%v", r)
	}
}

// Where only small packets are sent, which get no stateless reset, the question gets one.
func TestCrashIsNoticedWithSmallPackets(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	a, b := p.lanes(t, ClassMessages)
	for size, same := 0, 0; same < 50; same++ { // until no larger packets are tried any more
		say(t, a, b, "x")
		time.Sleep(10 * time.Millisecond)
		if now := a.conn.packet(); now != size {
			size, same = now, 0
		}
	}
	crash(p.b)
	p.b = newTunnel(t, p.cfgB)
	a.Write([]byte("x"))
	if r := wantReset(t, a, patience); r.Reason != ReasonRestarted {
		t.Errorf("%v", r)
	}
}

func TestCrashOfTheDialingEnd(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	r := newRelay(t, p.b.Addr())
	p.cfgA.Peers[0].Endpoint = r.front.LocalAddr().String()
	gone := newTunnel(t, p.cfgA)
	a, b := openBoth(t, gone.Peer("b"), p.toA, ClassMessages)
	say(t, a, b, "x")
	r.dropAll.Store(true) // its farewell is lost
	gone.Close()
	a2, b2 := openBoth(t, p.toB, p.toA, ClassMessages) // the same key calls from elsewhere
	wantReset(t, b, time.Second)
	say(t, a2, b2, "newest wins")
}

func TestWrongKeyIsRefused(t *testing.T) {
	for _, c := range []Carrier{QUIC, TLS} {
		for _, end := range []string{"dialing", "listening"} {
			t.Run(c.String()+" "+end+" end unknown", func(t *testing.T) {
				other := newKey(t).Fingerprint()
				p := newPair(t, []Carrier{c}, func(a, b *Config) {
					if end == "dialing" {
						b.Peers[0].Fingerprint = other
					}
				})
				toB := p.toB
				if end == "listening" {
					cfg := p.cfgA
					cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: other, Endpoint: p.cfgB.Listen}}
					toB = newTunnel(t, cfg).Peer("b")
				}
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				_, err := toB.Lane(ctx, ClassMessages)
				want, words := ErrWrongKey, p.kb.Fingerprint().String()
				if end == "dialing" {
					want, words = ErrRefused, p.ka.Fingerprint().String()
				}
				if !errors.Is(err, want) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), words) {
					t.Errorf("%v", err)
				}
				if s := toB.Status(); s.Connected || s.Attempts == 0 || !errors.Is(s.LastError, want) {
					t.Errorf("%+v", s)
				}
				if end == "dialing" && p.b.Refused() == 0 {
					t.Error("the listening end did not count the stranger")
				}
				if p.toA.Status().Connected {
					t.Error("the listening end thinks it is connected")
				}
			})
		}
	}
}

func TestPlainChecksClaims(t *testing.T) {
	p := newPair(t, []Carrier{Plain}, nil)
	for name, peer := range map[string]struct {
		key  Key
		want Fingerprint
	}{
		"caller unknown": {newKey(t), p.kb.Fingerprint()},
		"other gateway":  {p.ka, newKey(t).Fingerprint()},
	} {
		tun := newTunnel(t, Config{Key: peer.key, Carriers: []Carrier{Plain},
			Peers: []PeerConfig{{Name: "b", Fingerprint: peer.want, Endpoint: p.cfgB.Listen}}})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := tun.Peer("b").Lane(ctx, ClassBulk); !errors.Is(err, ErrRefused) && !errors.Is(err, ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	tlsOnly := p.cfgA
	tlsOnly.Carriers = []Carrier{TLS}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if l, err := newTunnel(t, tlsOnly).Peer("b").Lane(ctx, ClassBulk); err == nil {
		t.Errorf("TLS accepted by a plain listener: %v", l)
	}
	if p.b.Refused() == 0 {
		t.Error("nothing counted")
	}
}

func TestStrangersDoNoHarm(t *testing.T) {
	p := newPair(t, []Carrier{QUIC, TLS}, nil)
	a, b := p.lanes(t, ClassMessages)
	var silent []net.Conn
	for range maxHalfPerAddr + 10 { // connect and say nothing
		c, err := net.Dial("tcp", p.cfgB.Listen)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	udp, err := net.Dial("udp", p.cfgB.Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	for i := range 300 {
		udp.Write([]byte(strings.Repeat(fmt.Sprint(i), 1200)[:1200]))
	}
	silent[0].Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	say(t, a, b, "still here")
	eventually(t, "refusals counted", func() bool { return p.b.Refused() >= 10 })
}

func TestBothDialConverges(t *testing.T) {
	for _, c := range [][]Carrier{{QUIC}, {TLS}, {QUIC, TLS}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			small, large := orderedKeys(t)
			portA, portB := freePort(t), freePort(t)
			for range 3 {
				a := newTunnel(t, Config{Key: small, Carriers: c, Listen: portA,
					Peers: []PeerConfig{{Name: "b", Fingerprint: large.Fingerprint(), Endpoint: portB}}})
				b := newTunnel(t, Config{Key: large, Carriers: c, Listen: portB,
					Peers: []PeerConfig{{Name: "a", Fingerprint: small.Fingerprint(), Endpoint: portA}}})
				var wg sync.WaitGroup
				for class := range NumClasses {
					wg.Go(func() {
						settle(t, a.Peer("b"), b.Peer("a"), class)
					})
				}
				wg.Wait()
				if a.Peer("b").Status().Dialed == b.Peer("a").Status().Dialed {
					t.Errorf("both ends think the same of who dialed: %+v; %+v", a.Peer("b").Status(), b.Peer("a").Status())
				}
				a.Close()
				b.Close()
			}
		})
	}
}

func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// blackHole takes the UDP port beside a TCP listener, and answers nothing.
func blackHole(t *testing.T, addr string) net.PacketConn {
	udp, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	return udp
}

func TestFallbackToTLSAndBack(t *testing.T) {
	p := newPair(t, []Carrier{TLS}, nil)
	hole := blackHole(t, p.cfgB.Listen)
	cfg := p.cfgA
	cfg.Carriers = []Carrier{QUIC, TLS}
	cfg.FallbackDelay, cfg.RetryPreferred = 200*time.Millisecond, 500*time.Millisecond
	cfg.DialTimeout = time.Second
	a := newTunnel(t, cfg).Peer("b")
	la, lb := openBoth(t, a, p.toA, ClassMessages)
	ba, bb := openBoth(t, a, p.toA, ClassBulk)
	say(t, la, lb, "over TLS")
	say(t, bb, ba, "over TLS")
	if la.Carrier() != TLS || a.Status().Carrier != TLS {
		t.Fatalf("carrier %v", la.Carrier())
	}
	time.Sleep(2 * time.Second) // QUIC is tried in between
	say(t, lb, la, "and the lane stays")
	// The port opens.
	hole.Close()
	p.b.Close()
	p.cfgB.Carriers = []Carrier{QUIC, TLS}
	b := newTunnel(t, p.cfgB)
	la, lb = talk(t, a, b.Peer("a"), ClassMessages)
	say(t, la, lb, "something works")
	eventually(t, "QUIC again", func() bool {
		if la.Carrier() == QUIC {
			return true
		}
		la.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := la.Read(make([]byte, 1)); errors.Is(err, ErrReset) {
			la, lb = talk(t, a, b.Peer("a"), ClassMessages)
		}
		return false
	})
	say(t, la, lb, "over QUIC")
}

func TestMoveToPreferredCarrier(t *testing.T) {
	p := newPair(t, []Carrier{QUIC, TLS}, nil)
	r := newRelay(t, p.b.Addr())
	r.dropAll.Store(true)
	r.carryTCP(t, p.cfgB.Listen)
	cfg := p.cfgA
	cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: r.front.LocalAddr().String()}}
	cfg.FallbackDelay, cfg.RetryPreferred, cfg.DialTimeout = 100*time.Millisecond, 300*time.Millisecond, 500*time.Millisecond
	a := newTunnel(t, cfg).Peer("b")
	la, lb := openBoth(t, a, p.toA, ClassMessages)
	say(t, la, lb, "over TLS")
	r.dropAll.Store(false)
	la.SetReadDeadline(time.Now().Add(patience))
	if _, err := la.Read(make([]byte, 1)); err == nil || err == os.ErrDeadlineExceeded {
		t.Fatalf("the lane over TLS stays: %v", err)
	}
	la, lb = talk(t, a, p.toA, ClassMessages)
	if la.Carrier() != QUIC || lb.Carrier() != QUIC {
		t.Errorf("moved to %v", la.Carrier())
	}
}

func TestAddressChangeKeepsTheLane(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	r := newRelay(t, p.b.Addr())
	cfg := p.cfgA
	cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: r.front.LocalAddr().String()}}
	a, b := openBoth(t, newTunnel(t, cfg).Peer("b"), p.toA, ClassMessages)
	say(t, a, b, "before")
	for i := range 3 {
		before := b.RemoteAddr().String()
		r.rebind(t)
		say(t, a, b, "up")
		say(t, b, a, "down")
		eventually(t, "the new port is used", func() bool {
			say(t, a, b, "more")
			return b.RemoteAddr().String() != before
		})
		say(t, b, a, fmt.Sprint("after change ", i))
	}
}

func TestEndpointIsResolvedAnew(t *testing.T) {
	// The name stays, what it means changes; here the listening port moves
	// behind a relay, and the old one answers nothing.
	p := newPair(t, []Carrier{QUIC}, nil)
	r := newRelay(t, p.b.Addr())
	cfg := p.cfgA
	cfg.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: r.front.LocalAddr().String()}}
	tun := newTunnel(t, cfg)
	a, b := openBoth(t, tun.Peer("b"), p.toA, ClassMessages)
	say(t, a, b, "before")
	cfgB := p.cfgB
	cfgB.Listen = "127.0.0.1:0"
	moved := newTunnel(t, cfgB)
	r.mu.Lock()
	r.target = moved.Addr().(*net.UDPAddr)
	r.mu.Unlock()
	r.rebind(t)
	a, b = talk(t, tun.Peer("b"), moved.Peer("a"), ClassMessages)
	say(t, a, b, "after")
}

func TestManyPeers(t *testing.T) {
	hub := Config{Key: newKey(t), Listen: "127.0.0.1:0", Carriers: []Carrier{QUIC}, Logger: slog.New(slog.DiscardHandler)}
	var keys []Key
	for i := range 20 {
		keys = append(keys, newKey(t))
		hub.Peers = append(hub.Peers, PeerConfig{Name: fmt.Sprint(i), Fingerprint: keys[i].Fingerprint()})
	}
	h := newTunnel(t, hub)
	var wg sync.WaitGroup
	for i, k := range keys {
		wg.Go(func() {
			tun := newTunnel(t, Config{Key: k, Carriers: hub.Carriers, Logger: hub.Logger, Peers: []PeerConfig{{Name: "hub", Fingerprint: h.Fingerprint(), Endpoint: h.Addr().String()}}})
			a, b := openBoth(t, tun.Peer("hub"), h.Peer(fmt.Sprint(i)), ClassMessages)
			say(t, a, b, fmt.Sprint("I am ", i))
		})
	}
	wg.Wait()
	if got := len(h.peers); got != 20 {
		t.Errorf("%d peers", got)
	}
	eventually(t, "no handshake left half open", func() bool { return h.halfQUIC.Load() == 0 })
}
