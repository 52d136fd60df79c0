package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/engine"
	"sheaf/netstack/firsthop"
	"sheaf/netstack/link"
)

// guestsConfig writes the configuration of a gateway with a guest m1, in a folder of its
// own, and returns its path.
func guestsConfig(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "sheaf.toml")
	for _, d := range []string{"s", "ports"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	newKey(t, filepath.Join(dir, "key"))
	writeText(t, path, fmt.Sprintf(`key = "key"
listen = "127.0.0.1:0"
control = "c"
[vm] # guests
address = ["10.1.0.1/24"]
directory = "ports"

# The first.
[[vm.port]]
name = "m1" # it
at = "vhost-user:s/m1"
address = "10.1.0.11"

# The peer.
[[peer]]
name = "a"
fingerprint = %q
allowed = ["10.2.0.0/24"]
`, newKey(t, filepath.Join(dir, "other"))))
	return path
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPort changes the ports of a gateway that is running, as an ordinary user may.
func TestPort(t *testing.T) {
	config := guestsConfig(t)
	dir := filepath.Dir(config)
	_, stdout, _ := started(t, config)
	if !strings.Contains(stdout.String(), "1 guest's port in 10.1.0.0/24") {
		t.Errorf("up says %q", stdout)
	}
	port := func(args ...string) result {
		t.Helper()
		return sheaf(t, nil, append([]string{"port", "--control", filepath.Join(dir, "c")}, args...)...)
	}
	m2, m3, m4 := "vhost-user:"+filepath.Join(dir, "s/m2"), "vhost-user:"+filepath.Join(dir, "s/m3"), "vhost-user:"+filepath.Join(dir, "s/m4")
	ports := filepath.Join(dir, "ports")
	for _, test := range []struct {
		args   []string
		code   int
		stdout string // how it begins
		stderr string // part of it
	}{
		{[]string{"add", "m2", m2, "--mac", "52:54:00:00:00:02", "--address", "10.1.0.12"}, 0, "m2 is at " + m2 + "\n", ""},
		{[]string{"add", "m2", m2, "--mac", "52:54:00:00:00:02", "--address", "10.1.0.12", "--save", config}, 0, "m2 is at " + m2 + "\n", ""},
		{[]string{"add", "m3", m3, "--save", ports}, 0, "m3 is at " + m3 + "\n", ""},
		{[]string{"add", "m4", m4, "--dial", "--save", filepath.Join(dir, "none", "x")}, 2, "", "in use, but was not saved"},
		{[]string{"add", "m2", m4}, 2, "", `port "m2" is there already`},
		{[]string{"add", "m5", "bridge:x"}, 2, "", "where KIND is one of vhost-user, stream"},
		{[]string{"add", "m5", "vhost-user:"}, 2, "", "the path of the socket is missing"},
		{[]string{"add", "m5", m4, "--address", "10.1.0.12/24"}, 2, "", `--address "10.1.0.12/24": expected an address`},
		{[]string{"add", "m5"}, 2, "", "1 argument given: expected NAME KIND:PATH"},
		{[]string{"del"}, 2, "", "0 arguments given: expected NAME"},
		{[]string{"del", "m9"}, 2, "", `port "m9" is not there`},
		{[]string{"del", "m4"}, 0, "m4 is gone\n", ""},
		{[]string{"show"}, 2, "", `unknown command "show": expected list, add or del`},
		{nil, 2, "", "expected list, add or del"},
		{[]string{"list"}, 0, "  port         MAC                addresses  at", ""},
	} {
		got := port(test.args...)
		if got.code != test.code || !strings.HasPrefix(got.stdout, test.stdout) || !strings.Contains(got.stderr, test.stderr) || (test.stderr == "") != (got.stderr == "") {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	var list []engine.PortStatus
	if err := json.Unmarshal([]byte(port("list", "--json").stdout), &list); err != nil || len(list) != 3 || list[1].MAC != "52:54:00:00:00:02" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := readText(t, filepath.Join(ports, "m3.toml")); got != "at = '"+m3+"'\n" {
		t.Errorf("saved %q", got)
	}
	if got := port("del", "m3", "--save", ports); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if left, _ := os.ReadDir(ports); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	status := sheaf(t, nil, "status", "--control", filepath.Join(dir, "c")).stdout
	if !strings.Contains(status, "m2     waits  ever  10.1.0.12  52:54:00:00:00:02") {
		t.Errorf("no port in\n%s", status)
	}
}

// What --save writes to a configuration reads as meant, and all else stays; del takes the
// same lines out.
func TestSavePort(t *testing.T) {
	config := guestsConfig(t)
	before := readText(t, config)
	at := "vhost-user:/run/a b"
	p := engine.VMPort{Name: "m2", At: at, Dial: true, MAC: "52:54:00:00:00:02", Address: engine.Prefixes{{Prefix: netip.MustParsePrefix("10.1.0.12/32")}}}
	for range 2 { // the second time it is there
		if err := savePort(config, &p); err != nil {
			t.Fatal(err)
		}
	}
	added := "\n[[vm.port]]\nname = 'm2'\nat = '" + at + "'\ndial = true\nmac = '52:54:00:00:00:02'\naddress = ['10.1.0.12']\n"
	if got := readText(t, config); got != before+added {
		t.Errorf("%s", got)
	}
	other := p
	other.Dial = false
	if err := savePort(config, &other); err == nil || !strings.Contains(err.Error(), `has another [[vm.port]] "m2"`) {
		t.Error(err)
	}
	if err := forgetPort(config, "m1"); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(before, "[[vm.port]]\nname = \"m1\" # it\nat = \"vhost-user:s/m1\"\naddress = \"10.1.0.11\"\n", "", 1) + added
	if got := readText(t, config); got != want || got == before+added {
		t.Errorf("%s", got)
	}
	for _, name := range []string{"m2", "m2", "m9"} {
		if err := forgetPort(config, name); err != nil {
			t.Fatal(err)
		}
	}
	if got := readText(t, config); got != strings.TrimSuffix(want, added) {
		t.Errorf("%s", got)
	}
	inline := strings.Replace(before, "[vm] # guests\naddress = [\"10.1.0.1/24\"]\ndirectory = \"ports\"\n\n# The first.\n[[vm.port]]\nname = \"m1\" # it\nat = \"vhost-user:s/m1\"\naddress = \"10.1.0.11\"\n", "vm = { address = \"10.1.0.1/24\", port = [{ name = \"m1\", at = \"vhost-user:s/m1\" }] }\n", 1)
	writeText(t, config, inline)
	if err := savePort(config, &p); err == nil || !strings.Contains(err.Error(), "do it by hand") {
		t.Error(err)
	}
	if err := forgetPort(config, "m1"); err == nil || !strings.Contains(err.Error(), "do it by hand") {
		t.Error(err)
	}
	if got := readText(t, config); got != inline {
		t.Errorf("%s", got)
	}
	writeText(t, config, strings.Split(before, "[vm]")[0]+"[terminate]\nprefixes = [\"10.1.0.0/24\"]\n"+before[strings.Index(before, "[[peer]]"):])
	if err := savePort(config, &p); err == nil || !strings.Contains(err.Error(), "has no [vm]") {
		t.Error(err)
	}
	folder := t.TempDir()
	for range 2 {
		if err := savePort(folder, &p); err != nil {
			t.Fatal(err)
		}
	}
	if err := savePort(folder, &other); err == nil || !strings.Contains(err.Error(), "change it by hand") {
		t.Error(err)
	}
	for range 2 {
		if err := forgetPort(folder, "m2"); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// up --check looks at guests' ports as well.
func TestCheckPorts(t *testing.T) {
	config := guestsConfig(t)
	dir := filepath.Dir(config)
	check := func(code int, want string) {
		t.Helper()
		if got := sheaf(t, nil, "up", "--check", "-c", config); got.code != code || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	check(0, "is in order: 1 peer, 1 guest\n")
	writeText(t, filepath.Join(dir, "ports", "m2.toml"), "at = \"vhost-user:none/m2\"\n")
	// one of the directory keeps no gateway from starting
	check(0, `port "m2": the folder of its socket, `+filepath.Join(dir, "ports", "none")+", is not there; make it")
	writeText(t, filepath.Join(dir, "ports", "m2.toml"), "at = \"vhost-user:../s/m2\"\n")
	check(0, "is in order: 1 peer, 2 guests\n")
	writeText(t, filepath.Join(dir, "ports", "m2.toml"), "at = \"vhost-user:../s/"+strings.Repeat("m", 108)+"\"\n")
	check(0, "that of a socket has room for 107")
	writeText(t, config, strings.Replace(readText(t, config), "s/m1", "none/m1", 1))
	check(2, `port "m1": the folder of its socket, `)
}

// guestsStatus is a status with ports in each state.
func guestsStatus() *engine.Status {
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := func(name string) engine.PortStatus {
		return engine.PortStatus{Name: name, At: "vhost-user:/s/" + name, Kind: engine.KindVhostUser, From: "configuration"}
	}
	m1, m2, m3, m4 := at("m1"), at("m2"), at("m3"), at("m4")
	m1.MAC, m1.Addresses = "52:54:00:00:00:01", []netip.Addr{netip.MustParseAddr("10.1.0.11"), netip.MustParseAddr("fd01::11")}
	m1.Link = link.Status{Up: true, Since: since.Add(time.Minute), Connects: 2, Dropped: 3}
	m1.Counters = firsthop.Counters{Received: 20, Passed: 11, Sent: 1200, Group: 7, Local: 5, Spoofed: firsthop.Spoofed{ARP: 2}}
	m2.Link = link.Status{Fault: "no memory table:\nit is not shared", Since: since}
	m4.Link = link.Status{Connects: 1, Since: since}
	return &engine.Status{Since: since, Uptime: 2 * time.Minute, Guests: &engine.GuestsStatus{
		Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, Ports: []engine.PortStatus{m1, m2, m3, m4},
		Faults: []string{"m5.toml: line 1\x07"}, Spoofed: 1,
	}}
}

// Status has a row for each guest, and what is wrong with it.
func TestStatusOfGuests(t *testing.T) {
	var b bytes.Buffer
	s := guestsStatus()
	writeGuests(&b, s, s.Since.Add(s.Uptime))
	want := `  1 packet refused: from elsewhere, with an address of a guest
  guests' ports not in order: m5.toml: line 1\x07

  guest         for        addresses            MAC                from it  to it  lost  at
  m1     up     1 min 0 s  10.1.0.11, fd01::11  52:54:00:00:00:01       11  1,200     5  vhost-user:/s/m1
  m2     fault  2 min 0 s  -                    -                        0      0     0  vhost-user:/s/m2
  m3     waits  ever       -                    -                        0      0     0  vhost-user:/s/m3
  m4     waits  2 min 0 s  -                    -                        0      0     0  vhost-user:/s/m4
  m1, lost because of: no guest 3, spoofed ARP 2
  m2 was given up: no memory table:; it is not shared
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	writeGuests(&b, &engine.Status{Guests: &engine.GuestsStatus{Networks: s.Guests.Networks}}, s.Since)
	writeGuests(&b, &engine.Status{}, s.Since)
	if b.String() != "  no guest's port in 10.1.0.0/24\n" {
		t.Errorf("got %q", b.String())
	}
}

// Doctor says what keeps guests from working, and how to mend it.
func TestDoctorGuests(t *testing.T) {
	config := guestsConfig(t)
	dir := filepath.Dir(config)
	examine := func(running *engine.Status) string {
		t.Helper()
		var out bytes.Buffer
		d := &doctor{host: thisHost(), path: config, out: &out, running: running}
		d.checkConfig()
		if d.cfg == nil {
			t.Fatal(out.String())
		}
		out.Reset()
		d.checkGuests()
		return strings.Join(strings.Fields(out.String()), " ")
	}
	want := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("no %q in\n%s", part, got)
			}
		}
	}
	want(examine(nil), "ok guests the sockets of 1 port can be made")
	want(examine(&engine.Status{}), "warn guests the gateway that is running has no [vm]", "mend: restart")
	running := guestsStatus()
	idle := engine.PortStatus{Name: "m6", Kind: engine.KindVhostUser, Link: link.Status{Up: true, Connects: 1}}
	well := engine.PortStatus{Name: "m7", Kind: engine.KindVhostUser, Link: link.Status{Up: true, Connects: 1}, Counters: firsthop.Counters{Received: 1}, Addresses: running.Guests.Ports[0].Addresses}
	dials := engine.PortStatus{Name: "m8", At: "vhost-user:/s/m8", Dial: true}
	running.Guests.Ports = append(running.Guests.Ports, idle, well, dials)
	want(examine(running), "FAIL guests m5.toml: line 1", "warn guests m1: 2 packets refused: sent from addresses that are not its own",
		"FAIL guests m2: its guest was given up: no memory table", "docs/vm.md", "warn guests m3: nobody has connected to vhost-user:/s/m3", "warn guests m4: its guest has gone",
		"warn guests m6: its guest is there, and has sent nothing", "ok guests m7 is up, with 10.1.0.11, fd01::11", "warn guests m8: nobody answers at vhost-user:/s/m8")
	running.Guests.Ports = running.Guests.Ports[1:]
	want(examine(running), `warn guests the gateway that is running does not have port "m1"`)
	writeText(t, filepath.Join(dir, "s", "m1"), "")
	want(examine(nil), `FAIL guests port "m1": at `+filepath.Join(dir, "s", "m1")+" is something else than a socket mend: remove it")
	if err := os.RemoveAll(filepath.Join(dir, "ports")); err != nil {
		t.Fatal(err)
	}
	want(examine(nil), "FAIL guests directory of [vm]: open ")
	text := readText(t, config)
	writeText(t, config, strings.Replace(text[:strings.Index(text, "# The first.")], "directory = \"ports\"\n", "", 1)+text[strings.Index(text, "# The peer."):])
	want(examine(nil), "warn guests [vm] has no port")
}
