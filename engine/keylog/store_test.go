package keylog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sheaf/engine/aggregate/seal"
)

// random returns the random of connection n.
func random(n int) *[seal.RandomLen]byte {
	r := [seal.RandomLen]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n), 0xab}
	return &r
}

// secretOf returns a secret of connection n, other for each label.
func secretOf(n int, name string, length int) []byte {
	return bytes.Repeat([]byte{byte(n), byte(len(name)), name[0], byte(length)}, length/4)
}

// lineOf returns a line about connection n, without its end.
func lineOf(n int, name string, length int) string {
	return fmt.Sprintf("%s %x %x", name, *random(n), secretOf(n, name, length))
}

// tls13 are the lines of a connection of TLS 1.3, each with its end.
func tls13(n int) string {
	var b strings.Builder
	for _, name := range []string{
		"CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET", "EXPORTER_SECRET", "SERVER_TRAFFIC_SECRET_0", "CLIENT_TRAFFIC_SECRET_0",
	} {
		b.WriteString(lineOf(n, name, 32) + "\n")
	}
	return b.String()
}

// tls12 is the line of a connection of TLS 1.2.
func tls12(n int) string { return lineOf(n, "CLIENT_RANDOM", 48) + "\n" }

func TestStoreTLS13(t *testing.T) {
	s := NewStore(0)
	s.Add([]byte(tls13(1) + tls13(2)))
	got := s.Secrets(random(2))
	for _, tt := range []struct {
		name string
		got  []byte
	}{
		{"CLIENT_HANDSHAKE_TRAFFIC_SECRET", got.ClientHandshake}, {"SERVER_HANDSHAKE_TRAFFIC_SECRET", got.ServerHandshake},
		{"CLIENT_TRAFFIC_SECRET_0", got.ClientTraffic}, {"SERVER_TRAFFIC_SECRET_0", got.ServerTraffic},
	} {
		if want := secretOf(2, tt.name, 32); !bytes.Equal(tt.got, want) {
			t.Errorf("%s %x, expected %x", tt.name, tt.got, want)
		}
	}
	if got.Master != nil {
		t.Errorf("a master secret %x", got.Master)
	}
	if n := s.Stats(); n != (Stats{Lines: 8, Connections: 2, Asked: 1, Kept: 2}) {
		t.Errorf("%+v", n)
	}
}

func TestStoreTLS12(t *testing.T) {
	s := NewStore(0)
	s.Add([]byte(tls12(1)))
	if got, want := s.Secrets(random(1)).Master, secretOf(1, "CLIENT_RANDOM", 48); !bytes.Equal(got, want) {
		t.Errorf("%x, expected %x", got, want)
	}
	if got := s.Secrets(random(2)); got.Master != nil || got.ClientTraffic != nil {
		t.Errorf("secrets of a connection that is not known: %+v", got)
	}
}

// What Secrets returns is the caller's: changing it changes nothing here, and what
// becomes of the connection here does not change it.
func TestSecretsAreTheCallers(t *testing.T) {
	s := NewStore(0)
	s.Add([]byte(tls12(1)))
	first, second, want := s.Secrets(random(1)).Master, s.Secrets(random(1)).Master, secretOf(1, "CLIENT_RANDOM", 48)
	clear(first)
	if !bytes.Equal(second, want) || !bytes.Equal(s.Secrets(random(1)).Master, want) {
		t.Error("clearing a copy cleared another")
	}
	s.Forget(random(1))
	if !bytes.Equal(second, want) {
		t.Error("forgetting a connection cleared a copy")
	}
}

// Lines as RFC 9850 section 2 has them, and others: what is wrong is counted, and what
// follows it is read.
func TestLines(t *testing.T) {
	good := lineOf(1, "CLIENT_RANDOM", 48)
	upper := "CLIENT_RANDOM " + strings.ToUpper(strings.TrimPrefix(good, "CLIENT_RANDOM "))
	sha384 := lineOf(1, "CLIENT_TRAFFIC_SECRET_0", 48)
	for _, tt := range []struct {
		name, text string
		lines, bad uint64
	}{
		{"LF", good + "\n", 1, 0},
		{"CRLF", good + "\r\n", 1, 0},
		{"CR", good + "\r" + good + "\r", 2, 0},
		{"no end", good, 1, 0},
		{"capital hex", upper + "\n", 1, 0},
		{"SHA-384", sha384 + "\n", 1, 0},
		{"blank lines and comments", "\n\n# a comment\r\n\r\n" + good + "\n", 1, 0},
		{"zeros of a hole", "\x00\x00\x00" + good + "\n\x00", 1, 0},
		{"labels that nobody needs", "EXPORTER_SECRET 00 00\nCLIENT_EARLY_TRAFFIC_SECRET 00 00\nEARLY_EXPORTER_SECRET 00 00\nECH_SECRET 00 00\nECH_CONFIG 00 00\nRSA 00 00\n", 0, 0},
		{"a label to come", "SERVER_TRAFFIC_SECRET_1 00 00\n", 0, 0},
		{"no hex in the random", strings.Replace(good, "ab", "xy", 1) + "\n", 0, 1},
		{"no hex in the secret", good[:len(good)-1] + "g\n", 0, 1},
		{"a short random", strings.Replace(good, "ab", "", 1) + "\n", 0, 1},
		{"a long random", strings.Replace(good, "ab", "abab", 1) + "\n", 0, 1},
		{"a secret cut to half a byte", good[:len(good)-1] + "\n", 0, 1},
		{"a master secret of 47 bytes", good[:len(good)-2] + "\n", 0, 1},
		{"a master secret of 49 bytes", good + "00\n", 0, 1},
		{"a master secret of 32 bytes", lineOf(1, "CLIENT_RANDOM", 32) + "\n", 0, 1},
		{"a traffic secret of 40 bytes", lineOf(1, "CLIENT_TRAFFIC_SECRET_0", 40) + "\n", 0, 1},
		{"a traffic secret of 52 bytes", lineOf(1, "CLIENT_TRAFFIC_SECRET_0", 52) + "\n", 0, 1},
		{"an empty secret", "CLIENT_RANDOM " + hex.EncodeToString(random(1)[:]) + " \n", 0, 1},
		{"no secret", "CLIENT_RANDOM " + hex.EncodeToString(random(1)[:]) + "\n", 0, 1},
		{"no random", "CLIENT_RANDOM\n", 0, 1},
		{"two spaces", strings.Replace(good, " ", "  ", 1) + "\n", 0, 1},
		{"a space at the end", good + " \n", 0, 1},
		{"a space at the beginning", " " + good + "\n", 0, 1},
		{"small letters", strings.ToLower(good) + "\n", 0, 1},
		{"no key log at all", "GET / HTTP/1.1\r\nHost: a\r\n\r\n\xff\xfe\n", 0, 2},
		{"as long as a line may be", "ECH_CONFIG " + strings.Repeat("0", maxLine-len("ECH_CONFIG ")) + "\n", 0, 0},
		{"longer", "ECH_CONFIG " + strings.Repeat("0", maxLine-len("ECH_CONFIG ")+1) + "\n", 0, 1},
		{"much longer, and a good one", strings.Repeat("A", 20*maxLine) + "\n" + good + "\n", 1, 1},
		{"the end of nothing", "", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole, split := NewStore(0), NewStore(0)
			whole.Add([]byte(tt.text))
			var l lines
			for _, c := range []byte(tt.text) {
				l.add([]byte{c}, split.line)
			}
			l.end(split.line)
			got := whole.Stats()
			if got.Lines != tt.lines || got.Bad != tt.bad {
				t.Errorf("%d lines and %d bad ones, expected %d and %d", got.Lines, got.Bad, tt.lines, tt.bad)
			}
			if other := split.Stats(); other != got {
				t.Errorf("byte by byte %+v, at once %+v", other, got)
			}
			if len(l.rest) != 0 || cap(l.rest) > maxLine {
				t.Errorf("%d bytes of %d are left", len(l.rest), cap(l.rest))
			}
			if tt.lines > 0 && strings.Contains(tt.text, "CLIENT_RANDOM") {
				if want := secretOf(1, "CLIENT_RANDOM", 48); !bytes.Equal(whole.Secrets(random(1)).Master, want) {
					t.Error("another secret")
				}
			}
		})
	}
}

// A line that comes again, as client and server in one file have it, is one connection;
// the newest counts.
func TestNewestCounts(t *testing.T) {
	s := NewStore(0)
	s.Add([]byte(tls12(1) + tls12(1)))
	other := fmt.Sprintf("CLIENT_RANDOM %x %x\n", *random(1), bytes.Repeat([]byte{7}, masterLen))
	s.Add([]byte(other))
	if got := s.Secrets(random(1)).Master; !bytes.Equal(got, bytes.Repeat([]byte{7}, masterLen)) {
		t.Errorf("%x", got)
	}
	if n := s.Stats(); n.Connections != 1 || n.Kept != 1 || n.Lines != 3 {
		t.Errorf("%+v", n)
	}
}

// At the bound nothing gives way; past it, the oldest connection does, and its secrets
// are cleared.
func TestStoreIsBounded(t *testing.T) {
	const limit = 5
	s := NewStore(limit)
	for n := range limit {
		s.Add([]byte(tls13(n)))
	}
	if n := s.Stats(); n.Kept != limit || n.Evicted != 0 {
		t.Fatalf("at the bound %+v", n)
	}
	oldest := s.known[*random(0)].Value.(*connection)
	s.Add([]byte(tls12(limit)))
	if n := s.Stats(); n.Kept != limit || n.Evicted != 1 || n.Connections != limit+1 {
		t.Errorf("past the bound %+v", n)
	}
	if s.Secrets(random(0)).ClientTraffic != nil {
		t.Error("the oldest is still there")
	}
	for n := 1; n <= limit; n++ {
		if got := s.Secrets(random(n)); got.ClientTraffic == nil && got.Master == nil {
			t.Errorf("connection %d gave way", n)
		}
	}
	if oldest.secrets != [numLabels]secret{} {
		t.Error("the secrets that gave way are not cleared")
	}
}

func TestForgetAndCloseClear(t *testing.T) {
	s := NewStore(0)
	s.Add([]byte(tls13(1) + tls13(2)))
	first, second := s.known[*random(1)].Value.(*connection), s.known[*random(2)].Value.(*connection)
	s.Forget(random(1))
	s.Forget(random(3)) // was never known
	if first.secrets != [numLabels]secret{} || s.Secrets(random(1)).ClientTraffic != nil {
		t.Error("Forget left secrets behind")
	}
	if n := s.Stats(); n.Kept != 1 || n.Evicted != 0 {
		t.Errorf("%+v", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if second.secrets != [numLabels]secret{} || s.Stats().Kept != 0 {
		t.Error("Close left secrets behind")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzStore holds that no text does more than add secrets, that its splitting makes no
// difference, and that the bound holds.
func FuzzStore(f *testing.F) {
	f.Add([]byte(tls13(1)+tls12(2)), uint16(3), uint16(0))
	f.Add([]byte("\r\n# \xff\x00"+tls12(1)), uint16(7), uint16(maxLine))
	f.Fuzz(func(t *testing.T, text []byte, at, long uint16) {
		const limit = 3
		cut := min(int(at), len(text))
		// What is too long comes of itself: nobody searches texts of 4 kB for it.
		text = slices.Insert(slices.Clone(text), cut, bytes.Repeat([]byte{'A'}, int(long)%(2*maxLine))...)
		whole, split := NewStore(limit), NewStore(limit)
		whole.Add(text)
		var l lines
		l.add(text[:cut], split.line)
		if len(l.rest) > maxLine {
			t.Fatalf("%d bytes of a line are held", len(l.rest))
		}
		l.add(text[cut:], split.line)
		l.end(split.line)
		n := whole.Stats()
		if other := split.Stats(); n != other {
			t.Errorf("at once %+v, cut at %d %+v", n, cut, other)
		}
		if n.Kept > limit || n.Kept+n.Evicted != n.Connections || n.Lines < n.Connections {
			t.Errorf("%+v", n)
		}
		for at := whole.order.Front(); at != nil; at = at.Next() {
			got := whole.Secrets(&at.Value.(*connection).random)
			for _, b := range [][]byte{got.Master, got.ClientHandshake, got.ServerHandshake, got.ClientTraffic, got.ServerTraffic} {
				if len(b) != 0 && len(b) != sha256Len && len(b) != masterLen {
					t.Errorf("a secret of %d bytes", len(b))
				}
			}
		}
	})
}

// A TLS server in this process is one more source.
func TestWriter(t *testing.T) {
	s := NewStore(0)
	w := s.Writer()
	for n := range 3 {
		if got, err := w.Write([]byte(tls13(n))); got != len(tls13(n)) || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	}
	if n := s.Stats(); n.Kept != 3 || n.Bad != 0 {
		t.Errorf("%+v", n)
	}
}
