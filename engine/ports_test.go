package engine

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sheaf/netstack/link"
)

// A hypervisor is a gateway with guests whose peer never calls, and its folders.
type hypervisor struct {
	*site
	control, sockets, directory string
	text                        string // of its configuration
	log                         record
}

// startHypervisor starts one with a [[vm.port]] "m1", an empty directory of ports, and
// further tables.
func startHypervisor(t *testing.T, tables string) *hypervisor {
	t.Helper()
	dir := t.TempDir()
	h := &hypervisor{control: filepath.Join(dir, "c"), sockets: filepath.Join(dir, "s"), directory: filepath.Join(dir, "ports")}
	for _, d := range []string{h.sockets, h.directory} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	newKey(t, filepath.Join(dir, "key"))
	h.text = fmt.Sprintf(`key = %q
listen = "127.0.0.1:0"
control = %q
metrics = "127.0.0.1:0"
[[peer]]
name = "a"
fingerprint = %q
allowed = ["10.2.0.0/24"]
[vm]
address = ["10.1.0.1/24", "fd01::1/64"]
directory = %q
[[vm.port]]
name = "m1"
at = %q
address = ["10.1.0.11", "fd01::11"]
`, filepath.Join(dir, "key"), h.control, newKey(t, filepath.Join(dir, "a")), h.directory, h.at("m1")) + tables
	h.site = startWith(t, h.text, h.log.log(), func(g *Gateway) {
		if g.guests.ports.files != nil {
			g.guests.ports.files.every = time.Hour // look does
		}
	})
	return h
}

// at is where a port of this name is.
func (h *hypervisor) at(name string) string { return "vhost-user:" + h.socket(name) }

func (h *hypervisor) socket(name string) string { return filepath.Join(h.sockets, name) }

// has tells whether a port's socket is there.
func (h *hypervisor) has(name string) bool {
	info, err := os.Lstat(h.socket(name))
	return err == nil && info.Mode()&fs.ModeSocket != 0
}

// listed returns the ports as text.
func (h *hypervisor) ports(t *testing.T) string {
	t.Helper()
	all, err := NewClient(h.control).Ports(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for i := range all {
		text = append(text, all[i].Name+" "+all[i].From)
	}
	return strings.Join(text, ", ")
}

// write writes a file of the directory.
func (h *hypervisor) write(t *testing.T, name, text string) {
	t.Helper()
	temporary := filepath.Join(h.directory, ".new")
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temporary, filepath.Join(h.directory, name)); err != nil {
		t.Fatal(err)
	}
}

// look has the gateway look at its directory now.
func (h *hypervisor) look() { h.g.guests.ports.lookAtFiles() }

// Ports come and go by the control socket, with their sockets; an ordinary user's gateway
// needs nothing else.
func TestPortsByCommand(t *testing.T) {
	h := startHypervisor(t, "")
	c, ctx := NewClient(h.control), t.Context()
	if info, err := os.Stat(h.socket("m1")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v", info, err)
	}
	m2 := VMPort{Name: "m2", At: h.at("m2"), MAC: "52:54:00:00:00:02", Address: Prefixes{{netip.MustParsePrefix("10.1.0.12/32")}}}
	if err := c.AddPort(ctx, m2); err != nil || !h.has("m2") {
		t.Fatalf("%v, socket %v", err, h.has("m2"))
	}
	if err := c.AddPort(ctx, m2); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if got := h.ports(t); got != "m1 configuration, m2 command" {
		t.Errorf("ports %s", got)
	}
	resp, err := http.Get("http://" + h.g.scrape.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	metrics, _ := io.ReadAll(resp.Body)
	for _, want := range []string{
		`sheaf_port_up{port="m2"} 0`, `sheaf_port_frames_total{direction="received",port="m1"} 0`, `sheaf_port_lost_total{port="m2",reason="spoofed ARP"} 0`,
		"sheaf_port_faults 0", "sheaf_guest_spoofed_packets_total 0",
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no %s in the metrics:\n%s", want, metrics)
		}
	}
	for _, bad := range []struct {
		p    VMPort
		want string
	}{
		{VMPort{Name: "m2", At: h.at("m3")}, `port "m2" is there already, at ` + m2.At + "; remove it first"},
		{VMPort{Name: "m3", At: h.at("m2")}, `port "m3": at = "` + m2.At + `": the socket is already that of port "m2"`},
		{VMPort{Name: "m3", At: h.at("m3"), MAC: "52-54-00-00-00-02"}, `is already that of port "m2"`},
		{VMPort{Name: "m3", At: h.at("m3"), Address: m2.Address}, `address 10.1.0.12 is already that of port "m2"`},
		{VMPort{Name: "m3", At: h.at("m3"), Address: Prefixes{{netip.MustParsePrefix("10.3.0.12/32")}}}, "is in no network of [vm]"},
		{VMPort{Name: "../m3", At: h.at("m3")}, "expected letters, digits"},
		{VMPort{Name: "m3", At: h.at("none/m3")}, `port "m3": `},
	} {
		if err := c.AddPort(ctx, bad.p); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: error %v, expected %q", bad.p, err, bad.want)
		}
	}
	if err := c.DelPort(ctx, "m2"); err != nil || h.has("m2") {
		t.Errorf("%v, socket %v", err, h.has("m2"))
	}
	if err := c.DelPort(ctx, "m2"); err == nil || !strings.Contains(err.Error(), `port "m2" is not there`) {
		t.Errorf("twice: %v", err)
	}
	// what a port that failed had taken is free
	if err := c.AddPort(ctx, VMPort{Name: "m3", At: h.at("m2"), MAC: m2.MAC, Address: m2.Address}); err != nil {
		t.Error(err)
	}
	if err := c.DelPort(ctx, "m1"); err != nil || h.has("m1") {
		t.Errorf("one of the configuration: %v", err)
	}
	h.stop()
	if left, _ := os.ReadDir(h.sockets); len(left) != 0 {
		t.Errorf("sockets are left: %v", left)
	}
}

// A gateway without [vm] says so.
func TestPortsWithoutGuests(t *testing.T) {
	_, socket := lone(t)
	c := NewClient(socket)
	_, err := c.Ports(t.Context())
	for _, err := range []error{err, c.AddPort(t.Context(), VMPort{Name: "m"}), c.DelPort(t.Context(), "m")} {
		if err == nil || !strings.Contains(err.Error(), "has no [vm]") {
			t.Error(err)
		}
	}
}

// SIGHUP makes the ports those of the configuration and the directory; those that stay are
// not touched.
func TestPortsReload(t *testing.T) {
	h := startHypervisor(t, "")
	h.write(t, "m2.toml", fmt.Sprintf("at = %q\n", h.at("m2")))
	h.look()
	for _, name := range []string{"m3", "m4"} {
		if err := h.g.AddPort(VMPort{Name: name, At: h.at(name)}); err != nil {
			t.Fatal(err)
		}
	}
	before := h.g.guests.ports.plugged
	ends := map[string]end{"m1": before["m1"].end, "m3": before["m3"].end}
	if err := h.g.DelPort("m2"); err != nil {
		t.Fatal(err)
	}
	h.look()
	if h.has("m2") {
		t.Error("a port that was removed by command came back by itself")
	}
	cfg, err := ParseConfig([]byte(h.text + fmt.Sprintf("[[vm.port]]\nname = \"m3\"\nat = %q\n[[vm.port]]\nname = \"m5\"\nat = %q\n", h.at("m3"), h.at("m4"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.g.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if got := h.ports(t); got != "m1 configuration, m2 directory, m3 configuration, m5 configuration" {
		t.Errorf("ports %s", got)
	}
	for name, e := range ends {
		if h.g.guests.ports.plugged[name].end != e {
			t.Errorf("%s was plugged in anew", name)
		}
	}
	if cfg, err = ParseConfig([]byte(strings.Replace(h.text, `"10.1.0.11", "fd01::11"`, `"10.1.0.21"`, 1))); err != nil {
		t.Fatal(err)
	}
	if err := h.g.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	if got := h.ports(t); got != "m1 configuration, m2 directory" || h.g.guests.ports.plugged["m1"].end == ends["m1"] {
		t.Errorf("ports %s", got)
	}
	without := *cfg
	without.VM = nil
	if err := h.g.Reload(&without); err == nil || !strings.Contains(err.Error(), "[vm] is new, or gone") {
		t.Error(err)
	}
}

// A change of a port that cannot be made leaves what was there.
func TestPortChangeInVain(t *testing.T) {
	h := startHypervisor(t, "")
	h.write(t, "m2.toml", fmt.Sprintf("at = %q\n", h.at("m2")))
	h.look()
	h.write(t, "m2.toml", fmt.Sprintf("at = %q\n", h.at("none/m2")))
	h.look()
	h.look()
	if f := h.g.Status().Guests.Faults; len(f) != 1 || !h.has("m2") || h.ports(t) != "m1 configuration, m2 directory" {
		t.Errorf("faults %q, ports %s", f, h.ports(t))
	}
}

// A [[vm.port]] that cannot be opened keeps the gateway from starting, and what was opened
// before it is taken back.
func TestPortKeepsGatewayFromStarting(t *testing.T) {
	h := startHypervisor(t, "")
	h.stop()
	cfg, err := ParseConfig([]byte(h.text + fmt.Sprintf("[[vm.port]]\nname = \"m9\"\nat = %q\n", h.at("none/m9"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), `port "m9"`) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(h.sockets); len(left) != 0 {
		t.Errorf("sockets are left: %v", left)
	}
}

// Counters go on when a port comes back, and names that are gone are forgotten in the order
// in which they went.
func TestPortTotals(t *testing.T) {
	of := func(s link.Status) endStatus { return endStatus{Status: s} }
	c := newTotals()
	c.keep("m1", of(link.Status{Connects: 1, Received: 2, Sent: 3, Dropped: 4, Invalid: 5, Up: true}))
	if got := c.with("m1", of(link.Status{Connects: 1, Received: 1})); got.Connects != 2 || got.Received != 3 || got.Sent != 3 || got.Dropped != 4 || got.Invalid != 5 || got.Up {
		t.Errorf("%+v", got)
	}
	for i := range maxTotals - 1 {
		c.keep(fmt.Sprint(i), of(link.Status{Received: 1}))
	}
	c.keep("m1", of(link.Status{Received: 1}))
	if c.with("m1", of(link.Status{})).Received != 3 || c.with("0", of(link.Status{})).Received != 1 {
		t.Error("forgotten while there is room")
	}
	c.keep("one more", of(link.Status{Received: 1}))
	if c.with("m1", of(link.Status{})).Received != 3 || c.with("0", of(link.Status{})).Received != 0 || len(c.of) != maxTotals || len(c.order) != maxTotals {
		t.Errorf("%d names", len(c.of))
	}
}

// What keeps ports from being opened is found beforehand.
func TestInspectPorts(t *testing.T) {
	h := startHypervisor(t, "")
	h.stop()
	h.write(t, "m2.toml", fmt.Sprintf("at = %q\n", h.at("none/m2")))
	h.write(t, "m3.toml", "at = \"\"\n")
	h.write(t, "m4.toml", fmt.Sprintf("at = %q\ndial = true\n", h.at("none/m4")))
	h.write(t, "m5.toml", fmt.Sprintf("at = %q\n", h.at("m5")))
	if err := os.WriteFile(h.socket("m5"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := ParseConfig([]byte(h.text))
	if err != nil {
		t.Fatal(err)
	}
	ports, faults := InspectPorts(cfg)
	var names, texts []string
	for _, p := range ports {
		names = append(names, p.Name)
	}
	for _, f := range faults {
		texts = append(texts, f.Error())
	}
	if !slices.Equal(names, []string{"m1", "m2", "m4", "m5"}) {
		t.Errorf("ports %q", names)
	}
	for i, want := range []string{"m3.toml: at is missing", `port "m2": the folder of its socket`, `port "m5": at ` + h.socket("m5") + " is something else than a socket; remove it"} {
		if i >= len(texts) || !strings.Contains(texts[i], want) {
			t.Errorf("faults %q, expected %q", texts, want)
		}
	}
	if os.Getuid() == 0 { // may write anywhere
		return
	}
	if err := os.Chmod(h.sockets, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, faults := InspectPorts(cfg); len(faults) == 0 || !strings.Contains(faults[0].Error(), "cannot be made") {
		t.Errorf("%v", faults)
	}
}
