package codec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
)

// warm returns the two ends of a direction that has seen some frames.
func warm(t *testing.T) (*Encoder, *Decoder) {
	x := newExchange(t, Config{})
	f := codectest.NewFanout(5)
	for range 3 {
		f.Send(func(i int) []byte { return codectest.Publish("a/b", fmt.Sprint("round ", f.Round), 1+i) }, x.run)
	}
	x.settle()
	return x.encoder(1), x.decoder(1)
}

// The comparison sees a change in anything that is remembered, at any depth.
func TestDriftIsSeen(t *testing.T) {
	e, d := warm(t)
	if d := codectest.Differ(e, d, true); d != "" {
		t.Fatal(d)
	}
	for name, change := range map[string]func(s *state){
		"limits.Flows":                 func(s *state) { s.limits.Flows++ },
		"contexts[3].key.SrcPort":      func(s *state) { s.contexts[3].key.SrcPort++ },
		"contexts[3].end":              func(s *state) { s.contexts[3].end++ },
		"contexts[3].hasTSval":         func(s *state) { s.contexts[3].hasTSval = false },
		"contexts[3].counters[2]":      func(s *state) { s.contexts[3].counters[2]++ },
		"contexts[3].texts":            func(s *state) { s.contexts[3].texts = new([4][]byte) },
		"contexts[3].odd":              func(s *state) { s.contexts[3].oddity() },
		"contexts[0].layout.number":    func(s *state) { s.contexts[0].layout.number.plus++ },
		"contexts[3].layout is":        func(s *state) { e := *s.contexts[3].layout; s.contexts[3].layout = &e },
		"contexts[4] is nil":           func(s *state) { s.contexts[4] = nil },
		"contexts has":                 func(s *state) { s.contexts = s.contexts[:4] },
		"layouts.after[2]":             func(s *state) { s.layouts.after[2].plus++ },
		"layouts.table has":            func(s *state) { s.layouts.table = s.layouts.table[:0] },
		"layouts.last is nil":          func(s *state) { s.layouts.last = nil },
		"templates.table[0].set[1]":    func(s *state) { s.templates.table[0].set[1].misses++ },
		"templates.table[0].bodies":    func(s *state) { s.templates.table[0].bodies[1][0]++ },
		"templates.table[0].holes[0]":  func(s *state) { s.templates.table[0].holes[0].at++ },
		"templates.newest":             func(s *state) { s.templates.newest.plus++ },
		"templates.free":               func(s *state) { s.templates.free = append(s.templates.free, templateAt(0)) },
		"views.table[2].edges[0]":      func(s *state) { s.views.table[2].edges[0].tsval++ },
		"views.unpaired":               func(s *state) { s.views.unpaired.plus++ },
		"views.expected.nodes":         func(s *state) { s.views.expected.push(cidAt(20)) },
		"models.more":                  func(s *state) { s.models.more++ },
		"models.body.text.table[4711]": func(s *state) { *textBit(s) ^= 1 },
		"ackSet":                       func(s *state) { s.ackSet = append(s.ackSet, setMember{}) },
		"newestText[1]":                func(s *state) { s.newestText[1] = []byte("x") },
		"newestOpaque":                 func(s *state) { s.newestOpaque = []byte("x") },
		"clock":                        func(s *state) { s.clock++ },
		"ahead":                        func(s *state) { s.ahead++ },
		"acked":                        func(s *state) { s.acked++ },
		"newest.":                      func(s *state) { s.newest.DstPort++ },
		"freshWindow":                  func(s *state) { s.freshWindow++ },
		"openWindow":                   func(s *state) { s.openWindow++ },
		"lastMember[1]":                func(s *state) { s.lastMember[1].plus++ },
		"lastTemplate":                 func(s *state) { s.lastTemplate.plus++ },
		"lastKind":                     func(s *state) { s.lastKind++ },
		"group":                        func(s *state) { s.group++ },
	} {
		t.Run(name, func(t *testing.T) {
			e, d := warm(t)
			change(&d.state)
			if got := codectest.Differ(e, d, true); !strings.HasPrefix(got, "state."+name) {
				t.Errorf("found %q", got)
			}
			if got := codectest.Differ(e, d, false); (got == "") != strings.HasPrefix(name, "models") {
				t.Errorf("without the models: found %q", got)
			}
		})
	}
}

// textBit returns one Bit of the deepest model, which is of package model alone.
func textBit(s *state) *uint32 {
	v := reflect.ValueOf(s).Elem().FieldByName("models").FieldByName("body").FieldByName("text").FieldByName("table").Index(4711)
	return (*uint32)(v.Addr().UnsafePointer())
}

// What both ends remember is plain data: nothing in it leads to an Encoder or a Decoder,
// and nothing is called through it.
func TestStateIsPlain(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var look func(way string, of reflect.Type)
	look = func(way string, of reflect.Type) {
		if seen[of] {
			return
		}
		seen[of] = true
		switch of.Kind() {
		case reflect.Func, reflect.Interface, reflect.Map, reflect.Chan, reflect.UnsafePointer, reflect.String:
			t.Errorf("%s is a %v", way, of)
		case reflect.Pointer:
			switch of.Elem() {
			case reflect.TypeFor[context](), reflect.TypeFor[layout](), reflect.TypeFor[oddities](), reflect.TypeFor[[4][]byte]():
			default:
				t.Errorf("%s points to %v", way, of.Elem())
			}
			look(way, of.Elem())
		case reflect.Slice, reflect.Array:
			look(way+"[]", of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				look(way+"."+of.Field(i).Name, of.Field(i).Type)
			}
		}
	}
	look("state", reflect.TypeFor[state]())
	for _, end := range []reflect.Type{reflect.TypeFor[Encoder](), reflect.TypeFor[Decoder](), reflect.TypeFor[codec](), reflect.TypeFor[Group]()} {
		if seen[end] {
			t.Errorf("a state leads to a %v", end)
		}
	}
	if !seen[reflect.TypeFor[view]()] || !seen[reflect.TypeFor[setMember]()] {
		t.Error("the tables of a state were not looked at")
	}
}
