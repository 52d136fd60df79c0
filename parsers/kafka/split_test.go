package kafka

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genStream draws a stream of valid requests or responses.
func genStream(t *rapid.T) (list [][]byte) {
	id := rapid.IntRange(0, 1000).Draw(t, "id")
	client := rapid.SampledFrom([]string{"c-1", "client", strings.Repeat("long", 40)}).Draw(t, "client")
	answers := rapid.Bool().Draw(t, "responses")
	topics := rapid.SampledFrom([]string{"a", "a.b", strings.Repeat("long", 60)})
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		id++
		body := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 256, 700}).Draw(t, "body"))
		switch {
		case answers:
			list = append(list, response(id, "\xff\xff\xff\xff"+body))
		case rapid.Bool().Draw(t, "fetch"):
			list = append(list, fetch(rapid.SampledFrom([]int{0, 7, 12}).Draw(t, "version"), id, client, topics.Draw(t, "topic"), 77, id))
		case rapid.Bool().Draw(t, "produce"):
			list = append(list, produce(rapid.SampledFrom([]int{0, 3, 9}).Draw(t, "version"), id, client, topics.Draw(t, "topic"), []byte(body)))
		default:
			list = append(list, request(rapid.IntRange(2, 99).Draw(t, "API"), 1, id, client, []byte(body)))
		}
	}
	return list
}

// genPieces cuts bytes at random.
func genPieces(t *rapid.T, b []byte) (pieces [][]byte) {
	for len(b) > 0 {
		n := min(len(b), rapid.SampledFrom([]int{1, 2, 3, 7, 20, 90, 500, 1448}).Draw(t, "piece"))
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}

// TestAnySplit holds that spans tell the same however a stream is cut.
func TestAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := genStream(t)
		stream := cat(list...)
		whole := scanAll(t, NewScanner(testID), stream)
		if len(whole) != len(list) {
			t.Fatalf("%d spans of %d messages:\n%s", len(whole), len(list), showSpans(whole))
		}
		i, at := 0, 0
		for _, sp := range scanAll(t, NewScanner(testID), genPieces(t, stream)...) {
			w := whole[i]
			if sp.At != at || sp.Key == w.Key && (sp.Name != w.Name || sp.Class != w.Class) {
				t.Fatalf("span %+v at %d of %+v", sp, at, w)
			}
			at += sp.Len
			// The key is the message's from where the topic ends.
			if at == w.Len && sp.Key != w.Key {
				t.Fatalf("key %x at the end of %+v", sp.Key, w)
			}
			if sp.Event != nil && !bytes.Equal(sp.Event, w.Event) {
				t.Fatalf("event %q of %+v", sp.Event, w)
			}
			if sp.Key == w.Key && sp.At+sp.Body != w.Body && sp.Body != 0 && sp.Body != sp.Len {
				t.Fatalf("body at %d of %+v in %+v", sp.Body, sp, w)
			}
			for _, h := range sp.Holes[:sp.NumHoles] {
				h.Off += sp.At
				if !slices.Contains(w.Holes[:w.NumHoles], h) {
					t.Fatalf("hole %+v of %+v", h, w)
				}
			}
			if at == w.Len {
				i, at = i+1, 0
			}
		}
		if i != len(whole) {
			t.Fatalf("%d of %d messages", i, len(whole))
		}
	})
}

// TestLoss holds that, whatever segments are missing, come twice or come late,
// spans cover what there is, and the first message after that which begins a
// segment is found.
func TestLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := genStream(t)
		s := NewScanner(testID)
		lost := false
		for _, p := range genPieces(t, cat(list...)) {
			switch rapid.IntRange(0, 5).Draw(t, "fate") {
			case 0:
				lost = true
			case 1:
				checkSpans(t, s.Rescan(nil, p), len(p))
				fallthrough
			default:
				if lost {
					s.Lost()
					lost = false
				}
				scanAll(t, s, p)
			}
		}
		s.Lost()
		for _, m := range list {
			if spans := scanAll(t, s, m); len(spans) != 1 || spans[0].At != 0 || spans[0].Key == 0 {
				t.Fatalf("%x not found:\n%s", m, showSpans(spans))
			}
			s.Lost()
		}
	})
}
