package seal

import (
	"net/netip"

	"sheaf/parsers/tls"
)

// RandomLen is the length of a ClientHello's random, in bytes, by which key logs name
// connections (RFC 8446 section 4.1.2).
const RandomLen = tls.RandomLen

// Secrets are what is known of one connection's secrets. In TLS 1.2 there is a master
// secret of 48 bytes (RFC 5246 section 8.1), in TLS 1.3 a traffic secret for each
// direction and stage, of the length of the suite's hash, 32 or 48 bytes (RFC 8446
// section 7.1). What is not known is empty.
type Secrets struct {
	Master          []byte // CLIENT_RANDOM in a key log
	ClientHandshake []byte // CLIENT_HANDSHAKE_TRAFFIC_SECRET
	ServerHandshake []byte // SERVER_HANDSHAKE_TRAFFIC_SECRET
	ClientTraffic   []byte // CLIENT_TRAFFIC_SECRET_0
	ServerTraffic   []byte // SERVER_TRAFFIC_SECRET_0
}

// clear overwrites the secrets.
func (s *Secrets) clear() {
	for _, b := range [][]byte{s.Master, s.ClientHandshake, s.ServerHandshake, s.ClientTraffic, s.ServerTraffic} {
		clear(b)
	}
}

// A Source is where secrets come from, by the random of a connection's ClientHello. What
// it returns is the caller's, who clears it, and zero where nothing is known (yet). It
// may be asked again and again, also by several lanes at once.
type Source interface {
	Secrets(random *[RandomLen]byte) Secrets
}

// A Forgetter is a Source that is told when a connection is over, and forgets its secrets.
type Forgetter interface {
	Forget(random *[RandomLen]byte)
}

// Config says which connections are opened, and with whose secrets.
type Config struct {
	Served  func(server netip.AddrPort) bool // whether connections to a server may be opened
	Secrets Source                           // nil where only the peer has any
	Trusted func(from netip.Addr) bool       // whether the peer may send from an address, and tell of its connections; nil for all
}
