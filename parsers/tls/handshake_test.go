package tls

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	cryptotls "crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// A handshaker makes real handshakes, with Go's TLS. Ed25519 has signatures of one length.
type handshaker struct {
	t      *testing.T
	config *cryptotls.Config // of both ends
}

func newHandshaker(t *testing.T) *handshaker {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"broker"}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return &handshaker{t: t, config: &cryptotls.Config{
		Certificates: []cryptotls.Certificate{{Certificate: [][]byte{der}, PrivateKey: private}},
		RootCAs:      roots, ClientCAs: roots, ServerName: "broker", MinVersion: cryptotls.VersionTLS12,
		CurvePreferences: []cryptotls.CurveID{cryptotls.X25519},
	}}
}

// A kind of handshake. Of its second and third connection the messages are looked at.
type kind struct {
	name string
	set  func(client, server *cryptotls.Config)
	quic bool   // all messages of TLS 1.3, which has them in the clear for QUIC's sake
	want string // type of each message, and the lengths of its random fields
}

func resumed(client, _ *cryptotls.Config) {
	client.ClientSessionCache = cryptotls.NewLRUClientSessionCache(1)
}

func mutual(_, server *cryptotls.Config) { server.ClientAuth = cryptotls.RequireAndVerifyClientCert }

func tls12(client, _ *cryptotls.Config) { client.MaxVersion = cryptotls.VersionTLS12 }

var kinds = []kind{
	{"TLS 1.3", nil, true, `
client 1: 32 32
client 20: 32
server 2: 32 32
server 8:
server 11:
server 15: 64
server 20: 32
server 4: 4 TICKET
`},
	{"TLS 1.3 with a client's certificate", mutual, true, `
client 1: 32 32
client 11:
client 15: 64
client 20: 32
server 2: 32 32
server 8:
server 13:
server 11:
server 15: 64
server 20: 32
server 4: 4 TICKET
`},
	{"TLS 1.3, resumed", resumed, true, `
client 1: 32 32 TICKET 32
client 20: 32
server 2: 32 32
server 8:
server 20: 32
server 4: 4 TICKET
`},
	{"hellos of TLS 1.3 outside of QUIC", nil, false, `
client 1: 32 32 32
server 2: 32 32 32
`},
	{"key shares of ML-KEM with X25519, and X25519", func(client, server *cryptotls.Config) {
		groups := []cryptotls.CurveID{cryptotls.X25519MLKEM768, cryptotls.X25519}
		client.CurvePreferences, server.CurvePreferences = groups, groups
	}, false, `
client 1: 32 32 1216 32
server 2: 32 32 1120
`},
	{"a HelloRetryRequest", func(client, server *cryptotls.Config) {
		client.CurvePreferences = []cryptotls.CurveID{cryptotls.X25519, cryptotls.CurveP256}
		server.CurvePreferences = []cryptotls.CurveID{cryptotls.CurveP256}
	}, true, `
client 1: 32 32
client 1: 32 65
client 20: 32
server 2: 32
server 2: 32 65
server 8:
server 11:
server 15: 64
server 20: 32
server 4: 4 TICKET
`},
	{"TLS 1.2", tls12, false, `
client 1: 32 32
client 16: 32
server 2: 32
server 11:
server 12: 32 64
server 14:
`},
	{"TLS 1.2 with a client's certificate", func(client, server *cryptotls.Config) {
		tls12(client, server)
		mutual(client, server)
	}, false, `
client 1: 32 32
client 11:
client 16: 32
client 15: 64
server 2: 32
server 11:
server 12: 32 64
server 13:
server 14:
`},
	{"TLS 1.2, resumed", func(client, server *cryptotls.Config) {
		tls12(client, server)
		resumed(client, server)
	}, false, `
client 1: 32 32 TICKET
server 2: 32 32
server 4: TICKET
`},
}

// connections returns the messages of two connections of a kind, the client's and the
// server's of each.
func (h *handshaker) connections(k *kind) (messages [2][2][]byte) {
	h.t.Helper()
	client, server := h.config.Clone(), h.config.Clone()
	if k.set != nil {
		k.set(client, server)
	}
	run := h.pipe
	if k.quic {
		run = h.quic
		client.MinVersion, server.MinVersion = cryptotls.VersionTLS13, cryptotls.VersionTLS13
	}
	run(client, server) // a session to resume
	for i := range messages {
		messages[i] = run(client, server)
	}
	return messages
}

// quic makes a handshake as QUIC has it.
func (h *handshaker) quic(client, server *cryptotls.Config) (messages [2][]byte) {
	h.t.Helper()
	ends := [2]*cryptotls.QUICConn{
		cryptotls.QUICClient(&cryptotls.QUICConfig{TLSConfig: client}),
		cryptotls.QUICServer(&cryptotls.QUICConfig{TLSConfig: server}),
	}
	for _, end := range ends {
		end.SetTransportParameters([]byte("parameters"))
		if err := end.Start(context.Background()); err != nil {
			h.t.Fatal(err)
		}
		defer end.Close()
	}
	for idle := 0; idle < 2; {
		for i, end := range ends {
			e := end.NextEvent()
			switch e.Kind {
			case cryptotls.QUICNoEvent:
				idle++
				continue
			case cryptotls.QUICWriteData:
				messages[i] = append(messages[i], e.Data...)
				if err := ends[1-i].HandleData(e.Level, e.Data); err != nil {
					h.t.Fatal(err)
				}
			case cryptotls.QUICHandshakeDone:
				if i == 1 {
					if err := end.SendSessionTicket(cryptotls.QUICSessionTicketOptions{}); err != nil {
						h.t.Fatal(err)
					}
				}
			}
			idle = 0
		}
	}
	return messages
}

// pipe makes a handshake over a pipe, and returns what is in the clear of it.
func (h *handshaker) pipe(client, server *cryptotls.Config) (messages [2][]byte) {
	h.t.Helper()
	a, b := net.Pipe()
	taps := [2]*tap{{Conn: a}, {Conn: b}}
	done := make(chan error, 1)
	go func() {
		end := cryptotls.Server(taps[1], server)
		err := end.Handshake()
		if err == nil {
			_, err = end.Write([]byte("a message, and a ticket before it"))
		}
		done <- err
	}()
	end := cryptotls.Client(taps[0], client)
	if err := end.Handshake(); err != nil {
		h.t.Fatal(err)
	}
	if _, err := end.Read(make([]byte, 100)); err != nil {
		h.t.Fatal(err)
	}
	if err := <-done; err != nil {
		h.t.Fatal(err)
	}
	_, _ = a.Close(), b.Close()
	for i, tap := range taps {
		for b := tap.sent.Bytes(); len(b) > 0 && b[0] == byte(Handshake); {
			n := headSize + int(binary.BigEndian.Uint16(b[3:]))
			messages[i] = append(messages[i], b[headSize:n]...)
			b = b[n:]
		}
	}
	return messages
}

// A tap keeps what is written.
type tap struct {
	net.Conn
	sent bytes.Buffer
}

func (t *tap) Write(b []byte) (int, error) {
	t.sent.Write(b)
	return t.Conn.Write(b)
}

// isTLS13 says whether a kind is.
func (k *kind) isTLS13() bool { return !strings.HasPrefix(k.name, "TLS 1.2") }

// cutAll cuts messages that come in pieces.
func cutAll(t parsertest.TB, tls13 bool, pieces ...[]byte) (spans []parsers.Span) {
	t.Helper()
	d := Dissector{TLS13: tls13}
	for _, p := range pieces {
		had := len(spans)
		spans = d.Cut(testID, p, spans)
		sum := 0
		for _, sp := range spans[had:] {
			if sp.Len <= 0 || sp.At < 0 || sp.Body != sp.Len || sp.Protocol != testID || sp.Class != parsers.ClassUrgent || sp.Key == 0 {
				t.Fatalf("span %+v", sp)
			}
			sum += sp.Len
		}
		if sum != len(p) {
			t.Fatalf("spans of %d bytes, of %d", sum, len(p))
		}
	}
	return spans
}

// fields tells of each message which type it is and how long its random fields are. One
// longer than 64 bytes that is no key share is a ticket.
func fields(spans []parsers.Span, b []byte, from string) string {
	var out strings.Builder
	for i, sp := range spans {
		if sp.At == 0 {
			fmt.Fprintf(&out, "%s %d:", from, b[0])
		}
		switch long := sp.Len > 64 && sp.Len != 65 && sp.Len != 1216 && sp.Len != 1120; {
		case sp.Encrypted && long:
			out.WriteString(" TICKET")
		case sp.Encrypted:
			fmt.Fprintf(&out, " %d", sp.Len)
		}
		if i+1 == len(spans) || spans[i+1].At == 0 {
			out.WriteString("\n")
		}
		b = b[sp.Len:]
	}
	return out.String()
}

// TestCutHandshakes holds which fields of real handshakes are random: those. What is
// between them is the same in two connections of a kind and has the same keys, each another
// one; a random field is not the same.
func TestCutHandshakes(t *testing.T) {
	h := newHandshaker(t)
	for _, k := range kinds {
		both := h.connections(&k)
		got := "\n"
		for i, from := range []string{"client", "server"} {
			one, other := both[0][i], both[1][i]
			spans, again := cutAll(t, k.isTLS13(), one), cutAll(t, k.isTLS13(), other)
			got += fields(spans, one, from)
			if len(spans) != len(again) {
				t.Errorf("%s: %d spans, %d in another connection", k.name, len(spans), len(again))
				continue
			}
			at, index, keys := 0, 0, make(map[uint64]int)
			for j, sp := range spans {
				if sp.Key != again[j].Key || sp.Len != again[j].Len || sp.Encrypted != again[j].Encrypted {
					t.Errorf("%s: %s: span %+v, in another connection %+v", k.name, from, sp, again[j])
					break
				}
				if index++; sp.At == 0 {
					index = int(one[at]) << 8
				}
				if of, met := keys[sp.Key]; met && of != index {
					t.Errorf("%s: %s: two spans with a key", k.name, from)
				}
				keys[sp.Key] = index
				n := sp.Len
				if !sp.Encrypted && n > ticketKeyLen && j+1 < len(spans) && index>>8 == typeNewSessionTicket && spans[j+1].Len > 64 {
					n -= ticketKeyLen // crypto/tls names no key
				}
				same := bytes.Equal(one[at:at+n], other[at:at+n])
				if same == sp.Encrypted && !bytes.Equal(one[at:at+sp.Len], retryRandom[:]) {
					t.Errorf("%s: %s: %d bytes at %d: random %v, the same in another connection %v", k.name, from, sp.Len, at, sp.Encrypted, same)
				}
				at += sp.Len
			}
		}
		if diff := cmp.Diff(k.want, got); diff != "" {
			t.Errorf("%s:\n%s", k.name, diff)
		}
	}
}
