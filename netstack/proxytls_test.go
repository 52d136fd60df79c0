package netstack

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"sheaf/netstack/certtest"
)

var proxyClient, proxyServer = netip.MustParseAddrPort("10.1.0.7:40001"), netip.MustParseAddrPort("10.2.0.10:8883")

// The header byte for byte, as the specification has it, and as another implementation
// reads it.
func TestProxyTLSBytes(t *testing.T) {
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "plc-7"}}
	leaf := &x509.Certificate{SignatureAlgorithm: x509.ECDSAWithSHA256, PublicKey: certtest.NewKey(t).Public()}
	state := tls.ConnectionState{
		Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256,
		NegotiatedProtocol: "mqtt", ServerName: "broker.test",
		PeerCertificates: []*x509.Certificate{client}, VerifiedChains: [][]*x509.Certificate{{client}},
	}
	got, err := appendProxyTLS([]byte("before"), proxyClient, proxyServer, &state, leaf)
	if err != nil {
		t.Fatal(err)
	}
	inner := "\x07\x00\x00\x00\x00" + // TLS, a certificate on this connection and session; verified
		"\x21\x00\x07TLSv1.3" + "\x22\x00\x05plc-7" + "\x23\x00\x16TLS_AES_128_GCM_SHA256" +
		"\x24\x00\x11ecdsa-with-SHA256" + "\x25\x00\x05EC256"
	rest := "\x0a\x01\x00\x07" + "\x0a\x02\x00\x0a" + "\x9c\x41" + "\x22\xb3" +
		"\x01\x00\x04mqtt" + "\x02\x00\x0bbroker.test" + "\x20\x00" + string([]byte{byte(len(inner))}) + inner
	want := "before\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00" + string([]byte{byte(len(rest))}) + rest
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	read(t, got[len("before"):])
}

// read parses a header strictly: nothing of it may be left.
func read(t *testing.T, b []byte) (*proxyproto.Header, map[proxyproto.PP2Type]string, tlvparse.PP2SSL) {
	t.Helper()
	r := bufio.NewReader(bytes.NewReader(b))
	h, err := proxyproto.Read(r)
	if err != nil {
		t.Fatalf("%v: % x", err, b)
	}
	if left, _ := io.ReadAll(r); len(left) != 0 {
		t.Fatalf("left % x", left)
	}
	all, err := h.TLVs()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[proxyproto.PP2Type]string)
	var ssl tlvparse.PP2SSL
	for _, v := range all {
		values[v.Type] = string(v.Value)
		if v.Type == proxyproto.PP2_TYPE_SSL {
			if ssl, err = tlvparse.SSL(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h, values, ssl
}

// What is not known is left out, and flags tell of the client's certificate.
func TestProxyTLSFlags(t *testing.T) {
	client := &x509.Certificate{Subject: pkix.Name{CommonName: "plc-7"}}
	certificates, chains := []*x509.Certificate{client}, [][]*x509.Certificate{{client}}
	for _, tt := range []struct {
		name   string
		state  tls.ConnectionState
		flags  byte
		verify uint32
		cn     string
	}{
		{"no certificate", tls.ConnectionState{}, 1, 1, ""},
		{"certificate", tls.ConnectionState{PeerCertificates: certificates, VerifiedChains: chains}, 7, 0, "plc-7"},
		{"resumed", tls.ConnectionState{PeerCertificates: certificates, VerifiedChains: chains, DidResume: true}, 5, 0, "plc-7"},
		{"not verified", tls.ConnectionState{PeerCertificates: certificates}, 7, 1, "plc-7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.state.Version, tt.state.CipherSuite = tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
			b, err := appendProxyTLS(nil, netip.MustParseAddrPort("[fd01::7]:40001"), netip.MustParseAddrPort("[fd02::10]:8883"), &tt.state, nil)
			if err != nil {
				t.Fatal(err)
			}
			h, values, ssl := read(t, b)
			if h.SourceAddr.String() != "[fd01::7]:40001" || h.DestinationAddr.String() != "[fd02::10]:8883" || len(values) != 1 {
				t.Errorf("%v %v %v", h.SourceAddr, h.DestinationAddr, values)
			}
			cn, _ := ssl.ClientCN()
			version, _ := ssl.SSLVersion()
			cipher, _ := ssl.SSLCipher()
			if ssl.Client != tt.flags || ssl.Verify != tt.verify || cn != tt.cn || version != "TLSv1.2" || cipher != "ECDHE-RSA-CHACHA20-POLY1305" {
				t.Errorf("client %d, verify %d, name %q, %s %s", ssl.Client, ssl.Verify, cn, version, cipher)
			}
		})
	}
}

// A common name of 255 bytes is told, one of 256 is nobody, and neither is what is no
// UTF-8. A server's name is left out then.
func TestProxyTLSNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
	}{{strings.Repeat("a", 255), true}, {strings.Repeat("a", 256), false}, {"\xff", false}} {
		state := tls.ConnectionState{Version: tls.VersionTLS13, ServerName: tt.name}
		b, err := appendProxyTLS(nil, proxyClient, proxyServer, &state, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, values, _ := read(t, b); (values[proxyproto.PP2_TYPE_AUTHORITY] == tt.name) != tt.ok {
			t.Errorf("%d bytes of a server's name: %q", len(tt.name), values)
		}
		state.ServerName = ""
		state.PeerCertificates = []*x509.Certificate{{Subject: pkix.Name{CommonName: tt.name}}}
		b, err = appendProxyTLS(nil, proxyClient, proxyServer, &state, nil)
		if !tt.ok {
			if !errors.Is(err, errProxyName) || len(b) != 0 {
				t.Errorf("%d bytes of a client's name: %v and %d bytes", len(tt.name), err, len(b))
			}
			continue
		}
		_, _, ssl := read(t, b)
		if cn, _ := ssl.ClientCN(); cn != tt.name {
			t.Errorf("client's name %q", cn)
		}
	}
}

func TestProxyKeyNames(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for want, key := range map[string]any{"RSA2048": &rsaKey.PublicKey, "EC256": certtest.NewKey(t).Public(), "ED25519": ed25519.PublicKey(nil), "": nil} {
		if got := proxyKey(key); got != want {
			t.Errorf("%T is %q, want %q", key, got, want)
		}
	}
}

// What a plain server gets of a client with a certificate, over the stack.
func TestTLSFrontProxy(t *testing.T) {
	got := make(chan []byte, 10)
	ft := newFront(t, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		got <- b
	}, func(server *tls.Config, f *TLSFrontConfig, c *TerminateConfig) {
		f.Proxy = true
		c.ProxyProtocol = true // of other connections
		server.NextProtos = []string{"mqtt"}
	})
	<-got
	server := ft.server.Load().Clone()
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, ft.ca.Pool()
	ft.server.Store(server)
	cfg := ft.client()
	cfg.NextProtos = []string{"x-other", "mqtt"}
	cfg.Certificates = []tls.Certificate{ft.ca.Issue(t, certtest.Leaf{Name: "plc-7"})}
	c, _ := ft.dial(t, cfg)
	_, _ = io.WriteString(c, "MQTT")
	_ = c.CloseWrite()
	b := <-got
	if !bytes.HasSuffix(b, []byte("MQTT")) {
		t.Fatalf("%q", b)
	}
	h, values, ssl := read(t, b[:len(b)-4])
	cn, _ := ssl.ClientCN()
	sig, _ := ssl.SSLSigAlg()
	key, _ := ssl.SSLKeyAlg()
	if !strings.HasPrefix(h.SourceAddr.String(), "10.99.0.1:") || h.DestinationAddr.String() != "10.2.0.10:1883" ||
		values[proxyproto.PP2_TYPE_ALPN] != "mqtt" || values[proxyproto.PP2_TYPE_AUTHORITY] != "broker.test" ||
		cn != "plc-7" || !ssl.Verified() || !ssl.ClientCertConn() || sig != "ecdsa-with-SHA256" || key != "EC256" {
		t.Errorf("%v %v %+v", h, values, ssl)
	}
}
