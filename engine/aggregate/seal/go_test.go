package seal

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	gotls "crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"sheaf/parsers"
	"sheaf/parsers/tls"
)

// deadline is what a handshake in memory does not come near to; one that hangs ends.
const deadline = 20 * time.Second

// certificate returns a server's certificate that it signs itself.
func certificate(t *testing.T, key crypto.Signer) gotls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"broker"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return gotls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A tap is a connection that keeps what is written to it.
type tap struct {
	net.Conn
	written []byte
}

func (c *tap) Write(b []byte) (int, error) {
	c.written = append(c.written, b...)
	return c.Conn.Write(b)
}

// A session is a connection of crypto/tls with itself, whose handshake is done.
type session struct {
	client, server *gotls.Conn
	up, down       *tap // what the client wrote, and the server
	keyLog         bytes.Buffer
}

// connect makes a session of a suite. In TLS 1.3 crypto/tls leaves nobody the choice: the
// server is let see that suite only among those that are offered.
func connect(t *testing.T, s Suite) *session {
	t.Helper()
	var key crypto.Signer
	var err error
	if strings.Contains(s.String(), "_RSA_") {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := new(session)
	client := &gotls.Config{InsecureSkipVerify: true, KeyLogWriter: &c.keyLog}
	server := &gotls.Config{Certificates: []gotls.Certificate{certificate(t, key)}}
	if s.TLS13() {
		server.GetConfigForClient = func(hello *gotls.ClientHelloInfo) (*gotls.Config, error) {
			for i := range hello.CipherSuites {
				hello.CipherSuites[i] = uint16(s)
			}
			return nil, nil
		}
	} else {
		client.MaxVersion, client.CipherSuites = gotls.VersionTLS12, []uint16{uint16(s)}
	}
	a, b := net.Pipe()
	for _, end := range []net.Conn{a, b} {
		if err := end.SetDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end.Close() })
	}
	c.up, c.down = &tap{Conn: a}, &tap{Conn: b}
	c.client, c.server = gotls.Client(c.up, client), gotls.Server(c.down, server)
	done := make(chan error)
	go func() { done <- c.server.Handshake() }()
	if err := c.client.Handshake(); err != nil {
		t.Fatal(err)
	}
	c.say(t, c.server, c.client, "what a client reads behind the server's tickets", done)
	if got := c.client.ConnectionState().CipherSuite; got != uint16(s) {
		t.Fatalf("suite %s, want %s", Suite(got), s)
	}
	return c
}

// say sends a text through the session; what before returns was done before.
func (c *session) say(t *testing.T, from, to *gotls.Conn, text string, before chan error) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		if before != nil {
			if err := <-before; err != nil {
				sent <- err
				return
			}
		}
		_, err := io.WriteString(from, text)
		sent <- err
	}()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(to, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v", got, err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

// secret returns what the key log says of a label, for a connection.
func secret(t *testing.T, keyLog, label string, random [RandomLen]byte) []byte {
	t.Helper()
	for line := range strings.Lines(keyLog) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == label && words[1] == hex.EncodeToString(random[:]) {
			return fromHex(t, words[2])
		}
	}
	t.Fatalf("no %s of the connection among %d lines", label, strings.Count(keyLog, "\n"))
	return nil
}

// keys returns those of both directions by the stages that follow one another.
func (c *session) keys(t *testing.T) (up, down []*Keys) {
	t.Helper()
	return streamKeys(t, c.up.written, c.down.written, c.keyLog.String())
}

// streamKeys returns the keys of what both sides wrote, by stages.
func streamKeys(t *testing.T, fromClient, fromServer []byte, keyLog string) (up, down []*Keys) {
	t.Helper()
	client, ok := tls.ClientRandom(fromClient)
	server, number, retry, ok2 := tls.ServerHello(fromServer)
	if !ok || !ok2 || retry {
		t.Fatalf("hellos: %v, %v, retry %v", ok, ok2, retry)
	}
	s := Suite(number)
	stage := func(list *[]*Keys, material []byte) {
		k, bad := NewKeys(s, material)
		if bad != nil {
			t.Fatal(bad)
		}
		*list = append(*list, k)
	}
	if s.TLS13() {
		stage(&up, secret(t, keyLog, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", client))
		stage(&up, secret(t, keyLog, "CLIENT_TRAFFIC_SECRET_0", client))
		stage(&down, secret(t, keyLog, "SERVER_HANDSHAKE_TRAFFIC_SECRET", client))
		stage(&down, secret(t, keyLog, "SERVER_TRAFFIC_SECRET_0", client))
		return up, down
	}
	ofClient, ofServer, err := Derive12(s, secret(t, keyLog, "CLIENT_RANDOM", client), client[:], server[:])
	if err != nil {
		t.Fatal(err)
	}
	stage(&up, ofClient)
	stage(&down, ofServer)
	return up, down
}

// A reopened stream is what checkStream has seen of one.
type reopened struct {
	protected int // records
	updates   int // of them, those that update the keys
	inner     []byte
}

// checkStream opens all protected records of a stream, seals them, and holds that they are
// the same bytes; so are the pieces of them. In TLS 1.3 they are those of application data
// (RFC 8446 section 5.2), in 1.2 all behind the ChangeCipherSpec.
func checkStream(t *testing.T, stream []byte, stages []*Keys) (seen reopened) {
	t.Helper()
	k, number, protected := stages[0], uint64(0), false
	for len(stream) > 0 {
		r, n, err := tls.Parse(stream)
		if errors.Is(err, parsers.ErrCut) {
			return seen // at the end of a capture
		}
		if err != nil {
			t.Fatal(err)
		}
		record := stream[:n]
		stream = stream[n:]
		if !(r.Name == tls.ApplicationData || protected && !k.Suite().TLS13()) {
			protected = protected || r.Name == tls.ChangeCipherSpec
			continue
		}
		inner, ok := k.Open(nil, record, number)
		if !ok && len(stages) > 1 {
			stages, number = stages[1:], 0
			k = stages[0]
			inner, ok = k.Open(nil, record, number)
		}
		if !ok {
			t.Fatalf("%s: record %d of %d bytes does not open", k.Suite(), number, n)
		}
		checkRecord(t, k, record, inner, number)
		seen.protected++
		seen.inner = append(seen.inner, inner...)
		number++
		if k.Suite().TLS13() && len(inner) == 6 && inner[0] == 24 && inner[5] == 22 { // KeyUpdate, RFC 8446 section 4.6.3
			if k, err = k.Next(); err != nil {
				t.Fatal(err)
			}
			seen.updates++
			number = 0
		}
	}
	return seen
}

func checkRecord(t *testing.T, k *Keys, record, inner []byte, number uint64) {
	t.Helper()
	var nonce *[explicitLen]byte
	begin := HeadLen + k.NonceLen()
	if k.NonceLen() > 0 {
		nonce = (*[explicitLen]byte)(record[HeadLen:])
	}
	if again := k.Seal(nil, [3]byte(record), nonce, inner, number); !bytes.Equal(again, record) {
		t.Fatalf("%s: record %d of %d bytes sealed to others", k.Suite(), number, len(record))
	}
	text := record[begin : len(record)-TagLen]
	piece := make([]byte, len(text)-len(text)/3)
	k.XOR(piece, text[len(text)/3:], number, nonce, len(text)/3)
	if !bytes.Equal(piece, inner[len(text)/3:]) {
		t.Fatalf("%s: piece of record %d is another", k.Suite(), number)
	}
	if found, ok := Find(k, record, number-min(number, 3), number+3); !ok || found != number {
		t.Fatalf("%s: record %d found as %d, %v", k.Suite(), number, found, ok)
	}
}

// TestRecordsOfGo holds for every suite that what crypto/tls wrote is opened and sealed
// again.
func TestRecordsOfGo(t *testing.T) {
	for _, s := range Suites() {
		t.Run(s.String(), func(t *testing.T) {
			c := connect(t, s)
			const request, answer = "a request", "and its answer"
			large := strings.Repeat("sheaf", 8000) // more than two records
			c.say(t, c.client, c.server, request, nil)
			c.say(t, c.server, c.client, answer, nil)
			c.say(t, c.server, c.client, large, nil)
			up, down := c.keys(t)
			if seen := checkStream(t, c.up.written, up); seen.protected < 2 || !bytes.Contains(seen.inner, []byte(request)) {
				t.Errorf("client: %d records, without the request", seen.protected)
			}
			if seen := checkStream(t, c.down.written, down); seen.protected < 5 || !bytes.Contains(seen.inner, []byte(answer)) {
				t.Errorf("server: %d records, without the answer", seen.protected)
			}
		})
	}
}

// TestGoUpdatesKeys holds Next against crypto/tls: KeyUpdates are sealed in the client's
// name, and the server goes to the next keys of both directions.
func TestGoUpdatesKeys(t *testing.T) {
	for _, s := range Suites() {
		if !s.TLS13() {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			c := connect(t, s)
			ups, downs := c.keys(t)
			up, down, sent := ups[1], downs[1], uint64(0)
			go io.Copy(io.Discard, c.up.Conn)
			for range 3 {
				// RFC 8446 section 4.6.3: update_requested, and the content type.
				records := up.Seal(nil, head, nil, []byte{24, 0, 0, 1, 1, byte(tls.Handshake)}, sent)
				up = next(t, up)
				records = up.Seal(records, head, nil, append([]byte("text"), byte(tls.ApplicationData)), 0)
				sent = 1
				before := len(c.down.written)
				c.echo(t, records, len("text"))
				down = c.openUpdate(t, c.down.written[before:], down)
			}
		})
	}
}

func next(t *testing.T, k *Keys) *Keys {
	t.Helper()
	n, err := k.Next()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// echo writes records to the server and has it say the n bytes of them back.
func (c *session) echo(t *testing.T, records []byte, n int) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		got := make([]byte, n)
		_, err := io.ReadFull(c.server, got)
		if err == nil {
			_, err = c.server.Write(got)
		}
		done <- err
	}()
	if _, err := c.up.Conn.Write(records); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// openUpdate opens the server's KeyUpdate and what it echoed behind it, and returns its
// next keys.
func (c *session) openUpdate(t *testing.T, records []byte, down *Keys) *Keys {
	t.Helper()
	_, n, err := tls.Parse(records)
	if err != nil {
		t.Fatal(err)
	}
	const tickets = 10 // more records than the server has sent before
	if _, ok := Find(down, records[:n], 0, tickets); !ok {
		t.Fatal("the server's KeyUpdate does not open")
	}
	down = next(t, down)
	inner, ok := down.Open(nil, records[n:], 0)
	if want := append([]byte("text"), byte(tls.ApplicationData)); !ok || !bytes.Equal(inner, want) {
		t.Fatalf("behind the KeyUpdate: %x, %v", inner, ok)
	}
	return down
}
