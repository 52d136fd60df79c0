package credentials

import (
	"crypto/tls"
	"testing"
	"time"

	"sheaf/netstack/certtest"
)

// state returns a session as crypto/tls has it.
func state(t *testing.T) *tls.SessionState {
	t.Helper()
	var kept *tls.SessionState
	b := newBench(t, func(b *bench) { b.clientCA() })
	b.c.Config().WrapSession = func(_ tls.ConnectionState, s *tls.SessionState) ([]byte, error) {
		kept = s
		return make([]byte, ticketLen), nil
	}
	client := b.client(b.ca.Issue(t, certtest.Leaf{Name: "plc"}))
	client.ClientSessionCache = tls.NewLRUClientSessionCache(1) // otherwise it asks for none
	b.serves(client, 2)
	if kept == nil {
		t.Fatal("no session")
	}
	return kept
}

// A session is found by its ticket alone, and what was found stays whole when it is
// forgotten.
func TestSessions(t *testing.T) {
	var s sessions
	kept := state(t)
	id, err := s.add(kept)
	if err != nil || len(id) != 16 {
		t.Fatalf("ticket of %d bytes, %v", len(id), err)
	}
	want, _ := kept.Bytes()
	for _, wrong := range [][]byte{nil, id[:15], append([]byte{0}, id...), make([]byte, 16)} {
		if got, err := s.get(wrong); got != nil || err != nil {
			t.Errorf("ticket % x: %v, %v", wrong, got, err)
		}
	}
	got, err := s.get(id)
	if err != nil || got == nil {
		t.Fatal(err)
	}
	inside := s.known[ticket(id)]
	clear(inside)
	if b, err := got.Bytes(); err != nil || string(b) != string(want) {
		t.Errorf("the session changed, %v", err)
	}
}

// The oldest are forgotten and cleared: at the bound there is room for one, past it not.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	kept := state(t)
	b, err := kept.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	first, _ := s.add(kept)
	secret := s.known[ticket(first)]
	for range maxSessions - 1 {
		_, _ = s.add(kept)
	}
	if got, _ := s.get(first); got == nil || len(s.known) != maxSessions || s.bytes != maxSessions*len(b) {
		t.Fatalf("%d sessions, %d bytes, and the first is %v", len(s.known), s.bytes, got)
	}
	_, _ = s.add(kept)
	if got, _ := s.get(first); got != nil || len(s.known) != maxSessions || len(s.order) != maxSessions {
		t.Errorf("%d sessions past the bound", len(s.known))
	}
	for _, c := range secret {
		if c != 0 {
			t.Fatal("a forgotten session is not cleared")
		}
	}

	kept.Extra = [][]byte{make([]byte, maxSessionBytes/2-1<<12)}
	for range 3 {
		_, _ = s.add(kept)
	}
	if len(s.known) != 2 || s.bytes > maxSessionBytes {
		t.Errorf("%d sessions, %d bytes", len(s.known), s.bytes)
	}
}

// A session goes on, with the client's certificate in it, and is of no use once the
// client's authority is not trusted any more.
func TestSessionAndTrust(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		b := newBench(t, func(b *bench) { b.clientCA() })
		client := b.client(b.ca.Issue(t, certtest.Leaf{Name: "plc"}))
		client.MaxVersion, client.ClientSessionCache = version, tls.NewLRUClientSessionCache(1)
		for i := range 2 {
			got, _, err := b.connect(client)
			if err != nil || got.DidResume != (i > 0) {
				t.Errorf("%s: resumed %v, %v", tls.VersionName(version), got.DidResume, err)
			}
		}
		b.file("ca.crt", certtest.PEM("CERTIFICATE", certtest.NewCA(t, "another").Certificate.Raw))
		b.c.look(time.Now())
		if _, _, err := b.connect(client); err == nil {
			t.Errorf("%s: a session outlives the trust in its client", tls.VersionName(version))
		}
	}
}
