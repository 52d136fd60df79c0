package replay

import (
	"net/netip"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/keylog"
)

// table returns what an end knows of TLS connections. Live, it is the gateway beside the
// broker that has secrets, and the other is told by it; so it is here. Which end of a
// connection is the server is judged as for all conversations.
func (r *Replay) table(end Direction) *seal.Table {
	cfg := seal.Config{Served: r.sides.serves}
	if end == Down {
		cfg.Secrets = r.cfg.Secrets
	}
	return seal.NewTable(cfg, keylog.DefaultConnections)
}

// serves tells whether the broker of a conversation is at an address.
func (s *sides) serves(server netip.AddrPort) bool { return s.servers[server] }

// A TLSReport is what was opened of TLS, and what was carried as it is.
type TLSReport struct {
	Connections uint64            `json:"connections"`      // of which a record was opened
	Records     uint64            `json:"records"`          // that were opened
	Bytes       uint64            `json:"bytes"`            // of their content
	Carried     map[string]uint64 `json:"carried"`          // protected records that were not, by reason
	Suites      map[string]uint64 `json:"suites,omitempty"` // connections whose cipher suite cannot be opened
}

// A SecretsReport is what secrets there were of TLS connections, for whoever gave them.
type SecretsReport struct {
	Connections uint64 `json:"connections"` // that there were secrets of
	Met         uint64 `json:"met"`         // of these, those whose ClientHello is in the capture
	Evicted     uint64 `json:"evicted"`     // of these, those that gave way to others
	BadLines    uint64 `json:"bad_lines"`   // of key logs, that could not be read
}

// tlsReport returns what was counted of TLS in a direction.
func (r *Replay) tlsReport(d Direction) TLSReport {
	out := TLSReport{Carried: make(map[string]uint64)}
	s := &r.Stats(d).TLS
	out.Connections, out.Records, out.Bytes = s.Connections, s.Records, s.Bytes
	for why := range seal.NumCarried {
		out.Carried[why.String()] = s.Carried[why]
	}
	out.Suites = s.SuiteNames()
	return out
}
