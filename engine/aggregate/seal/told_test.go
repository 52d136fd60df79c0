package seal

import (
	"bytes"
	"net/netip"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// telling returns both ends' view of a connection to a server: up is that of the client's
// gateway, down that of the server's.
func telling(t *testing.T) (up, down *Conn) {
	t.Helper()
	cfg := Config{Served: func(server netip.AddrPort) bool { return server.Port() == 8883 }}
	key := parsers.FlowKey{Version: 4, Proto: ip.TCP, SrcPort: 40001, DstPort: 8883}
	key.Src[0], key.Dst[0] = 1, 2
	back := key.Reverse()
	up, down = NewTable(cfg, 1).Flow(0, &key), NewTable(cfg, 1).Flow(0, &back)
	if up == nil || down == nil {
		t.Fatal("the connection is not opened")
	}
	return up, down
}

// tell has a gateway tell the other what it has to tell, with a segment of its flow.
func tell(t *testing.T, from, to *Conn) (secrets []byte) {
	t.Helper()
	secrets = from.Secrets()
	if err := to.table.Tell(&from.key, secrets); err != nil {
		t.Fatal(err)
	}
	return secrets
}

// OpenSSL writes the client's traffic secret only once the client's handshake is over, of
// which the other gateway has told then: it is told the traffic secret all the same, and
// not what it told itself.
func TestTrafficSecretComesLater(t *testing.T) {
	up, down := telling(t)
	material := func(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }
	down.suite, down.certificates = 0x1301, true
	down.set(stageHandshake, material(1), material(2))
	tell(t, down, up)
	if !up.Out.keys.has(stageHandshake, material(1)) {
		t.Fatal("the client's gateway was not told the handshake secret")
	}
	up.Out.keys.use(&up.Out, stageHandshake, 0)
	up.Out.tell(up.Out.keys.current)
	tell(t, up, down)
	down.set(stageTraffic, material(3), material(4))
	tell(t, down, up)
	if !up.Out.keys.has(stageTraffic, material(3)) {
		t.Error("the client's gateway was not told the traffic secret")
	}
	down.untold, down.theirs[stageHandshake].told = true, false
	if secrets := tell(t, down, up); len(secrets) > 0 {
		t.Error("the client's gateway is told what it told itself")
	}
}
