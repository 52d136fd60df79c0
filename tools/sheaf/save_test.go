package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/engine"
	"sheaf/tunnel"
)

// savable is a configuration with two peers, of which the second has this allowed.
func savable(t interface{ Fatal(...any) }, allowed string) string {
	var prints [2]string
	for i := range prints {
		key, err := tunnel.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		prints[i] = key.Fingerprint().String()
	}
	return fmt.Sprintf(`# mine
key = "/etc/sheaf/key"
listen = ":4747"
[tun]
address = "10.99.0.1/24" # allowed = ["10.66.0.0/16"]
[[peer]]
name = "depot"
fingerprint = %q
allowed = ["10.66.0.0/16"]
[[peer]] # allowed = ["10.67.0.0/16"]
name = "plant-7"
fingerprint = %q
%s
[queue]
bytes = 5
`, prints[0], prints[1], allowed)
}

func TestSaveRoute(t *testing.T) {
	text := savable(t, "# the plant\nallowed = [ # both\n  \"10.1.0.0/16\", \"10.5.0.1\"]")
	path := filepath.Join(t.TempDir(), "sheaf.toml")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	r := engine.Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Peer: "plant-7"}
	for range 2 { // the second time it is there already
		if err := saveRoute(path, r); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := os.ReadFile(path)
	if want := strings.Replace(text, `"10.5.0.1"`, `"10.5.0.1", "10.9.0.0/16"`, 1); string(b) != want {
		t.Errorf("written:\n%s\nexpected:\n%s", b, want)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	for range 2 {
		if err := forgetRoute(path, r); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ = os.ReadFile(path); string(b) != text {
		t.Errorf("written:\n%s\nexpected:\n%s", b, text)
	}
	if err := forgetRoute(path, engine.Route{Prefix: netip.MustParsePrefix("10.1.0.0/16"), Peer: "plant-7"}); err != nil {
		t.Error(err)
	}
	err := forgetRoute(path, engine.Route{Prefix: netip.MustParsePrefix("10.5.0.1/32"), Peer: "plant-7"})
	if err == nil || !strings.Contains(err.Error(), `nothing else lies behind [[peer]] "plant-7"`) {
		t.Errorf("without its last: %v", err)
	}
	if err := saveRoute(path, engine.Route{Prefix: r.Prefix, Peer: "nobody"}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("unknown peer: %v", err)
	}
}

// What allowed is with 10.9.0.0/16, and without it.
func TestEditAllowed(t *testing.T) {
	added := netip.MustParsePrefix("10.9.0.0/16")
	for _, tt := range []struct {
		name, before string
		want         bool
		after        string
	}{
		{"behind the last", `allowed = ["10.1.0.0/16"]`, true, `allowed = ["10.1.0.0/16", "10.9.0.0/16"]`},
		{"before its comma", `allowed = ["10.1.0.0/16",]`, true, `allowed = ["10.1.0.0/16", "10.9.0.0/16",]`},
		{"among blanks and other quotes", `allowed  =  [ '10.1.0.0/16' ] # one`, true, `allowed  =  [ '10.1.0.0/16', "10.9.0.0/16" ] # one`},
		{"before the last's comment", "allowed = [\n  \"10.1.0.0/16\", # the plant, and [not] \"10.8.0.0/16\"\n]", true, "allowed = [\n  \"10.1.0.0/16\", \"10.9.0.0/16\", # the plant, and [not] \"10.8.0.0/16\"\n]"},
		{"to one without brackets", `allowed = "10.1.0.0/16" # one`, true, `allowed = ["10.1.0.0/16", "10.9.0.0/16"] # one`},
		{"to a quoted key", `"allowed" = ["""10.1.0.0/16"""]`, true, `"allowed" = ["""10.1.0.0/16""", "10.9.0.0/16"]`},
		{"to a string with a bracket in it before", "endpoint = \"[::1]:4747\"\nallowed = ['10.1.0.0/16']", true, "endpoint = \"[::1]:4747\"\nallowed = ['10.1.0.0/16', \"10.9.0.0/16\"]"},
		{"from the middle", `allowed = ["10.1.0.0/16", "10.9.0.0/16", "10.2.0.0/16"]`, false, `allowed = ["10.1.0.0/16", "10.2.0.0/16"]`},
		{"from the beginning", `allowed = ["10.9.0.0/16" , "10.2.0.0/16"]`, false, `allowed = ["10.2.0.0/16"]`},
		{"from the end", `allowed = ["10.1.0.0/16", "10.9.0.0/16"]`, false, `allowed = ["10.1.0.0/16"]`},
		{"from the end with a comma", `allowed = ["10.1.0.0/16", "10.9.0.0/16",]`, false, `allowed = ["10.1.0.0/16",]`},
		{"from a line of its own", "allowed = [\n  \"10.1.0.0/16\",\n  \"10.9.0.0/16\",\n]", false, "allowed = [\n  \"10.1.0.0/16\",\n]"},
		{"from before a comment and its comma", "allowed = [\n  \"10.9.0.0/16\" # the depot, \"too\"\n  , \"10.1.0.0/16\"]", false, "allowed = [\n  # the depot, \"too\"\n  \"10.1.0.0/16\"]"},
		{"from behind a comment", "allowed = [\n  \"10.1.0.0/16\", # the plant\n  \"10.9.0.0/16\" # the depot\n]", false, "allowed = [\n  \"10.1.0.0/16\", # the plant\n   # the depot\n]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := savable(t, tt.before)
			got, ok := editAllowed(text, 1, added, tt.want)
			if want := strings.Replace(text, tt.before, tt.after, 1); !ok || got != want {
				t.Fatalf("%v:\n%s\nexpected:\n%s", ok, got, want)
			}
			cfg, err := engine.ParseConfig([]byte(got))
			if err != nil || slices.Contains(cfg.Peers[1].Allowed, engine.Prefix{Prefix: added}) != tt.want {
				t.Errorf("reads as %+v, %v", cfg, err)
			}
		})
	}
}

// Peers may be inline tables, too; where there is no allowed, nothing is found.
func TestFindAllowed(t *testing.T) {
	for _, tt := range []struct {
		text string
		peer int
		want string // the items, with their quotes
		ok   bool
	}{
		{`peer = [{name = "a", allowed = ["1"]}, {name = "b", allowed = ["2", '3']}]`, 1, `["2" '3']`, true},
		{`peer = [{name = "a", allowed = ["1"]}]`, 1, "[]", false},
		{"[[peer]]\nname = \"a\"\n[tun]\nallowed = [\"1\"]", 0, "[]", false},
		{"[[peer]]\n[[other]]\nallowed = [\"1\"]\n[[peer]]\nallowed = [\"2\"]", 1, `["2"]`, true},
		{"[[peer.peer]]\nallowed = [\"1\"]\n[[peer]]\nallowed = [\"2\"]", 0, `["2"]`, true},
		{"[[peer]]\nallowed.more = [\"1\"]", 0, "[]", false},
		{"[[peer]]\nallowed = [1]", 0, "[1]", false},
	} {
		found, ok := findAllowed(tt.text, tt.peer)
		var items []string
		for _, it := range found.items {
			items = append(items, tt.text[it.from:it.to])
		}
		if got := fmt.Sprint(items); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %s, %v", tt.text, got, ok)
		}
	}
}

// However a list is written: with another prefix it reads as that many more, and
// without it again it is what it was, byte for byte.
func TestEditAllowedIsUndone(t *testing.T) {
	added := netip.MustParsePrefix("10.9.0.0/16")
	rapid.Check(t, func(t *rapid.T) {
		blank := rapid.SampledFrom([]string{"", " ", "\t", "\n  ", " # one, \"two\"]\n"})
		var list strings.Builder
		n := rapid.IntRange(1, 5).Draw(t, "items")
		for i := range n {
			list.WriteString(blank.Draw(t, "before"))
			fmt.Fprintf(&list, rapid.SampledFrom([]string{`"10.%d.0.0/16"`, `'10.%d.0.0/16'`, `"""10.%d.0.0/16"""`}).Draw(t, "quotes"), 20+i)
			list.WriteString(blank.Draw(t, "behind"))
			if i < n-1 || rapid.Bool().Draw(t, "comma at the end") {
				list.WriteString(",")
			}
		}
		list.WriteString(blank.Draw(t, "at the end"))
		text := savable(t, "allowed = ["+list.String()+"]")
		with, ok := editAllowed(text, 1, added, true)
		if !ok {
			t.Fatal("not found")
		}
		if cfg, err := engine.ParseConfig([]byte(with)); err != nil || len(cfg.Peers[1].Allowed) != n+1 {
			t.Fatalf("%v in\n%s", err, with)
		}
		if without, ok := editAllowed(with, 1, added, false); !ok || without != text {
			t.Fatalf("%v:\n%s\nexpected:\n%s", ok, without, text)
		}
		at := rapid.IntRange(0, n-1).Draw(t, "place")
		less, ok := editAllowed(with, 1, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(20 + at)}), 16), false)
		if cfg, err := engine.ParseConfig([]byte(less)); !ok || err != nil || len(cfg.Peers[1].Allowed) != n {
			t.Fatalf("%v, %v in\n%s", ok, err, less)
		}
	})
}
