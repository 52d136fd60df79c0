package zmtp

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genStream draws a stream of valid messages.
func genStream(t *rapid.T) (list [][]byte) {
	list = append(list, greeting("NULL"), ready(rapid.SampledFrom([]string{"PUB", "SUB"}).Draw(t, "socket")))
	text := rapid.SampledFrom([]string{"a", "\x01a/b", "\x00weather", strings.Repeat("long", 64), strings.Repeat("t/", 200)})
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			list = append(list, command(rapid.SampledFrom([]string{"SUBSCRIBE", "CANCEL", "PING", "JOIN", "NEW"}).Draw(t, "command"), text.Draw(t, "data")))
		case 1:
			list = append(list, message3(text.Draw(t, "body")))
		default:
			frames := []string{text.Draw(t, "topic")}
			for range rapid.IntRange(1, 3).Draw(t, "frames") {
				frames = append(frames, strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 256, 700}).Draw(t, "body")))
			}
			list = append(list, message3(frames...))
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
