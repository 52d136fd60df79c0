package aggregate

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers/builtin"
)

// A Merger makes the frames of the worked example out of its packets, and an Expander
// the packets out of the frames.
func TestWorkedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.NewReplacer("\n", "", " ", "").Replace(string(doc))
	var ends [2]*Lane
	for i := range ends {
		if ends[i], err = NewLane(Config{Registry: builtin.Registry()}); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range codectest.Worked() {
		m, x := &ends[s.Direction].Merger, &ends[1-s.Direction].Expander
		for _, b := range s.Packets {
			if err := m.Add(s.At, b); err != nil {
				t.Fatal(err)
			}
		}
		frame := m.Flush(nil, s.At, FlushEnd)
		head := len(frame) - len(controlOf(t, frame))
		want := "length" + hex.EncodeToString(frame[:head-4]) + "digest" + hex.EncodeToString(frame[head-4:head]) +
			"control" + hex.EncodeToString(frame[head:])
		if !strings.Contains(said, want) {
			t.Errorf("frame %d is %x, which docs/architecture.md does not say", i+1, frame)
		}
		packets, _, err := x.Expand(frame)
		if err != nil || len(packets) != len(s.Packets) {
			t.Fatalf("frame %d: %d packets, %v", i+1, len(packets), err)
		}
		for k, b := range packets {
			if !bytes.Equal(b, s.Packets[k]) {
				t.Errorf("frame %d: packet %d is %x, sent %x", i+1, k, b, s.Packets[k])
			}
		}
	}
}

func controlOf(t *testing.T, frame []byte) []byte {
	t.Helper()
	f, _, err := wire.ParseFrame(frame)
	if err != nil || len(f.Literals) != 0 {
		t.Fatalf("%x: %v", frame, err)
	}
	return f.Control
}
