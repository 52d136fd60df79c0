package credentials

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"sync"
)

const (
	// ticketLen is the length of a ticket in bytes: nobody guesses one of 2^128.
	ticketLen = 16
	// maxSessions is how many sessions are kept: as many as a gateway has connections
	// at most.
	maxSessions = 1 << 14
	// maxSessionBytes bounds them in bytes: 2 kB each, a session with a client's
	// certificate and the authority's.
	maxSessionBytes = maxSessions * 2048
)

type ticket [ticketLen]byte

// sessions remember sessions by their tickets, and forget the oldest.
type sessions struct {
	mu    sync.Mutex
	known map[ticket][]byte
	order []ticket // of known, oldest first
	bytes int      // of known
}

// add keeps a session and returns its ticket.
func (s *sessions) add(state *tls.SessionState) ([]byte, error) {
	b, err := state.Bytes()
	if err != nil {
		return nil, err
	}
	var id ticket
	_, _ = rand.Read(id[:]) // never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[ticket][]byte)
	}
	s.known[id] = b
	s.order = append(s.order, id)
	s.bytes += len(b)
	for len(s.order) > maxSessions || s.bytes > maxSessionBytes {
		oldest := s.known[s.order[0]]
		delete(s.known, s.order[0])
		s.order = s.order[1:]
		s.bytes -= len(oldest)
		clear(oldest) // it has a secret
	}
	return id[:], nil
}

// get returns the session of a ticket, or nil where there is none (any more), which is no
// error: the client then shakes hands in full.
func (s *sessions) get(id []byte) (*tls.SessionState, error) {
	if len(id) != ticketLen {
		return nil, nil
	}
	s.mu.Lock()
	b := bytes.Clone(s.known[ticket(id)]) // what is made of it has it still when it is cleared here
	s.mu.Unlock()
	if b == nil {
		return nil, nil
	}
	return tls.ParseSessionState(b)
}
