package coap

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	parsertest.Probes[[]byte]{
		{"PUT", put(1, "to", "body", "storage", "one"), parsers.Strong},
		{"discovery", msg(Confirmable, 1, 1, "", "", opt{11, ".well-known"}, opt{11, "core"}), parsers.Strong},
		{"GET of one name", msg(Confirmable, 1, 1, "", "", opt{11, "temperature"}), parsers.Strong},
		{"registration", msg(Confirmable, 2, 1, "t", "</1>", opt{11, "rd"}, opt{12, "("}, opt{15, "ep=a"}), parsers.Strong},
		{"answer with a path", msg(Acknowledgement, changed, 1, "\x88", "", opt{8, "/r/Bus17Cmd"}), parsers.Strong},
		{"GET of little", msg(Confirmable, 1, 1, "", "", opt{11, "t"}), parsers.Weak},
		{"observe", msg(Confirmable, 1, 1, "to", "", opt{6, ""}, opt{11, "a"}), parsers.Weak},
		{"notification", notification(1, "to", "\x01", "21.5"), parsers.Weak},
		{"piggybacked", msg(Acknowledgement, content, 1, "", "21.5"), parsers.Weak},
		{"ACK", msg(Acknowledgement, 0, 1, "", ""), parsers.Weak},
		{"ping", msg(Confirmable, 0, 1, "", ""), parsers.Weak},
		{"request's options in a response", msg(Acknowledgement, content, 1, "", "1", opt{11, "temperature"}), parsers.Weak},
		{"unknown option", msg(Confirmable, 1, 1, "", "", opt{11, "temperature"}, opt{13, "x"}), parsers.Weak},
		{"host twice", msg(Confirmable, 1, 1, "", "", opt{3, "temperature"}, opt{3, "x"}), parsers.Weak},
		{"control characters", msg(Confirmable, 1, 1, "", "", opt{11, "temp\x01rature"}), parsers.Weak},
		{"text throughout", []byte("DATA    4abc "), parsers.Weak},
		{"SIP", []byte("REGISTER sip:example.org SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.1\r\n\r\n"), parsers.None},
		{"SSDP", []byte("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n\r\n"), parsers.None},
		{"DNS", []byte("\x52\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01"), parsers.None},
		{"IPv4", []byte("\x45\x00\x00\x1c\x00\x01\x00\x00\x40\x11\x00\x00\x0a\x00\x00\x01"), parsers.None},
		{"STUN", []byte("\x00\x01\x00\x00\x21\x12\xa4\x42123456789012"), parsers.None},
		{"RTP", []byte("\x80\x60\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01abc"), parsers.None},
		{"JSON", []byte(`{"host_int": 1, "version": [2, 0]}`), parsers.None},
		{"RTPS", []byte("RTPS\x02\x03\x01\x0f"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	n := 0
	probe := func(b []byte) parsers.Confidence {
		n++
		return Probe(b[:4+n%60])
	}
	parsertest.ProbeRandom(t, 400_000, probe, func(_ int, b []byte) { // as a QUIC packet's first byte is, and some
		b[0] = 0x40 | b[0]&0x3f
	})
}
