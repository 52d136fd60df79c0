package aggregate

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"sheaf/parsers"
)

// filled sets every number of a struct or array to n and what follows.
func filled(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				filled(v.Field(i), n)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			filled(v.Index(i), n)
		}
	case reflect.Uint64:
		*n++
		v.SetUint(uint64(*n))
	case reflect.Int64:
		*n++
		v.SetInt(int64(*n))
	case reflect.Float64:
		*n++
		v.SetFloat(float64(*n))
	}
}

// sums checks that every number of got is the sum of those of a and b.
func sums(t *testing.T, name string, got, a, b reflect.Value) {
	t.Helper()
	switch got.Kind() {
	case reflect.Struct:
		for i := range got.NumField() {
			if f := got.Type().Field(i); f.IsExported() && f.Name != "Longest" {
				sums(t, name+"."+f.Name, got.Field(i), a.Field(i), b.Field(i))
			}
		}
	case reflect.Array:
		for i := range got.Len() {
			sums(t, fmt.Sprintf("%s[%d]", name, i), got.Index(i), a.Index(i), b.Index(i))
		}
	case reflect.Uint64:
		if got.Uint() != a.Uint()+b.Uint() || a.Uint() == 0 {
			t.Errorf("%s: %d of %d and %d", name, got.Uint(), a.Uint(), b.Uint())
		}
	case reflect.Int64:
		if got.Int() != a.Int()+b.Int() || a.Int() == 0 {
			t.Errorf("%s: %d of %d and %d", name, got.Int(), a.Int(), b.Int())
		}
	case reflect.Float64:
		if got.Float() != a.Float()+b.Float() || a.Float() == 0 {
			t.Errorf("%s: %g of %g and %g", name, got.Float(), a.Float(), b.Float())
		}
	}
}

func TestStatsAccumulate(t *testing.T) {
	n := 0
	var a, b Stats
	filled(reflect.ValueOf(&a).Elem(), &n)
	filled(reflect.ValueOf(&b).Elem(), &n)
	one, other := EventKey{Event: "one"}, EventKey{Event: "other"}
	a.Messages = map[EventKey]*EventStats{one: {Messages: 1, BytesIn: 2, BytesOut: 3}}
	b.Messages = map[EventKey]*EventStats{one: {Messages: 10, BytesIn: 20, BytesOut: 30}, other: {Messages: 100}}
	got := a
	got.Accumulate(&b)
	sums(t, "Stats", reflect.ValueOf(got), reflect.ValueOf(a), reflect.ValueOf(b))
	got.is(t, one, 11, 22, 33)
	got.is(t, other, 100, 0, 0)
	b.Messages[other].Messages++
	got.is(t, other, 100, 0, 0) // independent
	for _, longest := range []time.Duration{6 * ms, 7 * ms, 8 * ms} {
		a.Longest, b.Longest = 7*ms, longest
		a.Accumulate(&b)
		if want := max(7*ms, longest); a.Longest != want {
			t.Errorf("the longest wait is %v, expected %v", a.Longest, want)
		}
	}
	var none Stats
	none.Accumulate(&Stats{})
	if none.Messages != nil {
		t.Error("a table of no messages")
	}
}

func TestReasonsAndPartsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		seen[r.String()] = true
	}
	if len(seen) != int(numReasons) || FlushWindow.String() != "window" || FlushEnd.String() != "end" {
		t.Errorf("names of reasons: %v", seen)
	}
	for p := range NumParts {
		seen[p.String()] = true
	}
	if len(seen) != int(numReasons)+int(NumParts) || PartFrames.String() != "frames" || PartVerbatim.String() != "verbatim" {
		t.Errorf("names of parts: %v", seen)
	}
	s := Stats{}
	s.Flushes[FlushAck] = 3
	if s.Flush(FlushAck) != 3 || s.Flush(FlushFull) != 0 {
		t.Error("frames by reason")
	}
}

// The heaviest events stay, and the rest of them is counted by its kind.
func TestLightEventsGiveWay(t *testing.T) {
	var s Stats
	key := func(i int) EventKey { return EventKey{Protocol: parsers.ProtocolID(1 + i%2), Event: fmt.Sprint(i)} }
	s.of(EventKey{Name: 9}).BytesIn = 1 // one that has no event stays
	for i := range maxEvents - 1 {
		e := s.of(key(i))
		e.Messages, e.BytesIn, e.BytesOut = 1, uint64(10+i%keptEvents), 1
	}
	if len(s.Messages) != maxEvents {
		t.Fatalf("%d events at the bound", len(s.Messages))
	}
	light := s.Messages[key(0)] // with that of keptEvents behind it
	s.parts = map[uint64]*EventStats{1: light}
	s.of(EventKey{Event: "new"})
	if got, want := len(s.Messages), keptEvents+2+1+1; got != want {
		t.Errorf("%d events are left, expected %d: the heaviest, two rests, that without event, the new one", got, want)
	}
	if len(s.parts) != 0 || light.into == nil || *light != (EventStats{into: light.into}) {
		t.Errorf("what gave way is %+v, and known by %d parts", light, len(s.parts))
	}
	messages, rest := uint64(0), uint64(0)
	least := uint64(1 << 60)
	for k, e := range s.Messages {
		messages += e.Messages
		if k.Rest {
			rest += e.Messages
			if k.Event != "" || e.BytesOut != float64(e.Messages) {
				t.Errorf("%+v: %+v", k, e)
			}
		} else if k.Event != "" && k.Event != "new" {
			least = min(least, e.BytesIn)
		}
	}
	if messages != maxEvents-1 || rest != maxEvents-1-keptEvents {
		t.Errorf("%d messages, %d of them in the rest", messages, rest)
	}
	if want := uint64(10 + keptEvents/2 - 1); least != want { // all weights come twice, but the largest
		t.Errorf("the lightest that stayed has %d bytes, expected %d", least, want)
	}
	if a, b := s.Messages[key(keptEvents+keptEvents/2-1)], s.Messages[key(keptEvents/2-1)]; a == nil || b != nil {
		t.Error("of two that are as heavy the one whose name comes first is to stay")
	}
	if e := s.Messages[EventKey{Protocol: 1, Rest: true}]; light.into != e {
		t.Error("an event gave way to the rest of another kind")
	}
}

// What has no event is one of each kind, and needs nobody's place.
func TestKindsNeedNoPlace(t *testing.T) {
	var s Stats
	for i := range maxEvents {
		s.of(EventKey{Event: fmt.Sprint(i)})
	}
	s.of(EventKey{Name: 8})
	if len(s.Messages) != maxEvents+1 {
		t.Errorf("%d events, and one without", len(s.Messages))
	}
	s = Stats{} // there are more kinds than events that are kept
	for i := range maxEvents {
		s.of(EventKey{Protocol: parsers.ProtocolID(i >> 8), Name: uint8(i)})
	}
	for _, event := range []string{"a", "b"} {
		s.of(EventKey{Event: event})
	}
	if len(s.Messages) != maxEvents+2 {
		t.Errorf("%d kinds and two events", len(s.Messages))
	}
}
