package parsers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/mqtt"
)

func TestParseBinding(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want parsers.Binding
		err  string // a part of it, empty when there is none
	}{
		{"mqtt@1884", parsers.Binding{Name: "mqtt", Port: 1884}, ""},
		{"MQTT@65535", parsers.Binding{Name: "mqtt", Port: 65535}, ""},
		{"mqtt", parsers.Binding{}, "expected NAME@PORT"},
		{"@1884", parsers.Binding{}, "expected NAME@PORT"},
		{"", parsers.Binding{}, "expected NAME@PORT"},
		{"mqtt@", parsers.Binding{}, `port ""`},
		{"mqtt@0", parsers.Binding{}, "from 1 to 65535"},
		{"mqtt@65536", parsers.Binding{}, "from 1 to 65535"},
		{"mqtt@http", parsers.Binding{}, `port "http"`},
		{"mqtt@1@2", parsers.Binding{}, `port "1@2"`},
	} {
		got, err := parsers.ParseBinding(tt.in)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.in, diff)
		}
		if tt.err == "" && err != nil || tt.err != "" && (!errors.Is(err, parsers.ErrBinding) || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%q: error %v, want %q", tt.in, err, tt.err)
		}
		if err == nil && got.String() != strings.ToLower(tt.in) {
			t.Errorf("%q is written %v", tt.in, got)
		}
	}
}

func TestRegistry(t *testing.T) {
	reg := parsers.NewRegistry(mqtt.Protocol())
	id, known := reg.Lookup("mqtt")
	if !known || id != 1 || reg.Name(id) != "mqtt" || reg.Name(99) != "opaque" {
		t.Errorf("mqtt is %d, known %v, named %q", id, known, reg.Name(id))
	}
	if got := reg.MessageName(id, uint8(mqtt.PUBLISH)); got != "PUBLISH" {
		t.Errorf("PUBLISH is named %q", got)
	}
	if got := reg.MessageName(parsers.Opaque, 3) + reg.MessageName(id, 99) + reg.MessageName(99, 0); got != "" {
		t.Errorf("names of nothing: %q", got)
	}
	err := reg.Bind(parsers.Binding{Name: "mqttt", Port: 1})
	if !errors.Is(err, parsers.ErrBinding) || !strings.Contains(err.Error(), "opaque, mqtt") {
		t.Errorf("error %v", err)
	}
}

func TestRegistryRefuses(t *testing.T) {
	half := mqtt.Protocol()
	half.Probe = nil
	for name, list := range map[string][]parsers.Protocol{
		"a name twice": {mqtt.Protocol(), mqtt.Protocol()},
		"half":         {half},
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, parsers.ErrProtocol) {
					t.Errorf("%s: %v", name, err)
				}
			}()
			parsers.NewRegistry(list...)
		}()
	}
}
