package engine

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sheaf/engine/aggregate"
)

const print1 = "FINGERPRINT"

// good is a configuration with all that is needed.
func good(t *testing.T) string {
	return strings.ReplaceAll(`key = "/etc/sheaf/key"
listen = ":4747"
[tun]
address = ["10.99.0.1/24", "fd99::1/64"]
[[peer]]
name = "plant-7"
fingerprint = "FINGERPRINT"
endpoint = "gw.example.net:4747"
allowed = ["10.1.0.0/16", "10.5.0.1"]
`, print1, newKey(t, filepath.Join(t.TempDir(), "key")).String())
}

func TestParseConfig(t *testing.T) {
	c, err := ParseConfig([]byte("window = \"2ms\"\nquiet = \"0\"\ncompress = \"off\"\nsimilarity = [\"event\", \"content\"]\n" + good(t)))
	if err != nil {
		t.Fatal(err)
	}
	one, err := ParseConfig([]byte(strings.Replace(good(t), `["10.99.0.1/24", "fd99::1/64"]`, `"10.99.0.1/24" # one`, 1)))
	if err != nil || len(one.TUN.Address) != 1 || one.TUN.Address[0].Prefix != netip.MustParsePrefix("10.99.0.1/24") {
		t.Errorf("a single address: %v", err)
	}
	if got := c.Peers[0].Allowed.list(); len(got) != 2 || got[1] != netip.MustParsePrefix("10.5.0.1/32") {
		t.Errorf("allowed %v", got)
	}
	lane, err := c.lane(nil)
	if err != nil {
		t.Fatal(err)
	}
	if lane.Window != 2*time.Millisecond || lane.Quiet != -1 || lane.AckWait != 0 || lane.Compression != -1 ||
		lane.Similarity != aggregate.ByEvent|aggregate.ByContent {
		t.Errorf("lane %+v", lane)
	}
}

// Each mistake is told by its place and by what was expected.
func TestConfigMistakes(t *testing.T) {
	tests := []struct {
		name, old, new string // in the good configuration
		want           string // in the error
	}{
		{"unknown key", "listen", "listne", `line 2: unknown key "listne"`},
		{"unknown key in a table", "endpoint", "endpiont", `unknown key "peer.endpiont"`},
		{"no TOML", "[tun]", "[tun", "line 3"},
		{"no key", `key = "/etc/sheaf/key"`, "", "key is missing"},
		{"listen", `":4747"`, `"4747"`, "listen = \"4747\": expected HOST:PORT"},
		{"no peer", "[[peer]]", "[[forward]]", "unknown key"},
		{"no name", `name = "plant-7"`, "", "name is missing"},
		{"no allowed", `allowed = ["10.1.0.0/16", "10.5.0.1"]`, "", "allowed is missing"},
		{"no prefix", "10.1.0.0/16", "10.1.0.0-16", "no prefix like 10.2.0.0/24"},
		{"bits", "10.1.0.0/16", "10.1.0.9/16", "did you mean 10.1.0.0/16?"},
		{"twice", "10.5.0.1", "10.1.0.0/16", "already another peer's"},
		{"endpoint", "gw.example.net:4747", "gw.example.net", "expected HOST:PORT"},
		{"nobody calls", `endpoint = "gw.example.net:4747"`, "", ""},
		{"mtu", "[tun]", "[tun]\nmtu = 100", "mtu = 100 is not between 576 and 65000"},
		{"address", `address = ["10.99.0.1/24", "fd99::1/64"]`, "", "address is missing"},
		{"log", "[tun]", "log = \"loud\"\n[tun]", "expected debug, info, warn or error"},
		{"metrics", "[tun]", "metrics = \"9090\"\n[tun]", "metrics = \"9090\": expected HOST:PORT"},
		{"duration", "[tun]", "window = \"5 parsecs\"\n[tun]", `"5 parsecs" is no duration`},
		{"negative", "[tun]", "window = \"-1s\"\n[tun]", "not between 0 and 1h"},
		{"compress", "[tun]", "compress = 23\n[tun]", `expected "off" or a zstd level`},
		{"similarity", "[tun]", "similarity = [\"colour\"]\n[tun]", `"colour" is none of event`},
		{"carrier", "[tun]", "carrier = [\"pigeon\"]\n[tun]", "none of quic, tls, plain"},
		{"protocol", "[tun]", "protocols = [\"mqtt\"]\n[tun]", "expected NAME@PORT"},
		{"nothing to carry", "[tun]\naddress = [\"10.99.0.1/24\", \"fd99::1/64\"]\n", "", "nothing to carry"},
		{"both ends", "[[peer]]", "[terminate]\nprefixes = [\"10.2.0.0/24\"]\n[[peer]]", "[tun] excludes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := good(t)
			if !strings.Contains(text, tt.old) {
				t.Fatalf("no %q to replace", tt.old)
			}
			_, err := ParseConfig([]byte(strings.Replace(text, tt.old, tt.new, 1)))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, expected %q in it", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than a line: %q", err)
			}
		})
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "none.toml")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.toml") {
		t.Errorf("no file: %v", err)
	}
}

func TestSaveRoute(t *testing.T) {
	text := "# mine\n" + strings.Replace(good(t), `allowed = [`, "# the plant\nallowed = [ # both\n  ", 1) + "\n[queue]\nbytes = 5\n"
	path := filepath.Join(t.TempDir(), "sheaf.toml")
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	r := Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Peer: "plant-7"}
	for range 2 { // the second time it is there already
		if err := SaveRoute(path, r); err != nil {
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
		if err := ForgetRoute(path, r); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ = os.ReadFile(path); string(b) != text {
		t.Errorf("written:\n%s\nexpected:\n%s", b, text)
	}
	if err := ForgetRoute(path, Route{Prefix: netip.MustParsePrefix("10.1.0.0/16"), Peer: "plant-7"}); err != nil {
		t.Error(err)
	}
	err := ForgetRoute(path, Route{Prefix: netip.MustParsePrefix("10.5.0.1/32"), Peer: "plant-7"})
	if err == nil || !strings.Contains(err.Error(), `nothing else lies behind [[peer]] "plant-7"`) {
		t.Errorf("without its last: %v", err)
	}
	if err := SaveRoute(path, Route{Prefix: r.Prefix, Peer: "nobody"}); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Errorf("unknown peer: %v", err)
	}
}

func TestEditAllowed(t *testing.T) {
	p := netip.MustParsePrefix("10.9.0.0/16")
	for _, tt := range []struct{ list, with string }{
		{``, `"10.9.0.0/16"`},
		{`"10.1.0.0/16"`, `"10.1.0.0/16", "10.9.0.0/16"`},
		{`"10.1.0.0/16",`, `"10.1.0.0/16", "10.9.0.0/16",`},
		{` '10.1.0.0/16' `, ` '10.1.0.0/16', "10.9.0.0/16" `},
		{"\n  \"10.1.0.0/16\", # the plant\n", "\n  \"10.1.0.0/16\", \"10.9.0.0/16\", # the plant\n"},
	} {
		if got := withAllowed(tt.list, p); got != tt.with {
			t.Errorf("%q with: %q, expected %q", tt.list, got, tt.with)
		}
		if tt.list == "" {
			continue // which a configuration may not have
		}
		text := func(list string) string {
			return strings.Replace(good(t), "allowed = [", "allowed = ["+list+"]\n#", 1)
		}
		cfg, err := ParseConfig([]byte(text(withoutAllowed(tt.with, p))))
		if err != nil || slices.Contains(cfg.Peers[0].Allowed, Prefix{p}) || len(cfg.Peers[0].Allowed) != strings.Count(tt.list, "/16") {
			t.Errorf("%q without: %q: %v", tt.with, withoutAllowed(tt.with, p), err)
		}
	}
	for _, tt := range []struct{ list, without string }{
		{`"10.1.0.0/16", "10.9.0.0/16", "10.2.0.0/16"`, `"10.1.0.0/16", "10.2.0.0/16"`},
		{`"10.9.0.0/16", "10.2.0.0/16"`, `"10.2.0.0/16"`},
		{`"10.1.0.0/16", "10.9.0.0/16"`, `"10.1.0.0/16"`},
		{`"10.9.0.0/16"`, ``},
		{`"10.1.0.0/16"`, `"10.1.0.0/16"`},
	} {
		if got := withoutAllowed(tt.list, p); got != tt.without {
			t.Errorf("%q without: %q, expected %q", tt.list, got, tt.without)
		}
	}
}
