package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"sheaf/engine"
)

// TestEncryptedInReplay holds what a report says about TLS, for people and for
// programs.
func TestEncryptedInReplay(t *testing.T) {
	got := sheaf(t, nil, "replay", captured("odd.pcap"))
	for _, want := range []string{
		`(?m)^  down +tls \(encrypted\) +application_data +6 `,
		`(?m)^  up +tls +handshake +1 `,
		`(?m)^  up +tls +alert +1 `,
		`\n  encrypted: headers and acknowledgements only, for \d+% of the traffic \(tls\)\. What opens\n  it: \[\[tls\]\] in a gateway's file, --keylog FILE in replay; docs/manual\.md, "TLS inside\n  the flow"\.\n`,
	} {
		if !regexp.MustCompile(want).MatchString(got.stdout) {
			t.Errorf("%s is not in\n%s", want, got.stdout)
		}
	}
	objects, _ := replayJSON(t, captured("odd.pcap"))
	protocols := objects[0]["protocols"].(object)
	if v := protocols["tls"].(object); v["encrypted"] != true || v["names"].(object)["application_data"].(object)["messages"] != 6.0 {
		t.Errorf("protocols.tls is %v", v)
	}
	if v, ok := protocols["mqtt"].(object)["encrypted"]; ok {
		t.Errorf("protocols.mqtt.encrypted is %v", v)
	}
	if got := sheaf(t, nil, "replay", captured("fanout-100.pcap.gz")); strings.Contains(got.stdout, "encrypted") {
		t.Errorf("encrypted, where nothing is:\n%s", got.stdout)
	}
}

// TestEncryptedInStatus has gateways carry a connection over TLS, on a port that
// says nothing.
func TestEncryptedInStatus(t *testing.T) {
	p := newPair(t, secureEcho(t, nil))
	p.run(t)
	c := tls.Client(dial(t, p.local), &tls.Config{InsecureSkipVerify: true})
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	for range 20 {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	got := sheaf(t, nil, "status", "--control", p.control)
	for _, want := range []string{"  not opened: server not named\n", "  tls (encrypted)  application_data ", "\n  encrypted: headers and acknowledgements only, for ", "% of the traffic (tls). ", "docs/manual.md"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is not in\n%s", want, got.stdout)
		}
	}
	got = sheaf(t, nil, "status", "--json", "--control", p.control)
	var s engine.Status
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
		t.Fatal(err)
	}
	records := uint64(0)
	for _, l := range s.Peers[0].Lanes {
		if n := l.TLS.Carried["server not named"]; l.TLS.Records != 0 || n > 0 && n < 20 {
			t.Errorf("%+v", l.TLS)
		}
		for _, e := range l.Events {
			if e.Encrypted != (e.Protocol == "tls") {
				t.Errorf("%+v", e)
			}
			if e.Message == "application_data" {
				records += e.Messages
			}
		}
	}
	if records < 20 {
		t.Errorf("%d records counted in\n%s", records, got.stdout)
	}
}

// TestOpenedInStatus has gateways carry a connection that they open, and looks for it in
// what they tell, and for its secrets.
func TestOpenedInStatus(t *testing.T) {
	var secrets record
	path := written(t, "keys", nil)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := newPair(t, secureEcho(t, io.MultiWriter(&secrets, f)))
	const server = "\n[[tls]]\nserver = [\"10.2.0.10:1883\"]\n"
	p.clients = edited(t, p.clients, "\n[[forward]]", server+"[[forward]]")
	metrics := freePort(t)
	p.broker = edited(t, p.broker, "\n[terminate]", server+fmt.Sprintf("keylog = %q\n[terminate]", path), "\n[[peer]]", fmt.Sprintf("\nmetrics = %q\n[[peer]]", metrics))
	p.run(t)
	c := tls.Client(dial(t, p.local), &tls.Config{InsecureSkipVerify: true})
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	said := []byte("\x30\x0b\x00\x05alarm1234") // a PUBLISH
	for range 20 {
		if _, err := c.Write(said); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, len(said))); err != nil {
			t.Fatal(err)
		}
	}
	var told string
	for _, control := range []string{p.control, strings.TrimSuffix(p.control, "c.sock") + "b.sock"} {
		got := sheaf(t, nil, "status", "--control", control)
		json := sheaf(t, nil, "status", "--json", "--control", control)
		told += got.stdout + json.stdout
		for _, want := range []string{
			`(?m)^  TLS is opened of 1 server`, `(?m)^  TLS +connections opened +records +in them( +not opened: short handshake)?$`,
			`(?m)^  messages +1 +2\d `, `(?m)^  mqtt +PUBLISH +2\d `,
		} {
			if !regexp.MustCompile(want).MatchString(got.stdout) {
				t.Errorf("%s is not in\n%s", want, got.stdout)
			}
		}
		if strings.Contains(got.stdout, "encrypted: ") {
			t.Errorf("encrypted, where all was opened:\n%s", got.stdout)
		}
	}
	scraped := scrape(t, metrics)
	told += scraped
	for _, want := range []string{
		`(?m)^sheaf_tls_records_total{lane="messages",outcome="opened",peer="clients"} 2\d$`,
		`(?m)^sheaf_tls_records_total{lane="bulk",outcome="server not named",peer="clients"} 0$`,
		`(?m)^sheaf_tls_connections_total{lane="messages",outcome="opened",peer="clients"} 1$`,
		`(?m)^sheaf_tls_opened_bytes_total{lane="messages",peer="clients"} [1-9]\d\d`,
		`(?m)^sheaf_tls_secrets_total{outcome="met"} 1$`,
		`(?m)^sheaf_tls_key_log_up{path=".*keys"} 1$`,
	} {
		if !regexp.MustCompile(want).MatchString(scraped) {
			t.Errorf("%s is not in\n%s", want, scraped)
		}
	}
	if want := "secrets of 1 connection, 1 of them met\n  key log " + path + ": "; !strings.Contains(told, want) {
		t.Errorf("%q is not in\n%s", want, told)
	}
	for line := range strings.Lines(secrets.String()) {
		if f := strings.Fields(line); strings.Contains(told, f[1]) || strings.Contains(told, f[2]) {
			t.Error("a secret was told")
		}
	}
}

// scrape returns the metrics of a gateway.
func scrape(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// secureEcho starts a server that says over TLS what it hears, and writes the secrets of
// its connections to keyLog, which may be nil.
func secureEcho(t *testing.T, keyLog io.Writer) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}, KeyLogWriter: keyLog,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}
