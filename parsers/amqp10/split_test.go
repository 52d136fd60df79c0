package amqp10

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// genStream draws a stream of valid frames, and the frames.
func genStream(t *rapid.T) (all [][]byte) {
	tags := []string{"", "1", "\x01\x00\x00\x00", strings.Repeat("u", 16), strings.Repeat("u", 200)}
	for range rapid.IntRange(0, 12).Draw(t, "frames") {
		channel := rapid.IntRange(0, 2).Draw(t, "channel")
		handle := rapid.SampledFrom([]int{0, 1, 300}).Draw(t, "handle")
		id := rapid.SampledFrom([]int{0, 9, 9000}).Draw(t, "id")
		address := rapid.SampledFrom([]string{"", "queue", strings.Repeat("q", 120)}).Draw(t, "address")
		var m []byte
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			text := strings.Repeat("\x00S", rapid.SampledFrom([]int{0, 1, 60, 1500}).Draw(t, "body"))
			m = transfer(channel, handle, id, rapid.SampledFrom(tags).Draw(t, "tag"), text)
		case 2:
			m = attach(channel, handle, rapid.SampledFrom([][]byte{yes, no}).Draw(t, "role"), address, "")
		case 3:
			m = disposition(channel, id, id)
		case 4:
			m = perform(channel, Attach, str("l"), num(handle), no, null, null, cat([]byte{codeBinary32}, u32(1200), make([]byte, 1200)))
		case 5:
			m = rapid.SampledFrom(frames).Draw(t, "frame").bytes
		}
		all = append(all, m)
	}
	return all
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
		all := genStream(t)
		stream := cat(all...)
		whole := scanAll(t, NewScanner(testID), stream)
		if len(whole) != len(all) {
			t.Fatalf("%d spans of %d messages:\n%s", len(whole), len(all), showSpans(whole))
		}
		i, at := 0, 0
		for _, sp := range scanAll(t, NewScanner(testID), genPieces(t, stream)...) {
			w := whole[i]
			if sp.At != at {
				t.Fatalf("span %+v at %d of %+v", sp, at, w)
			}
			at += sp.Len
			// Name and class are the frame's from where its descriptor is told, the
			// key from where its link is.
			if at == w.Len && (sp.Name != w.Name || sp.Class != w.Class) {
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
				if !hasHole(w, h) {
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
		all := genStream(t)
		s := NewScanner(testID)
		lost := false
		for _, p := range genPieces(t, cat(all...)) {
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
		for _, m := range all {
			var f front
			if parseFront(m, &f); f.name == Performative {
				continue // no evidence
			}
			if spans := scanAll(t, s, m); len(spans) != 1 || spans[0].At != 0 || Name(spans[0].Name) != f.name {
				t.Fatalf("%x not found:\n%s", m, showSpans(spans))
			}
			s.Lost()
		}
	})
}
