package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Guests of a capture are named, whether a list of ports or a configuration has their
// addresses, and their sums fit with those of the capture.
func TestReplayGuests(t *testing.T) {
	capture := captured("telemetry-40.pcap.gz")
	dir := t.TempDir()
	list := filepath.Join(dir, "ports.json")
	text := `[{"name":"meter-1","addresses":["10.1.1.1","fd00::1"]},{"name":"meter-2","addresses":["10.1.1.2"]},{"name":"elsewhere","addresses":["10.9.0.1"]}]`
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, got := replayJSON(t, "--guests", list, capture)
	if got.code != exitOK || len(objects) != 1 {
		t.Fatalf("%+v", got)
	}
	guests, _ := objects[0]["guests"].([]any)
	if len(guests) != 2 {
		t.Fatalf("guests %v", guests)
	}
	for _, g := range guests {
		o := g.(object)
		if o["packets"].(float64) == 0 || o["together"].(float64) == 0 || o["bytes_wire"].(float64) <= o["bytes_frames"].(float64) || o["bytes_frames"].(float64) >= o["bytes_in"].(float64) {
			t.Errorf("%v", o)
		}
	}
	all, _ := replayJSON(t, capture)
	if _, there := all[0]["guests"]; there || all[0]["bytes_wire"] != objects[0]["bytes_wire"] {
		t.Errorf("without names: guests %v, on the link %v for %v", all[0]["guests"], all[0]["bytes_wire"], objects[0]["bytes_wire"])
	}
	table := sheaf(t, nil, "replay", "--guests", list, capture).stdout
	if !strings.Contains(table, "by guest") || !strings.Contains(table, "meter-2") || strings.Contains(table, "elsewhere") {
		t.Errorf("no guests in\n%s", table)
	}
}

// A configuration names the guests that have addresses in it, and those of its directory.
func TestReplayGuestsOfConfiguration(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sheaf.toml")
	config := "key = \"key\"\n[[peer]]\nname = \"a\"\nendpoint = \"192.0.2.1:4747\"\nfingerprint = \"" + newKey(t, filepath.Join(dir, "key")) + "\"\nallowed = [\"10.2.0.0/24\"]\n" +
		"[vm]\naddress = \"10.1.1.254/24\"\ndirectory = \"ports\"\n[[vm.port]]\nname = \"meter-1\"\nat = \"stream:1\"\naddress = \"10.1.1.1\"\n"
	for name, text := range map[string]string{path: config, filepath.Join(dir, "ports", "meter-2.toml"): "at = \"stream:2\"\naddress = \"10.1.1.2\"\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, got := replayJSON(t, "--guests", path, captured("telemetry-40.pcap.gz"))
	if got.code != exitOK || len(objects) != 1 || len(objects[0]["guests"].([]any)) != 2 {
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(config, "address = \"10.1.1.1\"\n", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "ports", "meter-2.toml")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		path:                           "no guest in it has an address",
		filepath.Join(dir, "none"):     "no such file",
		filepath.Join("..", "main.go"): "",
	} {
		got := sheaf(t, nil, "replay", "--guests", name, captured("telemetry-40.pcap.gz"))
		if got.code != exitUnusable || !strings.Contains(got.stderr, "--guests") || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
