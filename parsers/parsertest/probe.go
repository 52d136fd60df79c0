package parsertest

import (
	"math/rand/v2"
	"testing"

	"sheaf/parsers"
)

// Probes are payloads, by name, and how surely they are a protocol's.
type Probes[B Text] []struct {
	Name    string
	Payload B
	Want    parsers.Confidence
}

// Check holds that probe says of payloads what they are.
func (probes Probes[B]) Check(t TB, probe func([]byte) parsers.Confidence) {
	t.Helper()
	for _, tt := range probes {
		if got := probe([]byte(tt.Payload)); got != tt.Want {
			t.Errorf("%s: %d, want %d", tt.Name, got, tt.Want)
		}
	}
}

// ProbeRandom holds that random bytes are not taken for a protocol, n times. Every
// other time disguise, if there is one, makes the beginning of the bytes look like
// something; i is the number of the round.
func ProbeRandom(t *testing.T, n int, probe func([]byte) parsers.Confidence, disguise func(i int, b []byte)) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 64)
	for i := range n {
		if _, err := random.Read(b); err != nil {
			t.Fatal(err)
		}
		if disguise != nil && i%2 == 0 {
			disguise(i, b)
		}
		if probe(b) == parsers.Strong {
			t.Fatalf("%x is taken for the protocol", b)
		}
	}
}
