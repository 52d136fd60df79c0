package seal

// A Carried is a reason for which a protected record is carried as it is.
type Carried uint8

// The reasons.
const (
	CarriedSecrets  Carried = iota // its secrets are not known, or not yet
	CarriedSuite                   // its cipher suite cannot be opened
	CarriedMismatch                // the secrets do not fit, or its number was not found
	CarriedUnnamed                 // its server is not named
	CarriedShort                   // it ends a handshake whose secret would take more than it saves
	NumCarried
)

func (c Carried) String() string {
	return [...]string{"no secrets", "cipher suite", "secrets do not fit", "server not named", "short handshake"}[c]
}

// Stats count what was opened, of the direction that is sent.
type Stats struct {
	Connections uint64             // of which a record was opened
	Records     uint64             // that were opened
	Bytes       uint64             // of their content
	Carried     [NumCarried]uint64 // protected records that were not, by why
	Suites      map[Suite]uint64   // connections with suites that cannot be opened
}

// Add adds the counts of o to s, which stays independent of it.
func (s *Stats) Add(o *Stats) {
	s.Connections += o.Connections
	s.Records += o.Records
	s.Bytes += o.Bytes
	for i := range o.Carried {
		s.Carried[i] += o.Carried[i]
	}
	for suite, n := range o.Suites {
		s.suites()[suite] += n
	}
}

// maxSuites bounds how many suites are counted: there are less than 400, and a server
// may say any number.
const maxSuites = 64

func (s *Stats) suites() map[Suite]uint64 {
	if s.Suites == nil {
		s.Suites = make(map[Suite]uint64)
	}
	return s.Suites
}

// SuiteNames returns Suites by their names, nil where there are none.
func (s *Stats) SuiteNames() map[string]uint64 {
	if len(s.Suites) == 0 {
		return nil
	}
	names := make(map[string]uint64, len(s.Suites))
	for suite, n := range s.Suites {
		names[suite.String()] += n
	}
	return names
}

func (s *Stats) refuse(suite Suite) {
	if m := s.suites(); len(m) < maxSuites || m[suite] > 0 {
		m[suite]++
	}
}
