package keylog

import (
	"container/list"
	"io"
	"sync"

	"golang.org/x/time/rate"

	"sheaf/engine/aggregate/seal"
)

// DefaultConnections is how many connections a Store knows at once, where it is not told:
// about 400 bytes each, so 26 MB. It is six times the connections of the largest broker
// that sheaf was measured with.
const DefaultConnections = 1 << 16

// How often a Store looks into files because a connection is not known. A look is two
// system calls, 10 us at most, so these take 4 % of a core, however many connections
// nobody writes down. The core asks three times in a handshake: a broker that takes 1,000
// connections a second has each look that it needs, and a burst of 20 as well.
const (
	looksPerSecond = 4000
	looksAtOnce    = 64
)

// A Store keeps the secrets of connections. Its methods may be called at once.
type Store struct {
	mu    sync.Mutex
	limit int
	known map[[seal.RandomLen]byte]*list.Element // of order
	order *list.List                             // of *connection, the oldest first
	stats Stats

	looks     *rate.Limiter
	followers []*Follower // replaced, never changed
}

// A connection is what is known of one.
type connection struct {
	random  [seal.RandomLen]byte
	secrets [numLabels]secret
	asked   bool // somebody had a use for them
}

// Stats count what a Store was fed and asked, since it was made.
type Stats struct {
	Lines       uint64 // with a secret
	Bad         uint64 // that could not be read
	Connections uint64 // that there were secrets of
	Asked       uint64 // of these, whose secrets somebody asked for
	Evicted     uint64 // of these, that gave way to others
	Kept        uint64 // connections that are known now
}

// NewStore returns a Store of so many connections at most, DefaultConnections for 0. The
// oldest give way to new ones: a connection whose packets pass is asked for when it
// begins, and whoever asked has a copy; the longer a connection was not asked for, the
// less likely it is that its packets ever pass.
func NewStore(connections int) *Store {
	if connections <= 0 {
		connections = DefaultConnections
	}
	return &Store{
		limit: connections, known: make(map[[seal.RandomLen]byte]*list.Element), order: list.New(),
		looks: rate.NewLimiter(looksPerSecond, looksAtOnce),
	}
}

// Add takes the text of a key log, whole lines; the last one needs no end. What is wrong
// in it is counted, and else passed over. The text is borrowed.
func (s *Store) Add(text []byte) {
	var l lines
	l.add(text, s.line)
	l.end(s.line)
}

// Writer returns a writer for a tls.Config's KeyLogWriter: each Write has whole lines.
// It may be called by many at once, and never fails.
func (s *Store) Writer() io.Writer { return writer{s} }

type writer struct{ store *Store }

func (w writer) Write(p []byte) (int, error) {
	w.store.Add(p)
	return len(p), nil
}

// line takes a line; ok tells whether it is of a length that lines have.
func (s *Store) line(b []byte, ok bool) {
	var e entry
	what := bad
	if ok {
		what = parseLine(b, &e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch what {
	case bad:
		s.stats.Bad++
	case kept:
		s.stats.Lines++
		c := s.connection(&e.random)
		c.secrets[e.label] = e.secret
		clear(e.secret.bytes[:])
	}
}

// connection returns what is known of a connection, a new one if need be.
func (s *Store) connection(random *[seal.RandomLen]byte) *connection {
	if at := s.known[*random]; at != nil {
		return at.Value.(*connection)
	}
	if s.order.Len() >= s.limit {
		s.drop(s.order.Front())
		s.stats.Evicted++
	}
	c := &connection{random: *random}
	s.known[*random] = s.order.PushBack(c)
	s.stats.Connections++
	return c
}

// drop forgets a connection, and clears its secrets.
func (s *Store) drop(at *list.Element) {
	c := s.order.Remove(at).(*connection)
	delete(s.known, c.random)
	clear(c.secrets[:])
}

// Secrets returns what is known of a connection (seal.Source). Where that is not all that
// there can be, its Followers look into their files first, if that was not done too often
// of late.
func (s *Store) Secrets(random *[seal.RandomLen]byte) seal.Secrets {
	s.mu.Lock()
	c := s.ask(random)
	files := s.followers
	if (c == nil || !c.complete()) && len(files) > 0 && s.looks.Allow() {
		s.mu.Unlock()
		for _, f := range files {
			f.Look()
		}
		s.mu.Lock()
		c = s.ask(random)
	}
	defer s.mu.Unlock()
	if c == nil {
		return seal.Secrets{}
	}
	return seal.Secrets{
		Master:          c.secrets[master].copy(),
		ClientHandshake: c.secrets[clientHandshake].copy(),
		ServerHandshake: c.secrets[serverHandshake].copy(),
		ClientTraffic:   c.secrets[clientTraffic].copy(),
		ServerTraffic:   c.secrets[serverTraffic].copy(),
	}
}

// ask returns a connection that is asked for, nil if it is not known.
func (s *Store) ask(random *[seal.RandomLen]byte) *connection {
	at := s.known[*random]
	if at == nil {
		return nil
	}
	c := at.Value.(*connection)
	if !c.asked {
		c.asked = true
		s.stats.Asked++
	}
	return c
}

// complete tells whether there is all that a key log says of a connection.
func (c *connection) complete() bool {
	if c.secrets[master].n > 0 {
		return true
	}
	for l := clientHandshake; l < numLabels; l++ {
		if c.secrets[l].n == 0 {
			return false
		}
	}
	return true
}

// Forget clears the secrets of a connection that has ended.
func (s *Store) Forget(random *[seal.RandomLen]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.known[*random]; at != nil {
		s.drop(at)
	}
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.stats
	n.Kept = uint64(s.order.Len())
	return n
}

// Close ends the Followers, and clears all secrets.
func (s *Store) Close() error {
	s.mu.Lock()
	files := s.followers
	s.followers = nil
	s.mu.Unlock()
	for _, f := range files {
		f.close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.order.Len() > 0 {
		s.drop(s.order.Front())
	}
	return nil
}

// Follow has the Store read a key log as it grows, from what is in it now, until Close.
// That the file is not there, or may not be used, is no error: it may come, or be mended.
func (s *Store) Follow(c FileConfig) *Follower {
	f := newFollower(s, c)
	s.mu.Lock()
	s.followers = append(s.followers[:len(s.followers):len(s.followers)], f)
	s.mu.Unlock()
	return f
}

var _ seal.Source = (*Store)(nil)
