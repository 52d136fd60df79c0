package mqtt

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genStream draws a stream of valid messages of one version, and the messages.
func genStream(t *rapid.T) (version uint8, list [][]byte) {
	version = rapid.SampledFrom([]uint8{3, 4, 5}).Draw(t, "version")
	list = append(list, connect(version))
	topics := []string{"a", "a/b", "sensors/ärger/temp", strings.Repeat("t/", 100), strings.Repeat("long", 100)}
	for range rapid.IntRange(0, 12).Draw(t, "messages") {
		id := rapid.IntRange(1, 65535).Draw(t, "id")
		qos := byte(rapid.IntRange(0, 2).Draw(t, "qos"))
		topic := rapid.SampledFrom(topics).Draw(t, "topic")
		body := strings.Repeat("x", rapid.SampledFrom([]int{0, 1, 5, 120, 700}).Draw(t, "body"))
		var m []byte
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1, 2:
			if version < 5 {
				m = publish(qos, topic, id, body)
				break
			}
			var p []byte
			switch n := rapid.IntRange(0, 70).Draw(t, "alias"); {
			case n == 0:
				topic = ""
				p = topicAlias(1 + id%70)
			case n%2 == 0:
				p = topicAlias(n)
			}
			m = publish5(qos, topic, id, props(userProperty("k", "v"), p), body)
		case 3:
			m = msg(rapid.SampledFrom([]byte{0x40, 0x50, 0x62, 0x70}).Draw(t, "ack"), u16(id))
		case 4:
			m = msg(rapid.SampledFrom([]byte{0xc0, 0xd0}).Draw(t, "ping"))
		case 5:
			m = msg(0x90, u16(id), []byte{0, 0})
		}
		list = append(list, m)
	}
	return version, list
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
		_, list := genStream(t)
		stream := cat(list...)
		whole := scanAll(t, NewScanner(testID), stream)
		if len(whole) != len(list) {
			t.Fatalf("%d spans of %d messages:\n%s", len(whole), len(list), showSpans(whole))
		}
		i, at := 0, 0
		for _, sp := range scanAll(t, NewScanner(testID), genPieces(t, stream)...) {
			w := whole[i]
			if sp.Name != w.Name || sp.At != at || sp.Class != w.Class {
				t.Fatalf("span %+v at %d of %+v", sp, at, w)
			}
			at += sp.Len
			// The key is the message's from where the topic ends.
			if end := at == w.Len; end && sp.Key != w.Key {
				t.Fatalf("key %x at the end of %+v", sp.Key, w)
			}
			if sp.Event != nil && !bytes.Equal(sp.Event, w.Event) {
				t.Fatalf("event %q of %+v", sp.Event, w)
			}
			if sp.Key == w.Key && sp.At+sp.Body != w.Body && sp.Body != 0 && sp.Body != sp.Len {
				t.Fatalf("body at %d of %+v in %+v", sp.Body, sp, w)
			}
			for _, h := range sp.Holes[:sp.NumHoles] {
				if w.NumHoles != 1 || sp.At+h.Off != w.Holes[0].Off || h.Counter != w.Holes[0].Counter {
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
		_, list := genStream(t)
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
			if spans := scanAll(t, s, m); len(spans) != 1 || spans[0].At != 0 || Name(spans[0].Name) != Name(m[0]>>4) {
				t.Fatalf("%x not found:\n%s", m, showSpans(spans))
			}
			s.Lost()
		}
	})
}
