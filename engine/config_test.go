package engine

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
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
