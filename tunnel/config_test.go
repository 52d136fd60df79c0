package tunnel

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestConfigErrors(t *testing.T) {
	k, f, g := newKey(t), newKey(t).Fingerprint(), newKey(t).Fingerprint()
	peer := PeerConfig{Name: "p", Fingerprint: f, Endpoint: "127.0.0.1:4747"}
	for _, test := range []struct {
		cfg  Config
		want error
		says string
	}{
		{Config{}, ErrConfig, "no key"},
		{Config{Key: k, Carriers: []Carrier{QUIC, 9}}, ErrConfig, "Carrier(9)"},
		{Config{Key: k, Carriers: []Carrier{QUIC, QUIC}}, ErrConfig, "twice"},
		{Config{Key: k, Carriers: []Carrier{QUIC, Plain}}, ErrConfig, "plain cannot"},
		{Config{Key: k, DialTimeout: -1}, ErrConfig, "DialTimeout"},
		{Config{Key: k, Listen: "4747"}, ErrAddress, "4747"},
		{Config{Key: k, Listen: "127.0.0.1:http"}, ErrAddress, "http"},
		{Config{Key: k, Listen: "127.0.0.1:99999"}, ErrAddress, "99999"},
		{Config{Key: k, Listen: "192.0.2.1:4747"}, ErrAddress, "no such address"},
		{Config{Key: k, Peers: []PeerConfig{{Name: "", Fingerprint: f}}}, ErrConfig, "no name"},
		{Config{Key: k, Peers: []PeerConfig{{Name: "p"}}}, ErrConfig, "no fingerprint"},
		{Config{Key: k, Peers: []PeerConfig{{Name: "p", Fingerprint: k.Fingerprint()}}}, ErrConfig, "own"},
		{Config{Key: k, Peers: []PeerConfig{{Name: "p", Fingerprint: f}}}, ErrConfig, "neither can call"},
		{Config{Key: k, Peers: []PeerConfig{peer, {Name: "p", Fingerprint: g, Endpoint: peer.Endpoint}}}, ErrConfig, `two peers are named "p"`},
		{Config{Key: k, Peers: []PeerConfig{peer, {Name: "q", Fingerprint: f, Endpoint: peer.Endpoint}}}, ErrConfig, "same fingerprint"},
		{Config{Key: k, Peers: []PeerConfig{{Name: "p", Fingerprint: f, Endpoint: "gw"}}}, ErrAddress, `"p"`},
		{Config{Key: k, Peers: []PeerConfig{{Name: "p", Fingerprint: f, Endpoint: ":4747"}}}, ErrAddress, "no host"},
		{Config{Key: k, Peers: []PeerConfig{{Name: "p", Fingerprint: f, Endpoint: "gw:0"}}}, ErrAddress, "port"},
	} {
		tun, err := New(test.cfg)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%v, want %q", err, test.says)
		}
		if err == nil {
			tun.Close()
		}
	}
}

func TestPortInUse(t *testing.T) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	if _, err := New(Config{Key: newKey(t), Listen: udp.LocalAddr().String()}); !errors.Is(err, ErrInUse) {
		t.Errorf("udp: %v", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := New(Config{Key: newKey(t), Listen: ln.Addr().String()}); !errors.Is(err, ErrInUse) {
		t.Errorf("tcp: %v", err)
	}
	eventually(t, "all goroutines gone", func() bool { return len(ownGoroutines()) == 0 })
}

func TestListenTakesBothPorts(t *testing.T) {
	tun := newTunnel(t, Config{Key: newKey(t), Listen: "localhost:0"})
	if tun.udp.LocalAddr().(*net.UDPAddr).Port != tun.tcpLn.Addr().(*net.TCPAddr).Port {
		t.Errorf("%v and %v", tun.udp.LocalAddr(), tun.tcpLn.Addr())
	}
	if tun.Peer("nobody") != nil {
		t.Error("a peer from nowhere")
	}
	silent := newTunnel(t, Config{Key: newKey(t)})
	if silent.Addr() != nil {
		t.Errorf("address %v without listening", silent.Addr())
	}
}

func TestConfigDefaults(t *testing.T) {
	c, err := Config{Key: newKey(t), KeepAlive: time.Minute}.withDefaults()
	if err != nil || c.BackoffMin != 250*time.Millisecond || c.BackoffMax != 30*time.Second || c.IdleTimeout != 2*time.Minute || len(c.Carriers) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCarrierText(t *testing.T) {
	for _, c := range []Carrier{QUIC, TLS, Plain} {
		if got, err := ParseCarrier(strings.ToUpper(c.String())); err != nil || got != c {
			t.Errorf("%v: %v, %v", c, got, err)
		}
	}
	if _, err := ParseCarrier("udp"); !errors.Is(err, ErrConfig) {
		t.Errorf("%v", err)
	}
}
