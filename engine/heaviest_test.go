package engine

import (
	"fmt"
	"testing"
)

// TestHeaviest holds that what a status does not list it sums up, for each kind.
func TestHeaviest(t *testing.T) {
	const many = 3 * maxStatusEvents
	events := []EventStatus{
		{Protocol: "mqtt", Message: "PUBLISH", Rest: true, Messages: 1000, BytesIn: 1 << 30},
		{Protocol: "mqtt", Message: "PINGREQ", Messages: 5, BytesIn: 1},
	}
	sum := uint64(1000 + 5)
	for i := range many {
		events = append(events, EventStatus{Protocol: "mqtt", Message: []string{"PUBLISH", "SUBSCRIBE"}[i%2], Event: fmt.Sprint(i), Messages: 2, BytesIn: uint64(100 + i)})
		sum += 2
	}
	got := heaviest(events)
	if len(got) != maxStatusEvents+3 { // PINGREQ, and the rest of two kinds
		t.Errorf("%d rows", len(got))
	}
	rest := 0
	for _, e := range got {
		sum -= e.Messages
		switch {
		case e.Rest:
			rest++
		case e.Event != "" && e.BytesIn < 100+many-maxStatusEvents:
			t.Errorf("%+v is listed", e)
		}
	}
	if sum != 0 || rest != 2 {
		t.Errorf("%d messages too few, %d rows of the rest", sum, rest)
	}
}
