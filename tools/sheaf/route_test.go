package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/engine"
)

// TestRoute changes the routes of a gateway that is running.
func TestRoute(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	p.run(t)
	route := func(args ...string) result {
		t.Helper()
		return sheaf(t, nil, append([]string{"route", "--control", p.control}, args...)...)
	}
	saved := edited(t, p.clients)
	const heading = "subnet         behind\n"
	for _, test := range []struct {
		args   []string
		code   int
		stdout string
		stderr string // part of it
	}{
		{[]string{"list"}, 0, "subnet       behind\n10.2.0.0/24  broker\n", ""},
		{[]string{"add", "10.3.0.0/16", "broker"}, 0, "10.3.0.0/16 is behind broker\n", ""},
		{[]string{"add", "10.3.0.0/16", "broker"}, 0, "10.3.0.0/16 is behind broker\n", ""},
		{[]string{"add", "10.200.0.1", "broker", "--save", saved}, 0, "10.200.0.1/32 is behind broker\n", ""},
		{[]string{"list"}, 0, heading + "10.2.0.0/24    broker\n10.3.0.0/16    broker\n10.200.0.1/32  broker\n", ""},
		{[]string{"del", "10.3.0.0/16", "clients"}, 2, "", "10.3.0.0/16 is behind broker, not behind clients"},
		{[]string{"del", "10.3.0.0/16"}, 0, "10.3.0.0/16 is no longer behind broker\n", ""},
		{[]string{"del", "10.3.0.0/16"}, 2, "", `10.3.0.0/16 is no route; see "sheaf route list"`},
		{[]string{"del", "10.2.0.0/24", "broker"}, 0, "10.2.0.0/24 is no longer behind broker\n", ""},
		{[]string{"add", "10.4.0.0/16", "nobody"}, 2, "", `no peer "nobody"; there are broker`},
		{[]string{"add", "10.4.0.1/16", "broker"}, 2, "", "did you mean 10.4.0.0/16?"},
		{[]string{"add", "10.4.0.0", "broker", "--save", filepath.Join(filepath.Dir(saved), "none")}, 2, "", "in use, but was not saved"},
		{[]string{"add", "ten", "broker"}, 2, "", `"ten" is no subnet like 10.2.0.0/24`},
		{[]string{"add", "10.4.0.0/16"}, 2, "", "1 argument given: expected SUBNET PEER"},
		{[]string{"del"}, 2, "", "0 arguments given: expected SUBNET [PEER]"},
		{[]string{"list", "x"}, 2, "", "x"},
		{[]string{"show"}, 2, "", `unknown command "show": expected list, add or del`},
		{nil, 2, "", "expected list, add or del"},
	} {
		got := route(test.args...)
		if got.code != test.code || got.stdout != test.stdout || !strings.Contains(got.stderr, test.stderr) || (test.stderr == "") != (got.stderr == "") {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
	var routes []engine.Route
	if err := json.Unmarshal([]byte(route("list", "--json").stdout), &routes); err != nil || len(routes) != 2 || routes[1].Peer != "broker" {
		t.Errorf("%v, %v", routes, err)
	}
	before, _ := os.ReadFile(saved)
	if got := route("add", "10.6.0.0/16", "broker", "--save", saved); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if got := route("del", "10.6.0.0/16", "--save", saved); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if after, _ := os.ReadFile(saved); string(after) != string(before) {
		t.Errorf("added and removed:\n%s", after)
	}
	b, err := os.ReadFile(saved)
	if err != nil || !strings.Contains(string(b), `"10.200.0.1/32"`) || !strings.Contains(string(b), "# the servers") {
		t.Errorf("%v\n%s", err, b)
	}
	if got := sheaf(t, nil, "__complete", "route", "--control", p.control, "add", "10.0.0.0/8", ""); !strings.HasPrefix(got.stdout, "broker\n") {
		t.Errorf("completion %+v", got)
	}
}

func TestRouteWithoutGateway(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.sock")
	for _, args := range [][]string{{"route", "list"}, {"route", "add", "10.0.0.0/8", "a"}, {"route", "del", "10.0.0.0/8"}, {"status"}, {"status", "--watch"}} {
		got := sheaf(t, nil, append(args, "--control", none)...)
		if got.code != exitUnusable || got.stdout != "" || !strings.Contains(got.stderr, "no gateway is running at "+none) || !strings.Contains(got.stderr, "--control PATH") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// TestCompletion holds that the shells' completions are there to be found.
func TestCompletion(t *testing.T) {
	if got := sheaf(t, nil, "--help"); !strings.Contains(got.stdout, "  completion ") {
		t.Errorf("%+v", got)
	}
	for shell, want := range map[string]string{"bash": "complete -o default", "zsh": "#compdef sheaf", "fish": "complete -c sheaf"} {
		got := sheaf(t, nil, "completion", shell)
		if got.code != exitOK || !strings.Contains(got.stdout, want) || got.stderr != "" {
			t.Errorf("%s: exit code %d, stderr %q", shell, got.code, got.stderr)
		}
	}
}
