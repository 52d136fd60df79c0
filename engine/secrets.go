package engine

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"time"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/keylog"
)

// secrets are what the gateway knows of TLS connections by itself: which servers' are
// opened, and where their secrets come from at this end. One store takes all of them,
// since connections are told apart by their random.
type secrets struct {
	servers []string
	served  map[netip.AddrPort]bool
	store   *keylog.Store // nil where only the other gateway has any
	logs    []*keylog.Follower
}

// openSecrets begins to follow the key logs of the [[tls]] tables; nil without a table.
// That a key log is not there, or is refused, keeps no gateway from running: a broker may
// start later than it, and its packets are carried meanwhile.
func openSecrets(tables []TLS, log *slog.Logger) (*secrets, error) {
	if len(tables) == 0 {
		return nil, nil
	}
	s := &secrets{served: make(map[netip.AddrPort]bool)}
	for i := range tables {
		t := &tables[i]
		servers, err := t.servers()
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		for _, a := range servers {
			s.served[a] = true
			s.servers = append(s.servers, a.String())
		}
		if s.store == nil && (t.KeyLog != "" || t.Certificate != "") {
			s.store = keylog.NewStore(0)
		}
		if t.KeyLog != "" {
			s.follow(t, log)
		}
	}
	return s, nil
}

// follow has the store read the key log of a table.
func (s *secrets) follow(t *TLS, log *slog.Logger) {
	note := func(f keylog.FileStatus) { noteKeyLog(log, f) }
	f := s.store.Follow(keylog.FileConfig{Path: t.KeyLog, Empty: t.Empty, Changed: note})
	s.logs = append(s.logs, f)
	if status := f.Status(); status.Fault == nil {
		note(status)
	}
}

// noteKeyLog logs how it is with a key log.
func noteKeyLog(log *slog.Logger, f keylog.FileStatus) {
	switch {
	case errors.Is(f.Fault, fs.ErrNotExist):
		log.Info("key log is not there, and is waited for", "path", f.Path)
	case f.Fault != nil:
		log.Error("key log cannot be used, connections whose secrets it has are not opened", "err", f.Fault)
	case f.OnDisk:
		log.Warn("key log is read, and is on a disk: put it on a tmpfs", "path", f.Path)
	default:
		log.Info("key log is read", "path", f.Path)
	}
}

// config returns what lanes need to know, nil where nothing is opened.
func (s *secrets) config() *seal.Config {
	if s == nil {
		return nil
	}
	c := &seal.Config{Served: func(server netip.AddrPort) bool {
		return s.served[netip.AddrPortFrom(server.Addr().Unmap(), server.Port())]
	}}
	if s.store != nil {
		c.Secrets = s.store
	}
	return c
}

// writer returns where a TLS server in this process writes its key log. There has to be a
// table with a certificate.
func (s *secrets) writer() io.Writer { return s.store.Writer() }

// Close ends the following of key logs, and clears all secrets.
func (s *secrets) Close() error {
	if s == nil || s.store == nil {
		return nil
	}
	return s.store.Close()
}

// A SecretsStatus tells of the secrets of TLS connections at this end, and of none of
// them.
type SecretsStatus struct {
	Servers     []string       `json:"servers"`     // whose connections are opened
	Connections uint64         `json:"connections"` // whose secrets were found at this end
	Asked       uint64         `json:"asked"`       // of these, those that a flow was seen of
	Known       uint64         `json:"known"`       // of these, those that are still remembered
	Evicted     uint64         `json:"evicted"`     // of these, those that gave way to others
	Lines       uint64         `json:"lines"`       // of key logs, with a secret
	Bad         uint64         `json:"bad_lines"`   // of key logs, which could not be read
	KeyLogs     []KeyLogStatus `json:"key_logs,omitempty"`
}

// A KeyLogStatus tells of a file.
type KeyLogStatus struct {
	Path   string    `json:"path"`
	Fault  string    `json:"fault,omitempty"` // why it is not read, or not emptied
	Grew   time.Time `json:"grew,omitzero"`   // when something was last found in it
	Bytes  uint64    `json:"bytes"`           // that were read
	OnDisk bool      `json:"on_disk"`         // it is on no tmpfs
}

// status returns what there is to tell, nil where nothing is opened.
func (s *secrets) status() *SecretsStatus {
	if s == nil {
		return nil
	}
	out := &SecretsStatus{Servers: s.servers}
	if s.store == nil {
		return out
	}
	n := s.store.Stats()
	out.Connections, out.Asked, out.Known, out.Evicted = n.Connections, n.Asked, n.Kept, n.Evicted
	out.Lines, out.Bad = n.Lines, n.Bad
	for _, f := range s.logs {
		file := f.Status()
		k := KeyLogStatus{Path: file.Path, Grew: file.Grew, Bytes: file.Bytes, OnDisk: file.OnDisk}
		if file.Fault != nil {
			k.Fault = file.Fault.Error()
		}
		out.KeyLogs = append(out.KeyLogs, k)
	}
	return out
}
