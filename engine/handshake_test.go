package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// A record collects what is logged from INFO on.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) log() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// count returns how many lines have a text.
func (r *record) count(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.b.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func helloOf(from, to uint8) wire.Hello {
	return wire.Hello{Min: from, Max: to, Limits: wire.DefaultLimits}
}

// A deaf stream takes nothing any more, and can still be read.
type deaf struct{ stream }

var errDeaf = &tunnel.ResetError{Reason: tunnel.ReasonClosed, Remote: true}

func (deaf) Write([]byte) (int, error) { return 0, errDeaf }

// A peer that declined the lane before this end's Hello came has left its own: it says
// why. Where it does not, the write's error stands.
func TestHandshakeDeclinedFirst(t *testing.T) {
	own := helloOf(2, 3)
	for name, test := range map[string]struct {
		says []byte
		want string
	}{
		"newer":   {wire.AppendHello(nil, helloOf(4, 7)), "versions 2 to 3 here, 4 to 7 there"},
		"older":   {wire.AppendHello(nil, helloOf(1, 1)), "versions 2 to 3 here, 1 to 1 there"},
		"garbage": {[]byte("GET / HTTP/1.1\r\n"), "not a sheaf gateway"},
		"same":    {wire.AppendHello(nil, own), errDeaf.Error()},
		"nothing": {nil, errDeaf.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			w := wirePair(0, 1<<16)
			if _, err := w[1].Write(test.says); err != nil {
				t.Fatal(err)
			}
			_ = w[1].Decline(nil)
			if _, _, err := handshake(deaf{w[0]}, own); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// What a peer says in place of a Hello that agrees is told as what it is.
func TestHandshake(t *testing.T) {
	own := helloOf(2, 3)
	narrow := own
	narrow.Limits.Flows = 0
	for name, test := range map[string]struct {
		says     []byte
		closes   bool
		declines error         // why it closes
		after    time.Duration // how long it takes to tell
		want     error         // nil for agreement
		told     tunnel.Reason // what the peer is told
		cause    Cause
		text     string
	}{
		"same":                      {says: wire.AppendHello(nil, own)},
		"one in common":             {says: wire.AppendHello(nil, helloOf(3, 9))},
		"older":                     {says: wire.AppendHello(nil, helloOf(1, 1)), told: tunnel.ReasonVersion, want: tunnel.ReasonVersion, cause: CauseNewer, text: "versions 2 to 3 here, 1 to 1 there"},
		"newer":                     {says: wire.AppendHello(nil, helloOf(4, 7)), told: tunnel.ReasonVersion, want: tunnel.ReasonVersion, cause: CauseOlder, text: "versions 2 to 3 here, 4 to 7 there"},
		"impossible":                {says: wire.AppendHello(nil, helloOf(3, 2)), told: tunnel.ReasonProtocol, want: wire.ErrHello, cause: CauseProtocol, text: "versions 3 to 2"},
		"limit":                     {says: wire.AppendHello(nil, narrow), told: tunnel.ReasonLimit, want: wire.ErrHello, cause: CauseLimit, text: "limit of flows is 0"},
		"garbage":                   {says: []byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"), told: tunnel.ReasonProtocol, want: ErrPeer, cause: CauseProtocol, text: "not a sheaf gateway"},
		"a bit of garbage":          {says: []byte("GE"), told: tunnel.ReasonProtocol, want: ErrPeer, cause: CauseProtocol, text: "not a sheaf gateway"},
		"nothing, closed":           {closes: true, want: ErrNoHello, cause: CauseVersion, text: "may be of another version"},
		"nothing, for the version":  {closes: true, declines: tunnel.ReasonVersion, told: tunnel.ReasonVersion, want: wire.ErrHello, cause: CauseVersion, text: "no common version"},
		"nothing, for a limit":      {closes: true, declines: tunnel.ReasonLimit, told: tunnel.ReasonLimit, want: wire.ErrHello, cause: CauseLimit, text: "limit exceeded"},
		"nothing, for our nonsense": {closes: true, declines: tunnel.ReasonProtocol, told: tunnel.ReasonProtocol, want: wire.ErrHello, cause: CauseProtocol, text: "protocol violated"},
		"half, closed":              {says: wire.AppendHello(nil, own)[:9], closes: true, want: ErrNoHello, cause: CauseVersion, text: "may be of another version"},
		"half":                      {says: wire.AppendHello(nil, own)[:27], after: helloTimeout, told: tunnel.ReasonStalled, want: ErrSilent, text: "no Hello within 10s"},
		"silence":                   {after: helloTimeout, told: tunnel.ReasonStalled, want: ErrSilent, text: "no Hello within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wirePair(0, 1<<16)
				if _, err := w[1].Write(test.says); err != nil {
					t.Fatal(err)
				}
				if test.closes {
					_ = w[1].Decline(test.declines)
				}
				begin := time.Now()
				_, _, err := handshake(w[0], own)
				if told, _ := errors.AsType[tunnel.Reason](err); err != nil && told != test.told {
					t.Errorf("the peer is to be told of %q", told)
				}
				if (err == nil) != (test.want == nil) || test.want != nil && !errors.Is(err, test.want) {
					t.Fatalf("error %v", err)
				}
				if took := time.Since(begin); took != test.after {
					t.Errorf("told after %v", took)
				}
				if err != nil && (!strings.Contains(err.Error(), test.text) || CauseOf(err) != test.cause) {
					t.Errorf("%q, cause %q", err, CauseOf(err))
				}
				var said [wire.HelloLen]byte
				if _, err := io.ReadFull(w[1], said[:]); err != nil || string(said[:]) != string(wire.AppendHello(nil, own)) {
					t.Errorf("the peer reads %x, %v", said, err)
				}
			})
		})
	}
}

// A reset in place of a Hello is what programs of version 1 answer one that
// they do not agree with; other resets are what they say.
func TestHandshakeReset(t *testing.T) {
	for _, test := range []struct {
		reset *tunnel.ResetError
		cause Cause
		text  string
	}{
		{&tunnel.ResetError{Reason: tunnel.ReasonCorrupt, Remote: true}, CauseNewer, "versions 2 to 3 here, 1 to 1 there"},
		{&tunnel.ResetError{Reason: tunnel.ReasonUnknown, Remote: true}, CauseVersion, "may be of another version"},
		{&tunnel.ResetError{Reason: tunnel.ReasonShutdown, Remote: true}, "", "the gateway stops"},
		{&tunnel.ResetError{Reason: tunnel.ReasonCorrupt}, "", "digest"},
	} {
		err := noHello(helloOf(2, 3), &tunnel.PeerError{Peer: "x", Op: "read", Err: test.reset})
		if !strings.Contains(err.Error(), test.text) || CauseOf(err) != test.cause {
			t.Errorf("%v became %q, cause %q", test.reset, err, CauseOf(err))
		}
	}
}

// Two ends that do not agree say so once each, decline every lane so that the
// other end can say so too, and carry traffic as soon as they agree.
func TestVersionMismatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wires [][2]*wireEnd
		for range 20 {
			wires = append(wires, wirePair(20*time.Millisecond, 1<<16))
		}
		var logs [2]record
		b := newBenchWith(t, func(i int, l *laneRunner) {
			l.self, l.log = helloOf(uint8(1+i), uint8(1+i)), logs[i].log()
		}, wires...)
		defer b.stop()
		time.Sleep(5 * time.Second)
		now := time.Since(b.begin)
		for i, l := range b.ends {
			want := fmt.Sprintf("versions %d to %d here, %d to %d there", 1+i, 1+i, 2-i, 2-i)
			if logs[i].count("level=WARN") != 1 || logs[i].count(want) != 1 || logs[i].count("") != 1 {
				t.Errorf("end %d says\n%s", i, &logs[i].b)
			}
			if fault := l.health.fault(now); fault == nil || !strings.Contains(fault.Error(), want) || l.epochs.Load() != 0 || l.health.away(now) != now {
				t.Errorf("end %d: fault %v, %d epochs, away %v", i, fault, l.epochs.Load(), l.health.away(now))
			}
			for k, w := range wires {
				w[i].out.mu.Lock()
				told := w[i].out.told
				w[i].out.mu.Unlock()
				if !w[i].declined.Load() || !errors.Is(told, tunnel.ReasonVersion) {
					t.Errorf("end %d does not decline lane %d for its version, but for %v", i, k, told)
				}
			}
		}
	})
}

// The one of the two that is upgraded is heard of at once.
func TestAgreementAfterAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wirePair(0, 1<<16)
		if _, err := w[1].Write(wire.AppendHello(nil, helloOf(200, 200))); err != nil {
			t.Fatal(err)
		}
		var log record
		b := newBenchWith(t, func(i int, l *laneRunner) {
			if i == 0 {
				l.log = log.log()
				_, _, err := handshake(w[0], l.self)
				l.mismatch.news(err)
			}
		}, wirePair(0, 1<<16))
		defer b.stop()
		time.Sleep(time.Second)
		b.send(0, "after")
		time.Sleep(time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[after]" || log.count("understood again") != 1 {
			t.Errorf("arrived: %s; log\n%s", got, &log.b)
		}
		if fault := b.ends[0].health.fault(time.Since(b.begin)); fault != nil {
			t.Error(fault)
		}
	})
}

// A disagreement is told once, and again when it is another one.
func TestMismatch(t *testing.T) {
	older := &wire.VersionError{Here: wire.Versions{Min: 2, Max: 2}, There: wire.Versions{Min: 1, Max: 1}}
	newer := &wire.VersionError{Here: wire.Versions{Min: 2, Max: 2}, There: wire.Versions{Min: 3, Max: 3}}
	var d mismatch
	for i, step := range []struct {
		err  error
		news bool
	}{{ErrNoHello, true}, {ErrNoHello, false}, {older, true}, {ErrNoHello, false}, {older, false}, {newer, true}} {
		if got := d.news(step.err); got != step.news {
			t.Errorf("step %d, %v: news %v", i, step.err, got)
		}
	}
	if d.why() != newer || !d.agreed() || d.agreed() || d.why() != nil || !d.news(newer) {
		t.Error("settled otherwise")
	}
}

// Two gateways of which one is of another version: both say so, once, the peer is
// not up although it is connected, and all is well as soon as the other is
// upgraded.
func TestVersionsOfGateways(t *testing.T) {
	for _, carrier := range []string{"quic", "tls"} {
		for other, role := range []string{"caller", "called"} {
			t.Run(carrier+", the "+role+" is older", func(t *testing.T) {
				texts, _ := userspaceTexts(t, echoServer(t), carrier)
				var logs [2]record
				var sites [2]*site
				run := func(i int, hello wire.Hello) {
					text := strings.Replace(texts[i], "[[peer]]", "metrics = \""+freePort(t)+"\"\n[[peer]]", 1)
					sites[i] = startWith(t, text, logs[i].log(), func(g *Gateway) {
						for _, p := range g.peers {
							for _, l := range p.lanes {
								l.self = hello
							}
						}
					})
				}
				for i := 1; i >= 0; i-- {
					version := uint8(8)
					if i == other {
						version = 7
					}
					run(i, helloOf(version, version))
				}
				status := func(i int) PeerStatus { return sites[i].g.Status().Peers[0] }
				told := func(i int) bool { return logs[i].count("level=WARN") > 0 }
				for deadline := time.Now().Add(15 * time.Second); !told(0) || !told(1); time.Sleep(20 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("nothing is told\n%s\n%s", &logs[0].b, &logs[1].b)
					}
				}
				time.Sleep(1500 * time.Millisecond) // a second attempt
				for i := range sites {
					want, cause := "versions 8 to 8 here, 7 to 7 there", CauseNewer
					if i == other {
						want, cause = "versions 7 to 7 here, 8 to 8 there", CauseOlder
					}
					if logs[i].count("level=WARN") != 1 || logs[i].count(want) != 1 || logs[i].count("digest") > 0 {
						t.Errorf("end %d logs\n%s", i, &logs[i].b)
					}
					s := status(i)
					if s.Up || !strings.Contains(s.Error, want) || s.Cause != cause {
						t.Errorf("end %d: %+v", i, s)
					}
					if out := scraped(t, sites[i]); strings.Count(out, "_up{") != 3 || strings.Count(out, "} 0\n") != 3 {
						t.Errorf("end %d: %s", i, out)
					}
				}
				sites[other].stop()
				run(other, helloOf(8, 8))
				waitUp(t, sites[0], sites[1])
				for i := range sites {
					if s := status(i); !s.Up || s.Cause != "" {
						t.Errorf("after the upgrade, end %d: %+v", i, s)
					}
					if out := scraped(t, sites[i]); strings.Count(out, "_up{") != 3 || strings.Count(out, "} 1\n") != 3 {
						t.Errorf("after the upgrade, end %d: %s", i, out)
					}
				}
				if logs[1-other].count("understood again") != 1 {
					t.Errorf("no word of the upgrade:\n%s", &logs[1-other].b)
				}
			})
		}
	}
}

// scraped returns the lines of the metrics that say what is up.
func scraped(t *testing.T, s *site) string {
	t.Helper()
	r, err := http.Get("http://" + s.g.scrape.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var up strings.Builder
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "_up{") {
			up.WriteString(line)
		}
	}
	return up.String()
}
