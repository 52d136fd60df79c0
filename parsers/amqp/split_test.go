package amqp

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid frames, and the messages in it.
func genStream(t *rapid.T) (list [][]byte) {
	if rapid.Bool().Draw(t, "start") {
		list = append(list, []byte(preamble))
	}
	keys := []string{"", "a", "plant.line.4", strings.Repeat("k", 255)}
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		channel := rapid.IntRange(1, 3).Draw(t, "channel")
		tag := rapid.IntRange(0, 1<<40).Draw(t, "tag")
		key := rapid.SampledFrom(keys).Draw(t, "key")
		text := strings.Repeat("\xce", rapid.SampledFrom([]int{0, 1, 5, 120, 2700}).Draw(t, "body"))
		consumer := rapid.SampledFrom([]string{"c", "ctag-1.x", strings.Repeat("t", 63), strings.Repeat("t", 255)}).Draw(t, "consumer")
		var m []byte
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1:
			m = deliver(channel, consumer, tag, "x", key, text)
		case 2:
			m = publish(channel, "exchange", key, text)
		case 3:
			m = ack(channel, tag)
		case 4:
			m = heartbeat()
		case 5:
			m = cat(method(channel, BasicReturn, u16(312), str("NO_ROUTE"), str("x"), str(key)), contents(channel, text))
		case 6:
			m = rapid.SampledFrom(frames).Draw(t, "frame").bytes
			var f front
			if parseFront(m, &f); f.name.HasContent() || f.kind == typeHeader {
				continue
			}
		}
		list = append(list, m)
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
			if sp.At != at {
				t.Fatalf("span %+v at %d of %+v", sp, at, w)
			}
			at += sp.Len
			// Name and class are the message's from where its method is told, the
			// key from where its event is.
			if at >= methodHead && (sp.Name != w.Name || sp.Class != w.Class) {
				t.Fatalf("span %+v at %d of %+v", sp, at, w)
			}
			if at == w.Len && sp.Key != w.Key {
				t.Fatalf("key %x at the end of %+v", sp.Key, w)
			}
			if sp.Event != nil && !bytes.Equal(sp.Event, w.Event) {
				t.Fatalf("event %q of %+v", sp.Event, w)
			}
			if sp.Key == w.Key && sp.At+sp.Body != w.Body && sp.Body != 0 && sp.Body != sp.Len && sp.At <= w.Body {
				t.Fatalf("body at %d of %+v in %+v", sp.Body, sp, w)
			}
			for _, h := range sp.Holes[:sp.NumHoles] {
				h.Off += sp.At
				if w.NumHoles < parsers.MaxHoles && !hasHole(w, h) {
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

func hasHole(sp parsers.Span, h parsers.Hole) bool {
	for _, k := range sp.Holes[:sp.NumHoles] {
		if k == h {
			return true
		}
	}
	return false
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
			var f front
			if parseFront(m, &f); f.name == Method {
				continue // no evidence
			}
			if spans := scanAll(t, s, m); len(spans) != 1 || spans[0].At != 0 || Name(spans[0].Name) != f.name {
				t.Fatalf("%x not found:\n%s", m, showSpans(spans))
			}
			s.Lost()
		}
	})
}
