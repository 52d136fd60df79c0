package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEventText(t *testing.T) {
	long := strings.Repeat("a", maxEventText-1)
	for event, want := range map[string]string{
		"":            "",
		"a/b":         "a/b",
		"größe/\x00":  "größe/\x00",
		"\xff/\xc3":   `\xff/\xc3`,
		long + "b":    long + "b",
		long + "bc":   long + "b…",
		long + "ö/c":  long + "…",
		long + "\xff": long + `\xff`,
	} {
		if got := EventText(event); got != want || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", event, got, want)
		}
	}
}

// TestEventsAreBounded holds that a report stays small whatever the number of
// events, and that nothing is lost in it.
func TestEventsAreBounded(t *testing.T) {
	var rows []Row
	for i := range 3000 {
		for d := range Direction(2) {
			rows = append(rows, Row{Direction: d, Protocol: "mqtt", Name: "PUBLISH", Event: fmt.Sprint(i), Messages: 2, BytesIn: uint64(10000 - i), BytesFrames: 1, BytesWire: 1.5})
		}
	}
	p := protocols(rows)["mqtt"]
	if len(p.Events) != MaxEvents || p.Other.Events != 2000 || p.Other.Messages != 8000 || p.Messages != 12000 || p.MessagesUp != 6000 {
		t.Errorf("%d events, others %+v, all %+v", len(p.Events), p.Other, p.MessageCounts)
	}
	if p.Events["0"] == nil || p.Events["2999"] != nil || p.Names["PUBLISH"].BytesWire != 9000 {
		t.Error("the events with most bytes are not those listed")
	}
	if b, err := json.Marshal(p); err != nil || len(b) > 300*MaxEvents {
		t.Errorf("%d bytes of JSON, %v", len(b), err)
	}
	sum := SumRows(rows, func(r *Row) { r.Event = "" })
	if len(sum) != 2 || sum[0].Messages != 6000 || rows[0].Event == "" {
		t.Errorf("summed up to %+v", sum)
	}
}
