package codec

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

func TestLikeness(t *testing.T) {
	long := strings.Repeat("0123456789", 200)
	for _, tt := range []struct {
		name, a, b string
		want       int
	}{
		{"nothing remembered", "", "abc", 0},
		{"the same", "abcdef", "abcdef", 6},
		{"nothing in common", "abc", "xyz", 0},
		{"a field that differs", `{"a":17,"b":2}`, `{"a":23,"b":2}`, 12},
		{"a field that grew", `{"a":9,"b":2}`, `{"a":10,"b":2}`, 12},
		{"a field that shrank", `{"a":10,"b":2}`, `{"a":9,"b":2}`, 12},
		{"fields that differ on both sides of one that grew", `1,9,"x":1}`, `2,10,"x":2}`, 7},
		{"as long as both ends", long[:1024], long[:1024], 1024},
		{"long and the same", long, long, len(long) - len(long)%512},
		{"long and the same at one end", strings.Repeat("x", 1488) + long[:512], long + long[:512], 2512 / 512 * 512 / 2},
		{"long and unlike", long, strings.Repeat("abcdefghij", 200), 0},
	} {
		if got := likeness([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("%s: %d bytes alike, expected %d", tt.name, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 1500).Draw(t, "a")
		b := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 1500).Draw(t, "b")
		if got := likeness(a, b); got < 0 || got > len(b) {
			t.Fatalf("%d of %d bytes alike", got, len(b))
		}
	})
}

// Two bodies are similar where a quarter is the same at their ends, or half of some
// bytes of as long ones.
func TestSimilar(t *testing.T) {
	for _, tt := range []struct {
		name, a, b string
		want       bool
	}{
		{"nothing", "", "", false},
		{"nothing remembered", "", "abc", false},
		{"a quarter in front", "abxxxxxx", "abyyyyyy", true},
		{"less in front", "axxxxxxx", "ayyyyyyy", false},
		{"a quarter at the end", "xxxxxxab", "yyyyyyab", true},
		{"a quarter at both ends", "axxxxxxb", "ayyyyyyb", true},
		{"a quarter of the longer one", "abx", "abyyyyyy", true},
		{"less of the longer one", "abx", "abyyyyyyyyyy", false},
		{"bytes that are at both ends", "aa", "aaxxxxxxxxxxxxaa", false},
		{"half between the ends", "-.a.b.c.d.e.f.g.", "+.A.B.C.D.E.F.G:", false},
		{"half of as long ones", "-a.b.c.d.e.f.g.-", "+A.B.C.D.E.F.G..", false},
		{"every other byte", strings.Repeat("-.", 7) + ".a", strings.Repeat("+.", 7) + ".b", true},
		{"of another length", strings.Repeat("-.", 7) + "a", strings.Repeat("+.", 7) + ".b", false},
		{"seen of a long one", strings.Repeat(".-", 64), strings.Repeat(".+", 64), true},
		{"not seen of a long one", strings.Repeat("-.", 64), strings.Repeat("+.", 64), false},
	} {
		if got := similar([]byte(tt.a), []byte(tt.b)); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// What mix is made of makes another number each.
func TestMix(t *testing.T) {
	seen := map[uint64]bool{}
	for purpose := range uint64(3) {
		for a := range uint64(3) {
			for b := range uint64(3) {
				seen[mix(purpose, a, b)] = true
			}
		}
	}
	if len(seen) != 27 {
		t.Errorf("%d numbers of 27 triples", len(seen))
	}
}

// The criterion that is reported for a template that was there is the narrowest that is
// on.
func TestSimilarityHit(t *testing.T) {
	for by, want := range map[Similarity]Hit{
		ByAll: HitEvent, ByEvent: HitEvent, ByName | ByLength: HitNameLength, ByName: HitName, ByLength: HitLength,
		ByName | ByContent: HitName, ByLength | ByContent: HitLength,
	} {
		if got := by.hit(); got != want {
			t.Errorf("criteria %05b: %v, expected %v", by, got, want)
		}
	}
}

// Which spans are of one template, by criteria: a template has a key.
func TestTemplateKeys(t *testing.T) {
	span := Span{Body: []byte("12345"), Advice: Advice{Key: 77, Protocol: 2, Name: 3}}
	with := func(change func(*Span)) *Span {
		s := span
		change(&s)
		return &s
	}
	others := []struct {
		name string
		span *Span
		same Similarity // the criteria under which it has the same key, each by itself
	}{
		{"the same", &span, ByEvent | ByName | ByLength | ByContent},
		{"of another event", with(func(s *Span) { s.Key++ }), ByName | ByLength},
		{"of another name", with(func(s *Span) { s.Name++ }), ByEvent | ByLength | ByContent},
		{"of another protocol", with(func(s *Span) { s.Protocol++ }), ByEvent | ByLength | ByContent},
		{"of another length", with(func(s *Span) { s.Body = s.Body[1:] }), ByEvent | ByName | ByContent},
		{"behind the message's begin", with(func(s *Span) { s.At = 1 }), ByLength | ByContent},
	}
	for _, by := range []Similarity{ByEvent, ByName, ByLength, ByContent, ByName | ByLength} {
		e := &Encoder{similarity: by}
		for _, o := range others {
			want := o.same&by == by
			if got := e.key(o.span) == e.key(&span); got != want {
				t.Errorf("criteria %05b: one %s has the same key: %t", by, o.name, got)
			}
		}
	}
	e := &Encoder{similarity: ByAll}
	for _, o := range others {
		if got, want := e.key(o.span) == e.key(&span), o.same&ByEvent != 0; got != want {
			t.Errorf("all criteria: one %s has the same key: %t", o.name, got)
		}
	}
	if e.key(&span) != span.Key {
		t.Error("the key of what begins a message is not that of its event")
	}
	a, b := with(func(s *Span) { s.At = 5 }), with(func(s *Span) { s.At = 6 })
	if e.key(a) == e.key(b) {
		t.Error("two parts of a message, by event, have the same key")
	}
	if e.similarity = ByName; e.key(a) != e.key(b) {
		t.Error("two parts of a message, by name, have not the same key")
	}
}

// Under which keys a base is looked for follows from the criteria that are on. For what
// is encrypted, and for random bytes of no protocol, there is none.
func TestAlikeKeys(t *testing.T) {
	span := Span{Body: []byte("12345"), Advice: Advice{Protocol: 2, Name: 3}}
	has := func(by Similarity, s *Span) (keys string) {
		e := &Encoder{similarity: by}
		for k, key := range e.alikeKeys(s) {
			if key != 0 {
				keys += fmt.Sprint(HitNameLength+Hit(k), " ")
			}
		}
		return keys
	}
	for by, want := range map[Similarity]string{
		ByAll: "name+length name length ", ByName: "name ", ByLength: "length ", ByEvent | ByContent: "",
		ByName | ByLength: "name+length name length ",
	} {
		if got := has(by, &span); got != want {
			t.Errorf("criteria %05b: keys %q, expected %q", by, got, want)
		}
	}
	noisy := span
	if noisy.noise = true; has(ByAll, &noisy) == "" {
		t.Error("random bytes of a protocol have no keys")
	}
	if noisy.Protocol = parsers.Opaque; has(ByAll, &noisy) != "" {
		t.Error("random bytes of no protocol have keys")
	}
	encrypted := span
	if encrypted.Encrypted = true; has(ByAll, &encrypted) != "" {
		t.Error("encrypted bytes have keys")
	}
	e := &Encoder{similarity: ByAll}
	other := span
	other.Body = []byte("123456")
	a, b := e.alikeKeys(&span), e.alikeKeys(&other)
	if a[0] == b[0] || a[1] != b[1] || a[2] == b[2] {
		t.Error("spans of another length: their keys are not those of another length and the same name")
	}
	other = span
	other.Name = 4
	b = e.alikeKeys(&other)
	if a[0] == b[0] || a[1] == b[1] || a[2] != b[2] {
		t.Error("spans of another name: their keys are not those of another name and the same length")
	}
}
