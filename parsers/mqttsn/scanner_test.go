package mqttsn

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestScan(t *testing.T) {
	for _, tt := range messages {
		s := NewScanner(testID)
		spans := scanAll(t, s, tt.bytes)
		m, err := Parse(tt.bytes)
		if err != nil {
			t.Fatal(err)
		}
		sp := spans[0]
		if sp.Protocol != testID || Name(sp.Name) != m.Name || sp.Body != m.Body || string(sp.Event) != tt.event {
			t.Errorf("%s: span %+v of %s", tt.name, sp, show(m))
		}
		if (sp.NumHoles == 1) != (m.ID != 0) {
			t.Errorf("%s: holes %v", tt.name, sp.Holes[:sp.NumHoles])
		}
		want := parsers.ClassUrgent
		switch m.Name {
		case PUBLISH, REGISTER, REGACK, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, WILLMSGRESP:
			want = parsers.ClassData
		case PUBACK, PUBREC, PUBREL, PUBCOMP:
			want = parsers.ClassAck
		}
		if sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
		s.Lost()
		if again := s.Rescan(nil, tt.bytes); again[0].Key != sp.Key || again[0].Body != sp.Body {
			t.Errorf("%s: Rescan says %+v", tt.name, again)
		}
	}
	hole := NewScanner(testID).Scan(nil, capsule("node", publish(0x20, 7, 6, "21.5")))[0].Holes[0]
	if want := (parsers.Hole{Off: 12, Len: 2, Kind: parsers.HoleBig, Counter: counterPublish, Step: 1}); hole != want {
		t.Errorf("hole %+v, want %+v", hole, want)
	}
}

func TestKeys(t *testing.T) {
	key := func(b []byte) uint64 { return NewScanner(testID).Scan(nil, b)[0].Key }
	a := key(publish(0, 7, 0, "1"))
	if a != key(publish(0x20, 7, 6, "22")) || a != key(capsule("node", publish(0, 7, 0, "1"))) {
		t.Error("QoS, message ID, body or capsule are in the key")
	}
	parsertest.InKey(t, a, map[string]uint64{
		"topic":         key(publish(0, 8, 0, "1")),
		"type of topic": key(publish(1, 7, 0, "1")),
		"name":          key(msg(SUBSCRIBE, "\x01\x00\x01\x00\x07")),
		"protocol":      NewScanner(testID+1).Scan(nil, publish(0, 7, 0, "1"))[0].Key,
	})
}

// TestAny holds that drawn datagrams, whole or cut or lost or changed, are each
// one span, and those that are messages are found whatever was before.
func TestAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewScanner(testID)
		for range rapid.IntRange(1, 12).Draw(t, "datagrams") {
			m := rapid.SampledFrom(messages).Draw(t, "message")
			b := slices.Clone(m.bytes)
			switch rapid.IntRange(0, 4).Draw(t, "fate") {
			case 0:
				s.Lost()
			case 1:
				checkSpans(t, s.Rescan(nil, b), b)
			case 2:
				b = b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut")]
				if spans := scanAll(t, s, b); len(b) > 0 && spans[0].Protocol != parsers.Opaque && len(b) < len(m.bytes) {
					t.Fatalf("cut %s is taken for %+v", m.name, spans[0])
				}
				continue
			case 3:
				b[rapid.IntRange(0, len(b)-1).Draw(t, "place")] = rapid.Byte().Draw(t, "byte")
				scanAll(t, s, b)
				continue
			}
			if spans := scanAll(t, s, b); spans[0].Protocol != testID {
				t.Fatalf("%s is not found", m.name)
			}
		}
	})
}
