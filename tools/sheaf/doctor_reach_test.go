package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sheaf/engine"
	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// doctorOn runs `sheaf doctor` on a configuration file.
func doctorOn(t *testing.T, path string, code int, want ...string) {
	t.Helper()
	got := sheaf(t, nil, "doctor", "-c", path)
	text := strings.Join(strings.Fields(got.stdout), " ")
	if got.code != code || got.stderr != "" {
		t.Errorf("exit code %d, want %d; stderr %q\n%s", got.code, code, got.stderr, got.stdout)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in\n%s", w, got.stdout)
		}
	}
}

// TestDoctorPeers examines a pair before, while and after it runs.
func TestDoctorPeers(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	broken := filepath.Join(filepath.Dir(p.clients), "none.toml")
	doctorOn(t, broken, exitFailing, "FAIL configuration", "no such file", "-c FILE")
	doctorOn(t, p.clients, exitFailing, "ok configuration", "ok control no gateway is running", "ok key", "FAIL peer broker cannot be reached", "mend: start the gateway there", "1 failure and ")
	doctorOn(t, p.broker, exitOK, "ok peer clients calls this gateway", "ok listen "+p.listen+" is free", "warn terminate the server 127.0.0.1:1 takes no connection")

	stop, _, stderr := started(t, p.broker)
	doctorOn(t, p.broker, exitOK, "a gateway is running", "warn peer clients has not called")
	doctorOn(t, p.clients, exitOK, "ok peer broker answers over quic from "+p.listen)
	doctorOn(t, edited(t, p.clients, "key =", "carrier = [\"tls\"]\nkey ="), exitOK, "ok peer broker answers over tls")
	_, third := newKey(t, filepath.Join(filepath.Dir(p.clients), "third.key")), "third.key"
	doctorOn(t, edited(t, p.clients, "clients.key", third), exitFailing, "FAIL peer broker cannot be reached", "mend: write in the configuration there")
	doctorOn(t, edited(t, p.clients, p.prints[1], newKey(t, filepath.Join(filepath.Dir(p.clients), "fourth.key"))), exitFailing, "FAIL peer broker", "mend: write as fingerprint of this [[peer]]")
	doctorOn(t, edited(t, p.clients, p.listen, "no-such-host.invalid:4747"), exitFailing, "FAIL peer broker: lookup", "resolv.conf")
	doctorOn(t, edited(t, p.clients, p.control, "off"), exitOK, "warn peer not called: a gateway may be running")
	if strings.Contains(stderr.String(), "panic") {
		t.Error(stderr.String())
	}

	started(t, p.clients)
	eventually(t, "the peer", func() bool {
		s, err := engine.NewClient(p.control).Status(t.Context())
		return err == nil && s.Peers[0].Up
	})
	doctorOn(t, p.clients, exitOK, "ok control a gateway is running", "ok peer broker is up over quic")
	doctorOn(t, edited(t, p.clients, `name = "broker"`, `name = "else"`), exitOK, "warn peer else is not among the peers")
	stop()
	eventually(t, "the loss of the peer", func() bool {
		s, err := engine.NewClient(p.control).Status(t.Context())
		return err == nil && !s.Peers[0].Up
	})
	doctorOn(t, p.clients, exitFailing, "FAIL peer broker is down")
	if code := run([]string{"doctor", "-c", p.clients}, nil, &failing{}, &bytes.Buffer{}); code != exitUnusable {
		t.Errorf("exit code %d where nothing can be written", code)
	}
}

// TestDoctorLoop finds an endpoint that leads through the tunnel itself.
func TestDoctorLoop(t *testing.T) {
	p := newPatient(t)
	p.config = strings.Replace(p.config, "127.0.0.1:9", "10.2.0.1:9", 1)
	_, d := p.examine(t, nil)
	var out bytes.Buffer
	d.out = &out
	d.checkPeers(t.Context())
	if !strings.Contains(out.String(), "the tunnel would lead into itself") || d.failures != 1 {
		t.Error(out.String())
	}
}

// TestDoctorAsks holds what is made of the states of a running gateway's peers.
func TestDoctorAsks(t *testing.T) {
	for _, test := range []struct {
		peer   engine.PeerStatus
		called bool // by the peer: it has no endpoint
		line   string
		mend   string
	}{
		{engine.PeerStatus{Connected: true, Up: true, Carrier: "quic", Remote: "x"}, false, "ok peer datacentre is up over quic with x", ""},
		{engine.PeerStatus{Connected: true, Error: "versions 2 to 2 here, 1 to 1 there", Cause: engine.CauseNewer}, false, "FAIL peer datacentre is connected, but: versions 2 to 2 here, 1 to 1 there", "upgrade sheaf there"},
		{engine.PeerStatus{Connected: true, Error: "e", Cause: engine.CauseOlder}, true, "FAIL peer datacentre is connected, but: e", "upgrade sheaf here"},
		{engine.PeerStatus{Connected: true, Error: "e", Cause: engine.CauseVersion}, true, "FAIL peer", "upgrade the older"},
		{engine.PeerStatus{Connected: true, Error: "3 epochs in a row"}, false, "FAIL peer datacentre is connected, but: 3 epochs", "logs of both"},
		{engine.PeerStatus{Error: "e", Cause: engine.CauseVersion}, true, "FAIL peer datacentre is down: e", "upgrade the older"},
		{engine.PeerStatus{Error: "e", Cause: engine.CauseKey}, false, "FAIL peer datacentre is down: e", "fingerprint of this"},
		{engine.PeerStatus{}, false, "FAIL peer datacentre is down: no answer yet", "start the gateway there"},
		{engine.PeerStatus{Error: "e"}, true, "warn peer datacentre has not called", "this one on :4747; the log tells of 2 calls"},
	} {
		p := newPatient(t)
		if test.called {
			p.config = "listen = \":4747\"\n" + strings.Replace(p.config, "endpoint = \"127.0.0.1:9\"\n", "", 1)
		}
		test.peer.Name = "datacentre"
		_, d := p.examine(t, &engine.Status{Strangers: 2, Peers: []engine.PeerStatus{test.peer}})
		var out bytes.Buffer
		d.out = &out
		d.checkPeers(t.Context())
		text := strings.Join(strings.Fields(out.String()), " ")
		if !strings.HasPrefix(text, test.line) || !strings.Contains(text, test.mend) || (test.mend != "") != strings.Contains(text, "mend: ") {
			t.Errorf("%+v:\n%s", test.peer, &out)
		}
	}
}

// anotherVersion is a gateway in place of the one beside the broker, whose Hello
// is not of this version.
func anotherVersion(t *testing.T, p *pair, hello wire.Hello) {
	t.Helper()
	key, err := tunnel.LoadKey(filepath.Join(filepath.Dir(p.broker), "broker.key"))
	if err != nil {
		t.Fatal(err)
	}
	caller, err := tunnel.ParseFingerprint(p.prints[0])
	if err != nil {
		t.Fatal(err)
	}
	tun, err := tunnel.New(tunnel.Config{Key: key, Listen: p.listen, Peers: []tunnel.PeerConfig{{Name: "clients", Fingerprint: caller}}})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for class := range tunnel.NumClasses {
		all.Go(func() {
			for {
				l, err := tun.Peer("clients").Lane(t.Context(), class)
				if err != nil {
					return
				}
				_, _ = l.Write(wire.AppendHello(nil, hello))
				_ = l.Decline(nil)
			}
		})
	}
	t.Cleanup(func() {
		tun.Close()
		all.Wait()
	})
}

// TestDoctorVersions examines a gateway whose peer is of another version, before
// and while it runs.
func TestDoctorVersions(t *testing.T) {
	for name, test := range map[string]struct {
		version uint8
		mend    string
	}{"newer": {wire.Version + 1, "mend: upgrade sheaf here"}, "older": {wire.Version - 1, "mend: upgrade sheaf there"}} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, "127.0.0.1:1")
			anotherVersion(t, p, wire.Hello{Min: test.version, Max: test.version, Limits: wire.DefaultLimits})
			versions := fmt.Sprintf("versions %d to %[1]d here, %[2]d to %[2]d there", wire.Version, test.version)
			doctorOn(t, p.clients, exitFailing, "FAIL peer broker answers over quic from "+p.listen+", but: ", versions, test.mend)
			_, _, stderr := started(t, p.clients)
			eventually(t, "a reason", func() bool {
				s, err := engine.NewClient(p.control).Status(t.Context())
				return err == nil && s.Peers[0].Connected && !s.Peers[0].Up && strings.Contains(s.Peers[0].Error, versions)
			})
			doctorOn(t, p.clients, exitFailing, "FAIL peer broker is connected, but: no common version: ", versions, test.mend)
			if got := sheaf(t, nil, "status", "--control", p.control); !strings.Contains(got.stdout, "connected, but: ") {
				t.Error(got.stdout)
			}
			if n := strings.Count(stderr.String(), "level=WARN"); n != 1 {
				t.Errorf("%d warnings\n%s", n, stderr)
			}
		})
	}
}
