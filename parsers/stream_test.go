package parsers_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sheaf/parsers"
	"sheaf/parsers/mqtt"
)

const (
	connect  = "\x10\x14\x00\x04MQTT\x04\x02\x00\x3c\x00\x08sensor-1"
	publishA = "\x30\x0a\x00\x05a/b/cone"
	publishB = "\x30\x0a\x00\x05a/b/ctwo"
	pingreq  = "\xc0\x00"
	puback   = "\x40\x02\x00\x07"
)

// A flow scans segments of one direction and writes down what was found.
type flow struct {
	t    tb
	reg  *parsers.Registry
	st   parsers.Stream
	port uint16
}

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newFlow(t tb, port uint16, bindings ...string) *flow {
	t.Helper()
	reg := parsers.NewRegistry(datagram(), mqtt.Protocol())
	for _, s := range bindings {
		b, err := parsers.ParseBinding(s)
		if err == nil {
			err = reg.Bind(b)
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	return &flow{t: t, reg: reg, port: port}
}

// datagram is a protocol over UDP: each datagram is a message that begins with D.
func datagram() parsers.Protocol {
	return parsers.Protocol{
		Name: "datagram", Ports: []uint16{5683}, UDP: true, MessageNames: []string{"DATA"},
		Probe: func(b []byte) parsers.Confidence {
			switch {
			case strings.HasPrefix(string(b), "DATAGRAM"):
				return parsers.Strong
			case strings.HasPrefix(string(b), "D"):
				return parsers.Weak
			}
			return parsers.None
		},
		New: func(id parsers.ProtocolID) parsers.Scanner { return &dataScanner{id: id} },
	}
}

type dataScanner struct{ id parsers.ProtocolID }

func (s *dataScanner) Scan(dst []parsers.Span, b []byte) []parsers.Span {
	switch {
	case b[0] == 'D':
		return append(dst, parsers.Span{Len: len(b), Protocol: s.id, Key: 1})
	case b[0] == '!': // a mistake of a scanner
		return append(dst, parsers.Span{Len: len(b) + 1, Protocol: s.id, Key: 1})
	}
	return append(dst, parsers.OpaqueSpan(len(b)))
}

func (s *dataScanner) Rescan(dst []parsers.Span, b []byte) []parsers.Span { return s.Scan(dst, b) }
func (s *dataScanner) Lost()                                              {}

func (f *flow) packet(b []byte) string {
	f.t.Helper()
	var d parsers.Decoder
	var seg parsers.Segment
	if err := d.Decode(b, &seg); err != nil {
		f.t.Fatalf("%v", err)
	}
	kept := parsers.OpaqueSpan(12345)
	spans := f.st.Scan(f.reg, &seg, []parsers.Span{kept})
	if len(spans) == 0 || spans[0].Len != kept.Len {
		f.t.Fatalf("spans are not appended")
	}
	sum := 0
	var out []string
	for _, sp := range spans[1:] {
		sum += sp.Len
		s := fmt.Sprintf("%s %d+%d", f.reg.MessageName(sp.Protocol, sp.Name), sp.At, sp.Len)
		if sp.Protocol == parsers.Opaque {
			s = fmt.Sprintf("opaque %d", sp.Len)
		}
		out = append(out, s)
	}
	if sum != len(seg.Payload()) {
		f.t.Fatalf("spans cover %d of %d bytes", sum, len(seg.Payload()))
	}
	return strings.Join(out, ", ")
}

func (f *flow) segment(seq uint32, flags byte, payload string) string {
	f.t.Helper()
	return f.packet(ipv4(6, nil, tcp(50000, f.port, seq, flags, nil, []byte(payload))))
}

// TestStream is a list of conversations, a segment each line.
func TestStream(t *testing.T) {
	const syn, ack = 2, 16
	type step struct {
		seq     uint32
		flags   byte
		payload string
		want    string
	}
	long := "\x30\x82\x02\x00\x05a/b/c" + strings.Repeat("0", 251) // 261 bytes
	for _, tt := range []struct {
		name     string
		port     uint16
		bindings []string
		steps    []step
	}{
		{"from the SYN", 1883, nil, []step{
			{1000, syn, "", ""},
			{1001, ack, connect, "CONNECT 0+22"},
			{1023, ack, publishA + publishB, "PUBLISH 0+12, PUBLISH 0+12"},
			{1047, ack, "", ""},
			{1047, ack, pingreq, "PINGREQ 0+2"},
		}},
		{"data in the SYN", 1883, nil, []step{
			{1000, syn, connect, "CONNECT 0+22"},
			{1023, ack, publishA, "PUBLISH 0+12"},
		}},
		{"around zero", 1883, nil, []step{
			{0xfffffff0, syn, "", ""},
			{0xfffffff1, ack, connect, "CONNECT 0+22"},
			{7, ack, publishA[:6], "PUBLISH 0+6"},
			{0xfffffff1, ack, connect, "CONNECT 0+22"},
			{13, ack, publishA[6:], "PUBLISH 6+6"},
		}},
		{"in the middle, known port", 1883, nil, []step{
			{5, ack, "of a body", "opaque 9"},
			{14, ack, pingreq, "PINGREQ 0+2"},
			{16, ack, publishA, "PUBLISH 0+12"},
		}},
		{"known port, other content", 1883, nil, []step{
			{1000, syn, "", ""},
			{1001, ack, "GET / HTTP/1.1\r\n\r\n", "opaque 18"},
			{1019, ack, "POST / HTTP/1.1\r\n\r\n", "opaque 19"},
		}},
		{"unknown port", 9999, nil, []step{
			{1000, syn, "", ""},
			{1001, ack, connect, "CONNECT 0+22"},
			{1023, ack, pingreq, "PINGREQ 0+2"},
		}},
		{"unknown port, in the middle", 9999, nil, []step{
			{5, ack, pingreq, "opaque 2"},
			{7, ack, publishA, "PUBLISH 0+12"},
			{19, ack, pingreq, "PINGREQ 0+2"},
		}},
		{"unknown port, bound", 9999, []string{"mqtt@9999"}, []step{
			{5, ack, pingreq, "PINGREQ 0+2"},
		}},
		{"bound, in the middle", 9999, []string{"mqtt@9999"}, []step{
			{5, ack, "the end" + publishA + publishB, "opaque 7, PUBLISH 0+12, PUBLISH 0+12"},
		}},
		{"bound to nothing", 1883, []string{"opaque@1883"}, []step{
			{5, ack, connect, "opaque 22"},
		}},
		{"retransmission", 1883, nil, []step{
			{1, ack, publishA, "PUBLISH 0+12"},
			{13, ack, publishB[:5], "PUBLISH 0+5"},
			{1, ack, publishA, "PUBLISH 0+12"},
			{18, ack, publishB[5:], "PUBLISH 5+7"},
		}},
		{"overlap", 1883, nil, []step{
			{1, ack, publishA + publishB[:5], "PUBLISH 0+12, PUBLISH 0+5"},
			{1, ack, publishA + publishB + pingreq, "PUBLISH 0+12, PUBLISH 0+5, PUBLISH 5+7, PINGREQ 0+2"},
		}},
		{"keep-alive probe", 1883, nil, []step{
			{1, ack, publishA, "PUBLISH 0+12"},
			{12, ack, "\x00", "opaque 1"},
			{13, ack, publishA, "PUBLISH 0+12"},
		}},
		{"gap in a body", 1883, nil, []step{
			{1, ack, long[:100], "PUBLISH 0+100"},
			{151, ack, long[150:] + publishA, "opaque 111, PUBLISH 0+12"},
			{101, ack, long[100:150], "opaque 50"},
			{274, ack, publishA, "PUBLISH 0+12"},
		}},
		{"new connection, SYN not seen", 1883, nil, []step{
			{1000, ack, publishA[:3], "PUBLISH 0+3"},
			{0xa0000000, ack, publishA, "PUBLISH 0+12"},
			{0xa000000c, ack, publishA, "PUBLISH 0+12"},
		}},
		{"new connection on the same ports", 1883, nil, []step{
			{1000, ack, publishA[:3], "PUBLISH 0+3"},
			{900, syn, "", ""},
			{901, ack, publishA, "PUBLISH 0+12"},
		}},
		{"byte by byte", 1883, nil, []step{
			{1000, syn, "", ""},
			{1001, ack, puback[:1], "PUBACK 0+1"},
			{1002, ack, puback[1:2], "PUBACK 1+1"},
			{1003, ack, puback[2:3], "PUBACK 2+1"},
			{1004, ack, puback[3:], "PUBACK 3+1"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFlow(t, tt.port, tt.bindings...)
			var want, got []string
			for _, s := range tt.steps {
				want = append(want, s.want)
				got = append(got, f.segment(s.seq, s.flags, s.payload))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStreamDatagrams(t *testing.T) {
	f := newFlow(t, 5683)
	datagram := func(port uint16, payload string) string {
		return f.packet(ipv6(17, udp(4000, port, []byte(payload))))
	}
	for _, tt := range [][2]string{{"x", "opaque 1"}, {"D", "DATA 0+1"}, {"", ""}, {"x", "opaque 1"}, {"!", "opaque 1"}, {"Dx", "DATA 0+2"}} {
		if got := datagram(5683, tt[0]); got != tt[1] {
			t.Errorf("%q: %s, want %s", tt[0], got, tt[1])
		}
	}
	// MQTT is not looked for in UDP, nor the other way round.
	f = newFlow(t, 1883)
	if got := datagram(1883, publishA); got != "opaque 12" {
		t.Error(got)
	}
	if got := newFlow(t, 5683).segment(1, 16, "DATAGRAM"); got != "opaque 8" {
		t.Error(got)
	}
}

func TestStreamWithoutTransport(t *testing.T) {
	f := newFlow(t, 1883)
	if got := f.packet(ipv4(1, nil, []byte("echo"))); got != "opaque 4" {
		t.Error(got)
	}
	if got := f.packet(ipv4(1, nil, nil)); got != "" {
		t.Error(got)
	}
	if got := f.packet(set(ipv4(6, nil, tcp(1, 1883, 1, 16, nil, []byte(connect))), 6, 0x20)); got != "opaque 42" {
		t.Error(got)
	}
}

// TestStreamGivesUp holds that a scanner which finds nothing is dropped, and that
// the protocol is found again when it comes back.
func TestStreamGivesUp(t *testing.T) {
	for _, port := range []uint16{1883, 9999} {
		for _, bindings := range [][]string{nil, {"mqtt@9999"}} {
			f := newFlow(t, port, bindings...)
			seq := uint32(1)
			next := func(payload string) string {
				got := f.segment(seq, 16, payload)
				seq += uint32(len(payload))
				return got
			}
			next(connect)
			if f.st.Protocol() == parsers.Opaque {
				t.Fatal("MQTT is not recognised")
			}
			for i := 0; f.st.Protocol() != parsers.Opaque; i++ {
				if i > 100 {
					t.Fatal("the scanner is never given up")
				}
				if got := next("\xffgarbage"); got != "opaque 8" {
					t.Fatal(got)
				}
			}
			segments := 0
			for ; next(publishA) == "opaque 12"; segments++ {
				if segments > 100 {
					t.Fatal("MQTT is not found again")
				}
			}
			if port == 1883 && segments > 0 {
				t.Errorf("MQTT on its port was found after %d segments", segments)
			}
		}
	}
}

// TestStreamProbesRarely counts the probes of a flow that is of no protocol.
func TestStreamProbesRarely(t *testing.T) {
	probes := 0
	p := mqtt.Protocol()
	probe := p.Probe
	p.Probe = func(b []byte) parsers.Confidence { probes++; return probe(b) }
	f := &flow{t: t, reg: parsers.NewRegistry(p), port: 9999}
	for i := range uint32(6400) {
		f.segment(i, 16, "x")
	}
	if probes > 120 {
		t.Errorf("%d probes of 6400 segments", probes)
	}
}

func TestStreamSize(t *testing.T) {
	if n := unsafe.Sizeof(parsers.Stream{}); n > 40 {
		t.Errorf("a Stream takes %d bytes", n)
	}
}

// TestStreamAnyOrder scans pieces of a stream with loss, repetition and in any
// order: spans always cover what there is (which flow.packet checks).
func TestStreamAnyOrder(t *testing.T) {
	stream := connect + strings.Repeat(publishA+puback+publishB+pingreq, 30)
	rapid.Check(t, func(t *rapid.T) {
		f := newFlow(t, rapid.SampledFrom([]uint16{1883, 9999}).Draw(t, "port"))
		first := rapid.SampledFrom([]uint32{0, 0xffffff00, 0x7fffff80}).Draw(t, "first")
		for range rapid.IntRange(1, 40).Draw(t, "segments") {
			at := rapid.IntRange(0, len(stream)-1).Draw(t, "at")
			n := rapid.IntRange(0, min(200, len(stream)-at)).Draw(t, "n")
			f.segment(first+uint32(at), byte(rapid.IntRange(0, 31).Draw(t, "flags")), stream[at:at+n])
		}
		// Two messages at the start of a segment are always recognised; on an
		// unknown port the pause between probes can hide them.
		if got := f.segment(first+0x100000, 16, publishA+publishB); f.port == 1883 && got != "PUBLISH 0+12, PUBLISH 0+12" {
			t.Fatalf("%s", got)
		}
	})
}

func TestStreamDoesNotAllocate(t *testing.T) {
	reg := parsers.NewRegistry(mqtt.Protocol())
	for name, payload := range map[string]string{"mqtt": publishA, "opaque": "\xff\xff\xff"} {
		var d parsers.Decoder
		var st parsers.Stream
		var seg parsers.Segment
		spans := make([]parsers.Span, 0, 8)
		packet := ipv4(6, nil, tcp(50000, 1883, 1, 16, nil, []byte(payload)))
		scan := func() {
			if err := d.Decode(packet, &seg); err != nil {
				t.Fatal(err)
			}
			spans = st.Scan(reg, &seg, spans[:0])
			packet[27] += byte(len(payload)) // the sequence number, now and then out of order
		}
		scan()
		if n := testing.AllocsPerRun(1000, scan); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	reg := parsers.NewRegistry(mqtt.Protocol())
	var d parsers.Decoder
	var st parsers.Stream
	var seg parsers.Segment
	spans := make([]parsers.Span, 0, 8)
	if err := d.Decode(ipv4(6, nil, tcp(50000, 1883, 1, 16, nil, []byte(publishA))), &seg); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		spans = st.Scan(reg, &seg, spans[:0])
		seg.Seq += uint32(len(publishA))
	}
}
