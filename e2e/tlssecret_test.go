package e2e

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// secretsOf returns the secrets in key logs, and what follows from those of TLS 1.3: keys
// and initialisation vectors.
func secretsOf(t *testing.T, keylogs ...string) (all [][]byte) {
	t.Helper()
	for _, path := range keylogs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue
			}
			secret, err := hex.DecodeString(fields[2])
			if err != nil || len(secret) < sha256.Size {
				t.Fatalf("%s: a line of %q has no secret", path, fields[0])
			}
			all = append(all, secret)
			if strings.Contains(fields[0], "TRAFFIC_SECRET") {
				all = append(all, trafficKeys(t, secret)...)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("no secrets in %v", keylogs)
	}
	return all
}

// trafficKeys returns the write_key of either length and the write_iv that follow from a
// traffic secret (RFC 8446 section 7.3).
func trafficKeys(t *testing.T, secret []byte) [][]byte {
	t.Helper()
	var h func() hash.Hash = sha256.New
	if len(secret) == sha512.Size384 {
		h = sha512.New384
	}
	expand := func(label string, n int) []byte {
		label = "tls13 " + label
		info := binary.BigEndian.AppendUint16(nil, uint16(n))
		info = append(append(info, byte(len(label))), label...)
		b, err := hkdf.Expand(h, secret, string(append(info, 0)), n) // the context is empty
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	return [][]byte{expand("key", 16), expand("key", 32), expand("iv", 12)}
}

// ways are those in which text shows bytes.
var ways = map[string]func(b []byte) string{
	"raw":             func(b []byte) string { return string(b) },
	"hex":             hex.EncodeToString,
	"HEX":             func(b []byte) string { return fmt.Sprintf("%X", b) },
	"spaced hex":      func(b []byte) string { return fmt.Sprintf("% x", b) },
	"base64":          whole(base64.StdEncoding),
	"base64 for URLs": whole(base64.URLEncoding),
	"numbers":         func(b []byte) string { return strings.Trim(fmt.Sprint(b), "[]") },
	"a JSON array":    func(b []byte) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(b), "[]"), " ", ",") },
	"quoted":          func(b []byte) string { return strings.Trim(fmt.Sprintf("%q", b), `"`) },
}

// whole returns what base64 makes of bytes but for the last group: that depends on what
// follows.
func whole(e *base64.Encoding) func([]byte) string {
	return func(b []byte) string { return e.EncodeToString(b[:len(b)/3*3]) }
}

// A needle is a secret as text shows it.
type needle struct {
	text, how string
	number    int // of the secret, which is not to be told
}

// beginning is by what needles are looked up: of none are there fewer bytes.
const beginning = 8

// search says where in texts secrets are, and how they are shown.
func search(texts map[string][]byte, secrets [][]byte) (found []string) {
	needles := map[[beginning]byte][]needle{}
	for how, show := range ways {
		for i, secret := range secrets {
			n := needle{show(secret), how, i}
			at := [beginning]byte([]byte(n.text))
			needles[at] = append(needles[at], n)
		}
	}
	for where, text := range texts {
		for i := 0; i+beginning <= len(text); i++ {
			for _, n := range needles[[beginning]byte(text[i:])] {
				if bytes.HasPrefix(text[i:], []byte(n.text)) {
					found = append(found, fmt.Sprintf("%s: secret %d of %d as %s", where, n.number+1, len(secrets), n.how))
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// A search finds secrets in whatever way they are shown, and nothing else.
func TestSearch(t *testing.T) {
	secret := make([]byte, sha256.Size)
	for i := range secret {
		secret[i] = byte(37 * i)
	}
	other := bytes.Clone(secret)
	other[len(other)-3]++
	for how, show := range ways {
		texts := map[string][]byte{"a log": []byte("before" + show(secret) + "after"), "another": []byte("nothing")}
		if found := search(texts, [][]byte{other, secret}); len(found) != 1 || !strings.HasPrefix(found[0], "a log: secret 2 of 2 as ") {
			t.Errorf("%s: found %q", how, found)
		}
	}
}

// wantNoSecrets fails the test if secrets are where somebody may see them: in what the
// gateways logged, tell and keep beside their configuration, or in what crossed the WAN.
func (l *lab) wantNoSecrets(secrets [][]byte, crossed []byte, gateways ...*gateway) {
	l.t.Helper()
	texts := map[string][]byte{"the WAN": crossed}
	for _, g := range gateways {
		add := func(what string, text []byte) {
			if len(text) == 0 {
				l.t.Errorf("%s of %s: nothing to search", what, g.site.gw.name)
			}
			texts[what+" of "+g.site.gw.name] = text
		}
		add("the log", []byte(g.log.String()))
		for _, path := range []string{"/status", "/routes"} {
			add("the control socket's "+path, g.asked(path))
		}
		for _, args := range [][]string{{"status"}, {"status", "--json"}} {
			out, err := g.sheaf(append(args, "--control", g.control)...)
			if err != nil {
				l.t.Errorf("sheaf %v: %v", args, err)
			}
			add(fmt.Sprintf("sheaf %v", args), []byte(out))
		}
		out, _ := g.sheaf("doctor", "-c", g.config) // whatever it thinks of the machine
		add("sheaf doctor", []byte(out))
		var page []byte
		g.site.gw.help("fetch", "http://"+metricsAddress+"/metrics").finish(&page)
		add("the metrics", page)
	}
	l.addFiles(texts)
	if found := search(texts, secrets); len(found) > 0 {
		l.t.Errorf("%d secrets shown:\n%s", len(found), strings.Join(found[:min(len(found), 20)], "\n"))
	}
}

// metricsAddress is where the gateways tell metrics, and metricsLine has them do so.
const (
	metricsAddress = "127.0.0.1:9464"
	metricsLine    = `metrics = "` + metricsAddress + `"`
)

// asked returns what a gateway answers at its control socket.
func (g *gateway) asked(path string) []byte {
	g.t.Helper()
	c := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.control)
	}}}
	defer c.CloseIdleConnections()
	b, err := get(&c, "http://gateway"+path)
	if err != nil {
		g.t.Errorf("%s: %v", g.name, err)
	}
	return b
}

// fetch is what the fetch role does.
func fetch(url string) ([]byte, error) {
	sayReady()
	return get(http.DefaultClient, url)
}

func get(c *http.Client, url string) ([]byte, error) {
	r, err := c.Get(url)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, r.Status)
	}
	return io.ReadAll(r.Body)
}

// addFiles adds what is in the lab's folder, where the gateways' configuration is, and is
// no capture.
func (l *lab) addFiles(texts map[string][]byte) {
	l.t.Helper()
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".pcap") {
			return err
		}
		texts[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}
