package engine

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each mistake in a [[tls]] table is told by its place and by what was expected.
func TestTLSMistakes(t *testing.T) {
	const server = `server = ["10.2.0.10:8883"]` + "\n"
	tests := []struct{ name, tables, want string }{
		{"the other gateway has the secrets", "[[tls]]\n" + server, ""},
		{"a key log", "[[tls]]\n" + server + "keylog = \"/run/keys/log\"\nempty = true\n", ""},
		{"no server", "[[tls]]\nkeylog = \"/run/keys/log\"\n", "[[tls]] 1: server is missing"},
		{"no port", "[[tls]]\nserver = [\"10.2.0.10\"]\n", `server = "10.2.0.10": expected ADDR:PORT`},
		{"port 0", "[[tls]]\nserver = [\"10.2.0.10:0\"]\n", `expected ADDR:PORT`},
		{"a name", "[[tls]]\nserver = [\"broker:8883\"]\n", `expected ADDR:PORT`},
		{"a zone", "[[tls]]\nserver = [\"[fe80::1%eth0]:8883\"]\n", `expected ADDR:PORT`},
		{"twice in a table", "[[tls]]\nserver = [\"10.2.0.10:8883\", \"10.2.0.10:8883\"]\n", "[[tls]] 1: server 10.2.0.10:8883 is there twice"},
		{"twice", "[[tls]]\n" + server + "[[tls]]\nserver = [\"[::ffff:10.2.0.10]:8883\"]\n", "[[tls]] 2: server 10.2.0.10:8883 is there twice"},
		{"a key log twice", "[[tls]]\n" + server + "keylog = \"/k\"\n[[tls]]\nserver = [\"10.2.0.11:8883\"]\nkeylog = \"/k\"\n", "keylog /k is there twice"},
		{"two without a key log", "[[tls]]\n" + server + "[[tls]]\nserver = [\"10.2.0.11:8883\"]\n", ""},
		{"empty nothing", "[[tls]]\n" + server + "empty = true\n", "empty needs keylog"},
		{"two sources", "[[tls]]\n" + server + "keylog = \"/k\"\ncertificate = \"/c\"\n", "keylog excludes to and certificate"},
		{"two sources, by the server", "[[tls]]\n" + server + "keylog = \"/k\"\nto = \"10.2.0.10:1883\"\n", "keylog excludes to and certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseConfig([]byte(good(t) + tt.tables))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, expected %q in it", err, tt.want)
			}
		})
	}
}

// Secrets never go over a carrier that does not encrypt: one in the list is enough for
// a peer to choose it.
func TestTLSExcludesPlain(t *testing.T) {
	for _, carrier := range []string{`["plain"]`, `["quic", "plain"]`} {
		_, err := ParseConfig([]byte("carrier = " + carrier + "\n" + good(t) + "[[tls]]\nserver = [\"10.2.0.10:8883\"]\n"))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), `[[tls]] excludes carrier "plain"`) {
			t.Errorf("carrier = %s: %v", carrier, err)
		}
	}
	if _, err := ParseConfig([]byte("carrier = [\"tls\"]\n" + good(t) + "[[tls]]\nserver = [\"10.2.0.10:8883\"]\n")); err != nil {
		t.Error(err)
	}
}

func TestTLSPathsAreOfTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sheaf.toml")
	text := good(t) + "[[tls]]\nserver = [\"10.2.0.10:8883\", \"[fd00::1]:8883\"]\nkeylog = \"keys\"\n[[tls]]\nserver = [\"10.2.0.11:8883\"]\nkeylog = \"/run/keys\"\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.TLS[0].KeyLog, filepath.Join(filepath.Dir(path), "keys"); got != want {
		t.Errorf("keylog %s, expected %s", got, want)
	}
	if got := c.TLS[1].KeyLog; got != "/run/keys" {
		t.Errorf("keylog %s, expected /run/keys", got)
	}
	if got := c.TLS[0].Certificate; got != "" {
		t.Errorf("certificate %q, expected none", got)
	}
	servers, err := c.TLS[0].servers()
	if want := []netip.AddrPort{netip.MustParseAddrPort("10.2.0.10:8883"), netip.MustParseAddrPort("[fd00::1]:8883")}; err != nil || !slices.Equal(servers, want) {
		t.Errorf("servers %v, %v", servers, err)
	}
}
