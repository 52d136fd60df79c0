package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	format "sheaf/engine/wire"
	"sheaf/tunnel"
)

// A stranger is a gateway of another version of the wire: the tunnel is today's,
// what its Hello says is not.
type stranger struct {
	Key, Peer string // a path; a fingerprint
	Listen    string // or
	Endpoint  string
	Version   uint8
}

// beStrange says its Hello on every lane, and declines it, as a gateway of that version
// does.
func beStrange(a stranger) (any, error) {
	key, err := tunnel.LoadKey(a.Key)
	if err != nil {
		return nil, err
	}
	peer, err := tunnel.ParseFingerprint(a.Peer)
	if err != nil {
		return nil, err
	}
	t, err := tunnel.New(tunnel.Config{Key: key, Listen: a.Listen, Peers: []tunnel.PeerConfig{{Name: "peer", Fingerprint: peer, Endpoint: a.Endpoint}}})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	for class := range tunnel.NumClasses {
		all.Go(func() {
			for {
				l, err := t.Peer("peer").Lane(ctx, class)
				if err != nil {
					return
				}
				_, _ = l.Write(format.AppendHello(nil, format.Hello{Min: a.Version, Max: a.Version, Limits: format.DefaultLimits}))
				_ = l.SetReadDeadline(time.Now().Add(time.Second))
				_, _ = l.Read(make([]byte, format.HelloLen))
				_ = l.Decline(nil)
			}
		})
	}
	sayReady()
	untilTold()
	cancel()
	return nil, nil
}

// A peer of another version: hosts are told that there is no way, and the operator
// by the log, status and doctor which end is to be upgraded. Once it is, all is
// well.
func TestVersions(t *testing.T) {
	for _, test := range []struct {
		strange int // which of the two
		version uint8
		mend    string
	}{{1, format.Version + 1, "upgrade sheaf here"}, {0, format.Version - 1, "upgrade sheaf there"}} {
		t.Run(fmt.Sprintf("version %d at gateway %d", test.version, 1+test.strange), func(t *testing.T) {
			l := newLab(t, 2)
			gateways := l.configure(tunnelOptions{offload: true})
			g, other := gateways[1-test.strange], gateways[test.strange]
			s := stranger{Key: filepath.Join(l.dir, other.site.gw.name+".key"), Peer: g.fingerprint, Version: test.version}
			if test.strange == 1 {
				s.Listen = ":4747"
			} else {
				s.Endpoint = g.site.wan4.String() + ":4747"
			}
			h := other.site.gw.help("stranger", s)
			g.start()
			versions := fmt.Sprintf("versions %d to %[1]d here, %[2]d to %[2]d there", format.Version, test.version)
			eventually(t, 10*time.Second, func() string {
				st, err := g.status()
				if err != nil {
					return err.Error()
				}
				p := st.Peers[0]
				return missingUnless(p.Connected && !p.Up && strings.Contains(p.Error, versions), fmt.Sprintf("not told of the versions, but %+v", p))
			})
			eventually(t, 10*time.Second, func() string {
				out, _ := g.site.lan.try("ping", "-c", "1", "-W", "1", other.site.host4.String())
				return missingUnless(strings.Contains(strings.ToLower(out), "unreachable"), out)
			})
			out, err := g.sheaf("doctor", "-c", g.config)
			if err == nil || !strings.Contains(out, versions) || !strings.Contains(out, test.mend) {
				t.Errorf("doctor: %v\n%s", err, out)
			}
			if log := g.log.String(); strings.Count(log, "level=WARN") != 1 || !strings.Contains(log, versions) {
				t.Errorf("not told once, but\n%s", log)
			}
			h.finish(nil)
			other.start()
			l.waitUp(gateways...)
			g.site.lan.ping(true, other.site.host4.String())
			if out, err := g.sheaf("doctor", "-c", g.config); err != nil {
				t.Errorf("doctor after the upgrade: %v\n%s", err, out)
			}
		})
	}
}
