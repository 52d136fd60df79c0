package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sheaf/pcap"
	"sheaf/pcap/pcaptest"
)

// secured are the recorded captures with secrets, and what they are to take.
var secured = []struct {
	name        string
	connections float64
	records     float64 // that are opened at least, both ways: all but some that end handshakes
	wire        float64 // of the bytes in, what the link takes at most with a window of 5 ms
}{
	{"mqtt-tls13-fanout-20", 20, 560, 0.32},
	{"mqtt-tls12-fanout-20-qos1", 20, 920, 0.093},
	{"mqtt-mtls13-telemetry-20-qos1", 20, 480, 0.59},
	{"nats-tls13-fanout-20", 20, 420, 0.39},
	{"mqtt-tls13-reconnect-5", 50, 333, 0.48},
	{"mqtt-tls13-keyupdate-6-qos1", 6, 658, 0.23},
	{"mqtt-tls13-large-3-lossy", 3, 57, 0.25},
}

func securedFile(name string) string { return captured(filepath.Join("recorded", name+".pcapng.gz")) }

// tlsOf returns what a report says of TLS in a direction.
func tlsOf(o object, direction string) object {
	return o["directions"].(object)[direction].(object)["tls"].(object)
}

// opened returns how many records were opened, both ways.
func opened(o object) float64 {
	return tlsOf(o, "up")["records"].(float64) + tlsOf(o, "down")["records"].(float64)
}

// TestTLS holds that captures with secrets are opened, come out identical whatever the
// window, and take what they are to take.
func TestTLS(t *testing.T) {
	for _, tt := range secured {
		for _, window := range []string{"0", "5ms", "1s"} {
			objects, got := replayJSON(t, "--window", window, securedFile(tt.name))
			if got.code != exitOK || got.stderr != "" {
				t.Fatalf("%s, window %s: %+v", tt.name, window, got)
			}
			o := objects[0]
			exact(t, o)
			if n := tlsOf(o, "down")["connections"]; n != tt.connections || opened(o) < tt.records {
				t.Errorf("%s, window %s: %v connections and %v records opened, want %v and %v", tt.name, window, n, opened(o), tt.connections, tt.records)
			}
			share := o["bytes_wire"].(float64) / o["bytes_in"].(float64)
			t.Logf("%s, window %s: %v records opened, %.3f of the bytes", tt.name, window, opened(o), share)
			if window == "5ms" && share > tt.wire {
				t.Errorf("%s takes %.3f of its bytes, more than %.3f", tt.name, share, tt.wire)
			}
			for _, direction := range []string{"up", "down"} {
				for why, n := range tlsOf(o, direction)["carried"].(object) {
					if why != "short handshake" && n != 0.0 {
						t.Errorf("%s, window %s: %v records %s not opened: %s", tt.name, window, n, direction, why)
					}
				}
			}
			if s := o["secrets"].(object); s["met"] != tt.connections || s["bad_lines"] != 0.0 {
				t.Errorf("%s: secrets %v", tt.name, s)
			}
		}
	}
}

// split returns the packets of a capture with secrets as one without, and its secrets.
func split(t *testing.T, name string) (capture, keyLog []byte) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := pcap.NewReader(bufio.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	in.KeyLog(func(lines []byte) { keyLog = append(keyLog, lines...) })
	var b bytes.Buffer
	out, err := pcap.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := in.Next()
		if errors.Is(err, io.EOF) {
			return b.Bytes(), keyLog
		}
		if err == nil {
			err = out.Write(p.Time, p.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Secrets from a key log are as good as those that a capture brings, also where they are in
// several files.
func TestKeyLogOption(t *testing.T) {
	name := securedFile("mqtt-tls12-fanout-20-qos1")
	capture, keyLog := split(t, name)
	path := written(t, "packets.pcap", capture)
	half := bytes.IndexByte(keyLog[len(keyLog)/2:], '\n') + len(keyLog)/2 + 1
	first, second := written(t, "first", keyLog[:half]), written(t, "second", keyLog[half:])
	brought, _ := replayJSON(t, name)
	given, _ := replayJSON(t, "--keylog", first, "--keylog", second, path)
	if a, b := brought[0]["bytes_wire"], given[0]["bytes_wire"]; a != b || opened(given[0]) != opened(brought[0]) {
		t.Errorf("%v bytes with secrets from the capture, %v with a key log", a, b)
	}
	some, _ := replayJSON(t, "--keylog", first, path)
	exact(t, some[0])
	if n := tlsOf(some[0], "down")["connections"].(float64); n < 5 || n > 15 {
		t.Errorf("%v connections opened with half of the secrets of 20", n)
	}
	none, _ := replayJSON(t, path)
	exact(t, none[0])
	carried := tlsOf(none[0], "down")["carried"].(object)["no secrets"]
	if _, there := none[0]["secrets"]; there || opened(none[0]) != 0 || carried.(float64) < 400 {
		t.Errorf("without secrets: %v, %v records opened, %v carried", none[0]["secrets"], opened(none[0]), carried)
	}
}

// What became of TLS is told, with the way to open it where there is one.
func TestTLSReport(t *testing.T) {
	name := securedFile("mqtt-tls12-fanout-20-qos1")
	capture, keyLog := split(t, name)
	path := written(t, "packets.pcap", capture)
	other := regexp.MustCompile(`(?m)^CLIENT_RANDOM [0-9a-f]{8}`).ReplaceAll(keyLog, []byte("CLIENT_RANDOM 00000000"))
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{name}, []string{
			`\n  TLS +connections opened +records +in them\n  up +20 +4\d\d `,
			`\n  down +20 +\d\d\d `,
			`\n  down +mqtt +PUBLISH +400 `,
			`\n  down +tls +handshake `,
		}},
		{[]string{path}, []string{
			`\n  TLS +connections opened +records +in them +not opened: no secrets\n`,
			`\n  down +0 +0 +0 B +4\d\d\n`,
			`\n  down +tls \(encrypted\) +application_data +4\d\d `,
			`\n  encrypted: headers and acknowledgements only, for \d\d% of the traffic \(tls\)\. What opens\n  it: .*--keylog FILE`,
		}},
		{[]string{"--keylog", written(t, "other", other), path}, []string{
			`\n  hint: there are secrets of 20 connections, and none of them is in this capture with its\n  beginning`,
		}},
		{[]string{"--keylog", written(t, "bad", append(bytes.Clone(keyLog), "CLIENT_RANDOM x y\nwhat\n"...)), path}, []string{
			`\n  down +20 +\d\d\d `, `\n  hint: 2 lines of key logs could not be read\.\n`,
		}},
	} {
		got := sheaf(t, nil, append([]string{"replay"}, tt.args...)...)
		if got.code != exitOK || got.stderr != "" {
			t.Fatalf("%q: %+v", tt.args, got)
		}
		for _, want := range tt.want {
			if !regexp.MustCompile(want).MatchString(got.stdout) {
				t.Errorf("%q: no %s in\n%s", tt.args, want, got.stdout)
			}
		}
	}
}

// A server may agree to a suite that nobody can open: its name is told, and all packets
// come out as they were.
func TestTLSSuiteIsNamed(t *testing.T) {
	capture, keyLog := split(t, securedFile("mqtt-tls12-fanout-20-qos1"))
	const agreed, claimed = "\xc0\x2b\x00", "\xc0\x23\x00" // ServerHello's suite, and no compression behind it
	lying := bytes.ReplaceAll(capture, []byte(agreed), []byte(claimed))
	got := sheaf(t, nil, "replay", "--keylog", written(t, "keys", keyLog), written(t, "packets.pcap", lying))
	for _, want := range []string{"\n  all 1,980 came out identical\n", "because of its cipher suite, TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 20 connections\n"} {
		if got.code != exitOK || !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
}

// However wrong secrets are, all packets come out as they were.
func TestWrongSecrets(t *testing.T) {
	for _, tt := range secured {
		capture, keyLog := split(t, securedFile(tt.name))
		wrong := []byte(string(keyLog))
		rng := rand.New(rand.NewPCG(1, 2))
		for at := range wrong { // half of the lines get another digit in their secret
			if wrong[at] == '\n' && rng.IntN(2) == 0 {
				wrong[at-1-rng.IntN(32)] = "0123456789abcdef"[rng.IntN(16)]
			}
		}
		objects, got := replayJSON(t, "--keylog", written(t, "keys", wrong), written(t, "packets.pcap", capture))
		if got.code != exitOK {
			t.Errorf("%s: %+v", tt.name, got)
		}
		exact(t, objects[0])
		if tlsOf(objects[0], "up")["carried"].(object)["secrets do not fit"] == 0.0 && tt.connections > 3 {
			t.Errorf("%s: %v", tt.name, tlsOf(objects[0], "up"))
		}
	}
}

// No secret is in any output.
func TestSecretsAreNotTold(t *testing.T) {
	capture, keyLog := split(t, securedFile("mqtt-tls13-keyupdate-6-qos1"))
	path := written(t, "keys", append(keyLog, "CLIENT_RANDOM zz\n"...))
	packets := written(t, "packets.pcap", capture)
	for _, args := range [][]string{{"replay"}, {"replay", "--json"}} {
		got := sheaf(t, nil, append(args, "--keylog", path, packets)...)
		for line := range strings.Lines(string(keyLog)) {
			if f := strings.Fields(line); len(f) == 3 && strings.Contains(got.stdout+got.stderr, f[2]) {
				t.Fatalf("a secret is in the output of %q", args)
			}
		}
	}
}

// A key log that cannot be used is a mistake in the command line.
func TestKeyLogUnusable(t *testing.T) {
	long := written(t, "long", nil)
	if err := os.Truncate(long, maxKeyLog+1); err != nil {
		t.Fatal(err)
	}
	capture := captured("fanout-10-ipv6.pcap.gz")
	for _, tt := range []struct{ path, want string }{
		{captured("missing"), "--keylog ../../testdata/missing: cannot be opened: no such file or directory"},
		{t.TempDir(), "cannot be read: "},
		{long, "is longer than 67.1 MB"},
	} {
		got := sheaf(t, nil, "replay", "--keylog", tt.path, capture)
		if got.code != exitUnusable || !strings.Contains(got.stderr, tt.want) || got.stdout != "" {
			t.Errorf("%s: %+v", tt.path, got)
		}
	}
	if err := os.Truncate(long, maxKeyLog); err != nil {
		t.Fatal(err)
	}
	if got := sheaf(t, nil, "replay", "--keylog", long, capture); got.code != exitOK {
		t.Errorf("at the limit: %+v", got)
	}
}

// TestSharedTLS holds what captures of other clients and brokers take: 1.15 of what sheaf
// needed for the same messages without TLS (../shared/captures/tls/README.md), and for each
// connection with its handshake what nobody can predict.
func TestSharedTLS(t *testing.T) {
	folder := filepath.Join(pcaptest.Others(t), "tls")
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no captures of TLS among those of other projects: ", err)
	}
	const full, certificates, tls12 = 2600, 3400, 800 // with a key share with ML-KEM; of clients; of TLS 1.2
	for _, tt := range []struct {
		name                   string
		connections, handshake float64
		plain                  float64 // bytes on the link without TLS
	}{
		{"mqtt-tls13-fanout-100-qos0", 100, full, 41_940},
		{"mqtt-tls12-fanout-100-qos1", 100, tls12, 40_737},
		{"mqtt-tls12cc-fanout-20-qos0", 20, tls12, 27_229},
		{"mqtt-tls13cc-fanout-20-qos0", 20, full, 27_009},
		{"mqtt-mtls13-telemetry-100-qos1", 100, certificates, 99_679},
		{"nats-tls13-fanout-50", 50, full, 33_214},
	} {
		objects, got := replayJSON(t, filepath.Join(folder, tt.name+".pcapng.gz"))
		if got.code != exitOK {
			t.Fatalf("%s: %+v", tt.name, got)
		}
		o := objects[0]
		exact(t, o)
		wire, most := o["bytes_wire"].(float64), 1.15*tt.plain+tt.connections*tt.handshake
		t.Logf("%s: %.0f bytes of at most %.0f", tt.name, wire, most)
		if n := tlsOf(o, "down")["connections"]; wire > most || n != tt.connections {
			t.Errorf("%s: %.0f bytes, want at most %.0f; %v connections opened of %v", tt.name, wire, most, n, tt.connections)
		}
	}
}
