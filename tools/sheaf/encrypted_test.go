package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"math/big"
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
	p := newPair(t, secureEcho(t))
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
	for _, want := range []string{"  tls (encrypted)  application_data ", "\n  encrypted: headers and acknowledgements only, for ", "% of the traffic (tls). ", "docs/manual.md"} {
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

// secureEcho starts a server that says over TLS what it hears.
func secureEcho(t *testing.T) string {
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
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}})
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
