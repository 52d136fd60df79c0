package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sheaf/engine"
)

var program struct {
	once sync.Once
	path string
	err  error
}

// sheaf returns the path of the program, built once for all tests.
func sheaf(t *testing.T) string {
	t.Helper()
	program.once.Do(func() {
		if program.path = os.Getenv("E2E_SHEAF"); program.path != "" {
			return
		}
		dir, err := os.MkdirTemp("", namespaces+"bin")
		if err != nil {
			program.err = err
			return
		}
		if program.err = os.Chmod(dir, 0o755); program.err != nil { // for a gateway that is not root
			return
		}
		program.path = filepath.Join(dir, "sheaf")
		if out, err := exec.Command("go", "build", "-o", program.path, "sheaf/tools/sheaf").CombinedOutput(); err != nil {
			program.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return program.path
}

// removeProgram removes what sheaf built.
func removeProgram() {
	if program.path != "" && os.Getenv("E2E_SHEAF") == "" {
		os.RemoveAll(filepath.Dir(program.path))
	}
}

// A gateway is the program on a site's gateway.
type gateway struct {
	site        *site
	config      string // path
	control     string // path
	fingerprint string
	nobody      bool // it runs without root, and owns its files
	*process
}

// tunnelOptions are what tests vary in the configuration.
type tunnelOptions struct {
	outside6 bool   // the gateways call one another over IPv6
	offload  bool   // of the TUN devices
	top      string // further lines for the top of each file
	mtu      int
	fallback string           // of the packets while no gateway runs
	subnets  bool             // allowed has what lies behind the gateways, and not themselves
	endpoint string           // that the others call, if not the broker's gateway by its address
	tables   map[*site]string // further tables of a gateway's file
	ports    map[*site]string // what a gateway's file has in place of [tun]
}

// tunnel starts the program on every gateway: the broker's listens, the others
// call it. It returns when all lanes are up.
func (l *lab) tunnel(o tunnelOptions) []*gateway {
	l.t.Helper()
	gateways := l.configure(o)
	for _, g := range gateways {
		g.start()
	}
	l.waitUp(gateways...)
	return gateways
}

// configure makes keys and configuration files, in the order of the sites.
func (l *lab) configure(o tunnelOptions) []*gateway {
	l.t.Helper()
	var all []*gateway
	for _, s := range l.sites {
		g := &gateway{site: s, config: filepath.Join(l.dir, s.gw.name+".toml"), control: filepath.Join(l.dir, s.gw.name+".sock")}
		out, err := exec.Command(sheaf(l.t), "keygen", filepath.Join(l.dir, s.gw.name+".key")).Output()
		if err != nil {
			l.t.Fatalf("keygen: %v", err)
		}
		g.fingerprint = strings.TrimSpace(string(out))
		all = append(all, g)
	}
	broker := all[1]
	for i, g := range all {
		b := &strings.Builder{}
		s := g.site
		fmt.Fprintf(b, "key = %q\ncontrol = %q\nlog = \"debug\"\n%s\n", s.gw.name+".key", g.control, o.top)
		if g == broker {
			fmt.Fprintln(b, `listen = ":4747"`)
		}
		if ports, ok := o.ports[s]; ok {
			b.WriteString(ports)
		} else {
			o.device(b, s)
		}
		for j, p := range all {
			if i == j || g != broker && p != broker {
				continue
			}
			fmt.Fprintf(b, "[[peer]]\nname = %q\nfingerprint = %q\n", p.site.gw.name, p.fingerprint)
			if o.subnets {
				fmt.Fprintf(b, "allowed = [%q, %q]\n", p.site.net4, p.site.net6)
			} else {
				fmt.Fprintf(b, "allowed = [%q, %q, \"%s/32\", \"%s/128\"]\n", p.site.net4, p.site.net6, p.site.own4, p.site.own6)
			}
			if p == broker {
				outside := p.site.wan4.String()
				if o.outside6 {
					outside = "[" + p.site.wan6.String() + "]"
				}
				fmt.Fprintf(b, "endpoint = %q\n", cmp.Or(o.endpoint, outside+":4747"))
			}
		}
		b.WriteString(o.tables[s])
		if err := os.WriteFile(g.config, []byte(b.String()), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	return all
}

// device writes the [tun] table of a site's gateway.
func (o *tunnelOptions) device(b *strings.Builder, s *site) {
	fmt.Fprintf(b, "[tun]\nname = \"sheaf0\"\naddress = [\"%s/24\", \"%s/64\"]\noffload = %v\n", s.own4, s.own6, o.offload)
	if o.fallback != "" {
		fmt.Fprintf(b, "fallback = %q\n", o.fallback)
	}
	if o.mtu > 0 {
		fmt.Fprintf(b, "mtu = %d\n", o.mtu)
	}
}

// start runs the program.
func (g *gateway) start() {
	t := g.site.gw.lab.t
	t.Helper()
	up := []string{sheaf(t), "up", "-c", g.config}
	if g.nobody {
		up = append(asNobody, up...)
	}
	g.process = launch(t, "sheaf on "+g.site.gw.name, g.site.gw.command(up[0], up[1:]...))
}

// nobody is the user, and the group, that Debian has for what owns nothing.
const nobody = 65534

// asNobody runs a program as that user, without any privilege; that it is killed with the
// test's process has to be said anew, since a change of the user ends it (prctl(2)).
var asNobody = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--pdeathsig=KILL"}

// kill ends the program without giving it a chance to tidy up.
func (g *gateway) kill() { g.end(syscall.SIGKILL) }

// terminate asks the program to end, as a service manager does.
func (g *gateway) terminate() {
	g.t.Helper()
	g.end(syscall.SIGTERM)
	if g.err != nil {
		g.t.Errorf("%s after SIGTERM: %v", g.name, g.err)
	}
}

// status asks the running program.
func (g *gateway) status() (engine.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return engine.NewClient(g.control).Status(ctx)
}

// mustStatus is status for a gateway that has to answer.
func (g *gateway) mustStatus() engine.Status {
	g.t.Helper()
	s, err := g.status()
	if err != nil {
		g.t.Fatalf("%s: %v", g.name, err)
	}
	return s
}

// waitUp waits until every lane of the gateways is up.
func (l *lab) waitUp(gateways ...*gateway) {
	l.t.Helper()
	eventually(l.t, 20*time.Second, func() string {
		for _, g := range gateways {
			if !g.running() {
				return g.name + " has ended"
			}
			s, err := g.status()
			if err != nil {
				return err.Error()
			}
			for _, p := range s.Peers {
				for _, lane := range p.Lanes {
					if !lane.Up {
						return fmt.Sprintf("%s: lane %s to %s is down: %s", g.name, lane.Class, p.Name, p.Error)
					}
				}
			}
		}
		return ""
	})
}

// wantNothingLost fails the test if a gateway dropped or refused anything.
func wantNothingLost(t *testing.T, gateways ...*gateway) {
	t.Helper()
	for _, g := range gateways {
		s := g.mustStatus()
		for _, p := range s.Peers {
			if p.Refused > 0 {
				t.Errorf("%s: %d packets from %s refused", g.name, p.Refused, p.Name)
			}
			for _, lane := range p.Lanes {
				if lane.Dropped > 0 || lane.Epochs != 1 {
					t.Errorf("%s: lane %s to %s: %d dropped, %d epochs (%s)", g.name, lane.Class, p.Name, lane.Dropped, lane.Epochs, lane.Ended)
				}
			}
		}
	}
}
