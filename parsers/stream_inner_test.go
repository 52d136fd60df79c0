package parsers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/ip"
	"sheaf/parsers/mqtt"
	"sheaf/parsers/tls"
)

// An inner scans what is in the TLS records of a flow.
type inner struct {
	t   *testing.T
	reg *parsers.Registry
	key parsers.FlowKey
	st  parsers.Stream
}

// newInner returns the flow of a client to a port.
func newInner(t *testing.T, port uint16, bindings ...string) *inner {
	t.Helper()
	reg := parsers.NewRegistry(mqtt.Protocol(), tls.Protocol())
	for _, s := range bindings {
		b, err := parsers.ParseBinding(s)
		if err == nil {
			err = reg.Bind(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &inner{t: t, reg: reg, key: parsers.FlowKey{SrcPort: 50000, DstPort: port, Proto: ip.TCP, Version: 4}}
}

// tell writes down spans that are appended to one, of a payload.
func (f *inner) tell(spans []parsers.Span, payload string) string {
	f.t.Helper()
	if len(spans) == 0 || spans[0].Len != 12345 {
		f.t.Fatal("spans are not appended")
	}
	sum := 0
	var out []string
	for _, sp := range spans[1:] {
		sum += sp.Len
		name := f.reg.Name(sp.Protocol)
		if sp.Protocol != parsers.Opaque {
			name = fmt.Sprintf("%s %d", f.reg.MessageName(sp.Protocol, sp.Name), sp.At)
		}
		out = append(out, fmt.Sprintf("%s+%d", name, sp.Len))
	}
	if sum != len(payload) {
		f.t.Fatalf("spans cover %d of %d bytes", sum, len(payload))
	}
	return strings.Join(out, ", ")
}

func (f *inner) scan(payload string) string {
	f.t.Helper()
	return f.tell(f.st.ScanInner(f.reg, &f.key, []byte(payload), []parsers.Span{parsers.OpaqueSpan(12345)}), payload)
}

func (f *inner) rescan(payload string) string {
	f.t.Helper()
	return f.tell(f.st.RescanInner([]byte(payload), []parsers.Span{parsers.OpaqueSpan(12345)}), payload)
}

// TestStreamInner is a list of what is in records, one each line. A ~ before it says that
// it was there before, a ! that bytes are missing.
func TestStreamInner(t *testing.T) {
	long := "\x30\x82\x02\x00\x05a/b/c" + strings.Repeat("0", 251) // 261 bytes
	hello := "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"
	for _, tt := range []struct {
		name     string
		port     uint16
		bindings []string
		steps    [][2]string
	}{
		{"on its port", 8883, nil, [][2]string{{connect, "CONNECT 0+22"}, {"", ""}, {publishA + publishB, "PUBLISH 0+12, PUBLISH 0+12"}}},
		{"in the middle, where the port is enough", 8883, nil, [][2]string{{pingreq, "PINGREQ 0+2"}}},
		{"in the middle of a message", 8883, nil, [][2]string{{"of a body", "opaque+9"}, {pingreq, "PINGREQ 0+2"}}},
		{"on the port that it has without TLS", 1883, nil, [][2]string{{pingreq, "PINGREQ 0+2"}}},
		{"on a port that says nothing", 9999, nil, [][2]string{{pingreq, "opaque+2"}, {connect, "CONNECT 0+22"}, {pingreq, "PINGREQ 0+2"}}},
		{"on a port that is bound", 9999, []string{"mqtt@9999"}, [][2]string{{pingreq, "PINGREQ 0+2"}}},
		{"on a port that is bound to TLS, which is around it", 9999, []string{"tls@9999"}, [][2]string{{pingreq, "opaque+2"}, {connect, "CONNECT 0+22"}}},
		{"on its port, bound to TLS", 8883, []string{"tls@8883"}, [][2]string{{pingreq, "opaque+2"}, {connect, "CONNECT 0+22"}}},
		{"on its port, bound to nothing", 8883, []string{"opaque@8883"}, [][2]string{{connect, "opaque+22"}}},
		{"TLS inside TLS", 8883, nil, [][2]string{{hello, "handshake 0+10"}}},
		{"a message in two records", 8883, nil, [][2]string{{long[:100], "PUBLISH 0+100"}, {long[100:] + pingreq, "PUBLISH 100+161, PINGREQ 0+2"}}},
		{"a record again", 8883, nil, [][2]string{{publishA, "PUBLISH 0+12"}, {publishB[:5], "PUBLISH 0+5"}, {"~" + publishA, "PUBLISH 0+12"}, {"~", ""}, {publishB[5:], "PUBLISH 5+7"}}},
		{"a record again, of what is not known", 8883, nil, [][2]string{{"~" + publishA, "opaque+12"}, {connect, "CONNECT 0+22"}}},
		{"bytes that are missing", 8883, nil, [][2]string{{long[:100], "PUBLISH 0+100"}, {"!" + publishA, "PUBLISH 0+12"}, {pingreq, "PINGREQ 0+2"}}},
		{"bytes that are missing, at the beginning", 8883, nil, [][2]string{{"!" + publishA, "PUBLISH 0+12"}}},
		{"bytes that are missing, in the middle", 8883, nil, [][2]string{{long[:100], "PUBLISH 0+100"}, {"!" + long[150:] + publishA, "opaque+111, PUBLISH 0+12"}}},
	} {
		f := newInner(t, tt.port, tt.bindings...)
		var want, got []string
		for _, s := range tt.steps {
			want = append(want, s[1])
			switch {
			case strings.HasPrefix(s[0], "~"):
				got = append(got, f.rescan(s[0][1:]))
			case strings.HasPrefix(s[0], "!"):
				f.st.Lost()
				got = append(got, f.scan(s[0][1:]))
			default:
				got = append(got, f.scan(s[0]))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestStreamInnerGivesUp holds that the port says what is inside TLS again after a scanner
// was given up.
func TestStreamInnerGivesUp(t *testing.T) {
	f := newInner(t, 8883)
	f.scan(connect)
	for i := 0; f.st.Protocol() != parsers.Opaque; i++ {
		if i > 100 {
			t.Fatal("the scanner is never given up")
		}
		f.scan("\xffgarbage")
	}
	if got := f.scan(publishA); got != "PUBLISH 0+12" {
		t.Error(got)
	}
}

// TestSecurePorts holds that a port for what is inside TLS says nothing of what is not,
// and that where two protocols have one the first has it.
func TestSecurePorts(t *testing.T) {
	first, second := mqtt.Protocol(), mqtt.Protocol()
	first.SecurePorts, first.Ports, second.Name = []uint16{700}, nil, "second"
	second.SecurePorts, second.Ports = []uint16{700, 701}, nil
	reg := parsers.NewRegistry(first, second)
	for port, want := range map[uint16]string{700: "mqtt", 701: "second", 702: "opaque"} {
		f := newInner(t, port)
		f.reg = reg
		f.scan(pingreq)
		if got := reg.Name(f.st.Protocol()); got != want {
			t.Errorf("inside TLS port %d is %s, want %s", port, got, want)
		}
		back := newInner(t, port)
		back.reg, back.key = reg, back.key.Reverse()
		back.scan(pingreq)
		if got := reg.Name(back.st.Protocol()); got != want {
			t.Errorf("inside TLS, from port %d it is %s, want %s", port, got, want)
		}
		plain := &flow{t: t, reg: reg, port: port}
		if got := plain.segment(1, 16, pingreq); got != "opaque 2" {
			t.Errorf("without TLS port %d is %s", port, got)
		}
	}
	if got := reg.ServerPorts(); len(got) != 0 {
		t.Errorf("ports of brokers that speak no TLS: %v", got)
	}
}
