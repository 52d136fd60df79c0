package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/pcap"
)

// a result is what a run of the command did.
type result struct {
	code           int
	stdout, stderr string
}

// sheaf runs a command line.
func sheaf(t *testing.T, stdin io.Reader, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(args, stdin, &out, &errs)
	if s := out.String() + errs.String(); strings.Contains(s, "goroutine ") || strings.Contains(s, "panic: ") {
		t.Errorf("sheaf %q prints a stack trace:\n%s", args, s)
	}
	return result{code, out.String(), errs.String()}
}

// captured returns the path of a capture in the repository.
func captured(name string) string { return filepath.Join("..", "..", "testdata", name) }

// classic returns a pcap file of a link type, with packets.
func classic(linkType uint32, packets ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0)
	b = binary.LittleEndian.AppendUint32(b, linkType)
	for i, p := range packets {
		for _, v := range []int{1_700_000_000, i, len(p), len(p)} {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		b = append(b, p...)
	}
	return b
}

// datagram returns a UDP packet.
func datagram(body string) []byte {
	p := append([]byte{0x45, 0, 0, byte(28 + len(body)), 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 2, 0, 10,
		0x90, 0, 0x20, 0, 0, byte(8 + len(body)), 0, 0}, body...)
	return p
}

// written writes a file and returns its path.
func written(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandLine(t *testing.T) {
	good := captured("fanout-10-ipv6.pcap.gz")
	short := classic(101, datagram("one"), datagram("two"))
	cut := written(t, "cut.pcap", short[:len(short)-1])
	absurd := written(t, "absurd.pcap", append(classic(101, datagram("one")), bytes.Repeat([]byte{0xff}, 16)...))
	link := written(t, "link.pcap", classic(252))
	text := written(t, "notes.txt", []byte("not a capture\n"))
	empty := written(t, "empty.pcap", nil)
	missing := filepath.Join(t.TempDir(), "missing.pcap")
	dir := t.TempDir()
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stdout string // part of it; empty if there is to be none
		stderr []string
	}{
		{"help", []string{"--help"}, 0, "replay", nil},
		{"replay help", []string{"replay", "-h"}, 0, "--carrier-overhead", nil},
		{"unknown command", []string{"reply"}, 2, "", []string{`unknown command "reply"`}},
		{"unknown flag", []string{"replay", "--widow", "1s", good}, 2, "", []string{"unknown flag: --widow", "sheaf replay --help"}},
		{"no file", []string{"replay"}, 2, "", []string{"no capture given: expected FILE...", "sheaf replay --help"}},
		{"bad duration", []string{"replay", "--window", "5", good}, 2, "", []string{"--window"}},
		{"negative duration", []string{"replay", "--quiet", "-5ms", good}, 2, "", []string{"--quiet -5ms: expected 0 to 1h0m0s"}},
		{"long duration", []string{"replay", "--ack-wait", "2h", good}, 2, "", []string{"--ack-wait 2h0m0s: expected 0 to 1h0m0s"}},
		{"bad overhead", []string{"replay", "--carrier-overhead", "-1", good}, 2, "", []string{"--carrier-overhead -1: expected 0 to 65536 bytes"}},
		{"bad events", []string{"replay", "--events", "-1", good}, 2, "", []string{"--events -1: expected 0 or more"}},
		{"bad broker", []string{"replay", "--broker", "broker.example", good}, 2, "", []string{`bad broker address "broker.example": expected ADDR or ADDR:PORT`}},
		{"absent broker", []string{"replay", "--broker", "192.0.2.1", good}, 0, "identical", []string{good, "no packet is from or to the broker 192.0.2.1"}},
		{"bad binding", []string{"replay", "--protocol", "mqtt", good}, 2, "", []string{`"mqtt": expected NAME@PORT`}},
		{"unknown protocol", []string{"replay", "--protocol", "mqqt@1884", good}, 2, "", []string{"mqqt@1884: no such protocol, known are", "mqtt"}},
		{"bad similarity", []string{"replay", "--similarity", "event,colour", good}, 2, "", []string{`"colour": expected a list of event, name, length and content, or none`}},
		{"none and more", []string{"replay", "--similarity", "none,event", good}, 2, "", []string{"none goes with nothing else"}},
		{"bad level", []string{"replay", "--compress", "23", good}, 2, "", []string{`"23": expected a zstd level from 1 to 22, or off`}},
		{"two outputs", []string{"replay", "--out", "x.pcap", good, good}, 2, "", []string{"--out takes the packets of one capture, not of 2"}},
		{"output to stdout", []string{"replay", "--out", "-", good}, 2, "", []string{"--out -: expected the name of a file"}},
		{"stdin twice", []string{"replay", "-", "-"}, 2, "", []string{"standard input was given twice"}},
		{"missing", []string{"replay", missing}, 2, "", []string{missing, "cannot be opened: no such file"}},
		{"directory", []string{"replay", dir}, 2, "", []string{dir, "is a directory; expected a pcap or pcapng capture"}},
		{"no capture", []string{"replay", text}, 2, "", []string{text, "neither a pcap nor a pcapng capture; expected"}},
		{"empty", []string{"replay", empty}, 2, "", []string{empty, "the input is empty", "expected a pcap or pcapng"}},
		{"header cut", []string{"replay", written(t, "header.pcap", short[:20])}, 2, "", []string{"header.pcap", "expected a whole capture"}},
		{"link type", []string{"replay", link}, 2, "", []string{link, "link type 252", "not supported; supported are"}},
		{"cut", []string{"replay", cut}, 0, "all 1 came out identical", []string{cut, "packet 2", "what is before it was replayed"}},
		{"absurd length", []string{"replay", absurd}, 0, "all 1 came out identical", []string{absurd, "packet 2 claims 4294967295 bytes"}},
		{"no packets", []string{"replay", written(t, "none.pcap", classic(101))}, 0, "nothing to replay", nil},
		{"others go on", []string{"replay", missing, good, link, good}, 2, "1,886 of 1,886 packets came out identical", []string{missing, link}},
		{"all is well", []string{"replay", good}, 0, "all 943 came out identical", nil},
		{"opaque port", []string{"replay", "--protocol", "opaque@1883", good}, 0, "all 943 came out identical", nil},
		{"all options", []string{"replay", "--window", "0", "--quiet", "0s", "--ack-wait", "0", "--compare", "--carrier-overhead", "0", "--broker", "[fd00:2::10]:1883",
			"--protocol", "mqtt@1884", "--protocol", "mqtt@1885", "--similarity", "event, name", "--compress", "off", "--events", "1", good}, 0, "zstd 19", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := sheaf(t, strings.NewReader(""), test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d; %s", got.code, test.code, got.stderr)
			}
			if !strings.Contains(got.stdout, test.stdout) || (test.stdout == "") != (got.stdout == "") {
				t.Errorf("stdout %q, want %q", got.stdout, test.stdout)
			}
			for _, want := range test.stderr {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("stderr %q, want %q", got.stderr, want)
				}
			}
			if len(test.stderr) == 0 && got.stderr != "" {
				t.Errorf("stderr %q, want none", got.stderr)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	for _, test := range []struct {
		sum  summary
		want error
	}{
		{summary{files: 2}, nil},
		{summary{files: 2, unusable: 1}, status(exitUnusable)},
		{summary{files: 2, different: 1}, status(exitDifferent)},
		{summary{files: 2, different: 1, unusable: 1}, status(exitDifferent)},
	} {
		if got := test.sum.status(); !errors.Is(got, test.want) {
			t.Errorf("%+v: %v, want %v", test.sum, got, test.want)
		}
	}
}

// A failing is a reader and a writer that fails after n bytes.
type failing struct {
	r io.Reader
	n int
}

var errDisk = errors.New("disk on fire")

func (f *failing) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, errDisk
	}
	n, err := f.r.Read(p[:min(len(p), f.n)])
	f.n -= n
	return n, err
}

func (f *failing) Write(p []byte) (int, error) { return 0, errDisk }

func TestReadingFails(t *testing.T) {
	short := classic(101, datagram("one"), datagram("two"))
	for n, want := range map[int]string{10: "cannot be read: disk on fire", len(short) - 5: "reading stopped after packet 1: disk on fire"} {
		got := sheaf(t, &failing{bytes.NewReader(short), n}, "replay", "--json", "-")
		if got.code != exitUnusable || !strings.Contains(got.stderr, want) || strings.Contains(got.stdout, `"damage"`) {
			t.Errorf("after %d bytes: %+v, want %q", n, got, want)
		}
	}
}

// A broken is a reader whose Read fails the program itself after n bytes.
type broken struct{ failing }

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.failing.Read(p)
	if err != nil {
		var none []byte
		_ = none[len(p)] // what the runtime makes of a mistake
	}
	return n, err
}

// TestOneFileFailsTheNextIsRead holds that whatever a file makes the program do,
// it is an error that tells the packet, and the files behind it are replayed.
func TestOneFileFailsTheNextIsRead(t *testing.T) {
	short := classic(101, datagram("one"), datagram("two"), datagram("three"))
	next := captured("fanout-10-ipv6.pcap.gz")
	for n, want := range map[int]string{10: "the file header", len(short) - 5: "packet 2"} {
		objects, got := replayJSONFrom(t, &broken{failing{bytes.NewReader(short), n}}, "-", next)
		if got.code != exitUnusable || len(objects) != 2 || !strings.Contains(got.stderr, "sheaf: -: sheaf itself failed at "+want+": ") {
			t.Fatalf("after %d bytes: %+v, want %q", n, got, want)
		}
		if e, ok := objects[0]["error"].(string); !ok || !strings.Contains(e, want) {
			t.Errorf("after %d bytes: error %v", n, objects[0]["error"])
		}
		exact(t, objects[1])
	}
}

// TestPacketsTooLong holds that what is longer than an IP packet can be is counted,
// and silences neither the packets nor the files behind it.
func TestPacketsTooLong(t *testing.T) {
	segment := make([]byte, pcap.MaxIPv4+1) // one that a network card was to split
	copy(segment, datagram(""))
	segment[2], segment[3] = 0, 0
	jumbogram := make([]byte, pcap.MaxIPv6+1)
	jumbogram[0] = 0x60
	longest4 := append(datagram(""), make([]byte, pcap.MaxIPv4-28)...)
	longest4[2], longest4[3] = 0xff, 0xff
	longest6 := append([]byte{0x60, 0, 0, 0, 0xff, 0xff, 17, 64}, make([]byte, pcap.MaxIPv6-8)...)
	file := written(t, "long.pcap", classic(101, datagram("one"), longest4, segment, longest6, jumbogram, datagram("two")))
	objects, got := replayJSON(t, file, captured("fanout-10-ipv6.pcap.gz"))
	if got.code != exitOK || got.stderr != "" || len(objects) != 2 {
		t.Fatalf("%+v", got)
	}
	o := objects[0]
	if o["identical"] != 4.0 || fmt.Sprint(o["skip_reasons"]) != "map[longer than an IP packet can be:2]" {
		t.Errorf("identical %v, skipped %v", o["identical"], o["skip_reasons"])
	}
	exact(t, objects[1])
}

func TestWritingFails(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err == nil {
		got := sheaf(t, nil, "replay", "--out", "/dev/full", captured("fanout-10-ipv6.pcap.gz"))
		if got.code != exitUnusable || !strings.Contains(got.stderr, "--out /dev/full") || strings.Contains(got.stdout, "DIFFERENT") {
			t.Errorf("%+v", got)
		}
	}
	var errs bytes.Buffer
	code := run([]string{"replay", captured("fanout-10-ipv6.pcap.gz")}, nil, &failing{}, &errs)
	if code != exitUnusable || !strings.Contains(errs.String(), "writing the report on") {
		t.Errorf("exit code %d, stderr %q", code, errs.String())
	}
}
