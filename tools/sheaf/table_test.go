package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/tools/replay"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGoldenTable holds how a report looks. Its numbers come from a file, so that
// it does not change with the codec.
func TestGoldenTable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := replay.NewReport("")
	if err := json.Unmarshal(b, p); err != nil {
		t.Fatal(err)
	}
	p.Rows = []replay.Row{
		{Direction: replay.Down, Protocol: "mqtt", Name: "PUBLISH", Event: "plant/4/alarms", Messages: 60000, BytesIn: 11_000_000, BytesWire: 45_000},
		{Direction: replay.Down, Protocol: "mqtt", Name: "PUBLISH", Event: "plant/4/\x1b[31m\xff/" + strings.Repeat("long", 20) + "/end", Messages: 3, BytesIn: 3000, BytesWire: 90},
		{Direction: replay.Up, Protocol: "mqtt", Name: "PINGREQ", Messages: 20, BytesIn: 1080, BytesWire: 1300},
		{Direction: replay.Up, Protocol: "opaque", Messages: 70_000, BytesIn: 9_000_000, BytesWire: 8_000_000},
		{Direction: replay.Up, Protocol: "tls", Name: "application_data", Messages: 9000, BytesIn: 900_000, BytesWire: 890_000},
		{Direction: replay.Up, Protocol: "mqtt", Name: "PUBLISH", Event: "a", Messages: 1, BytesIn: 900, BytesWire: 200},
		{Direction: replay.Up, Protocol: "mqtt", Name: "PUBLISH", Event: "b", Messages: 2, BytesIn: 800, BytesWire: 201},
	}
	p.Protocols = map[string]*replay.ProtocolReport{
		"mqtt": {MessageCounts: replay.MessageCounts{BytesIn: 11_005_780}},
		"tls":  {MessageCounts: replay.MessageCounts{BytesIn: 900_000}, Encrypted: true},
	}
	p.Opaque, p.WithNames = 9_000_000, 11_005_780
	p.OddPorts = []replay.OddPort{{Proto: 6, Port: 8883, Bytes: 8_900_000}, {Proto: 17, Port: 5683, Bytes: 100_000}}
	p.Known = []string{"mqtt", "nats", "redis"}
	var out bytes.Buffer
	writeReport(&out, p, 3)
	golden(t, "report.golden", out.String())
}

// golden compares with a golden file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("output differs from %s (-update writes it):\n%s", path, diff)
	}
}

// TestTableOfCapture holds what the report on a capture says, whatever the codec
// makes of it: sizes on the link, their ratios and times are left out.
func TestTableOfCapture(t *testing.T) {
	got := sheaf(t, nil, "replay", "--compare", captured("fanout-20-qos1.pcap.gz"))
	if got.code != exitOK || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{
		`^testdata/fanout-20-qos1.pcap.gz: 3,480 packets in [\d.]+ s$`,
		`^  all 3,480 came out identical$`,
		`^  up to the broker +1,780 +0 +\S+ kB +\d+ +\S+ k?B +\d+ +\S+ k?B +- +\S+ less$`,
		`^  both +3,480 +800 +294\.2 kB `,
		`^  acknowledgements  `,
		`^  carrier overhead  `,
		`^  down +mqtt +PUBLISH +800 +\S+ kB `,
		`^  up +mqtt +PUBACK +800 `,
		`^  down +mqtt +PUBLISH +plant/4/alarms +800 `,
		`^  header compression +\S+ kB `,
		`^  frames sent because of: `,
		`^  time a packet: \S+ µs to merge, \S+ µs to expand$`,
	} {
		if !regexp.MustCompile("(?m)" + want).MatchString(strings.ReplaceAll(got.stdout, "../../", "")) {
			t.Errorf("no line %s in\n%s", want, got.stdout)
		}
	}
}

func TestAmounts(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{number(0), "0"}, {number(999), "999"}, {number(1000), "1,000"}, {number(12345678), "12,345,678"},
		{count(1, "file"), "1 file"}, {count(2, "file"), "2 files"},
		{size(0), "0 B"}, {size(999.4), "999 B"}, {size(999.5), "1.0 kB"}, {size(1e6), "1.0 MB"}, {size(999_949), "999.9 kB"}, {size(999_950), "1.0 MB"}, {size(5e15), "5000.0 TB"},
		{each(1, 0), "-"}, {each(1, 3), "0.33 B"}, {each(9.996, 1), "10.0 B"}, {each(5000, 1), "5.0 kB"},
		{ratio(0, 1), "-"}, {ratio(1, 0), "-"}, {ratio(100, 100.2), "the same"}, {ratio(380, 10), "38x less"}, {ratio(15, 10), "1.5x less"}, {ratio(10, 33), "3.3x more"},
		{printable("a\x00\x1b[2J\u202eö\xff\x7f"), `a\x00\x1b[2J\u{202e}ö\xff\x7f`},
		{shorten("plant/4/alarms", 14), "plant/4/alarms"}, {shorten("plant/4/alarms", 9), "plan…arms"}, {shorten("ööööö", 3), "ö…ö"},
		{shorten("温度/工場/四号機", 16), "温度/工場/四号機"}, {shorten("温度/工場/四号機", 10), "温度…号機"}, {shorten("e\u0301e\u0301e\u0301e\u0301", 3), "e\u0301…e\u0301"},
		{orList([]string{"a"}), "a"}, {orList([]string{"a", "b", "c"}), "a, b or c"}, {orList(nil), ""},
		{reasons(map[string]uint64{"not IP": 2, "unsupported link type 10 (FDDI)": 1000}), "1,000 unsupported link type 10 (FDDI); 2 not IP"},
		{counts(map[string]uint64{"a": 1, "b": 2000, "c": 0, "d": 1}), "b 2,000, a 1, d 1"}, {counts(nil), "-"},
	} {
		if test.got != test.want {
			t.Errorf("%q, want %q", test.got, test.want)
		}
	}
}

// TestTableColumns holds that columns stand below one another on a terminal,
// whatever the characters' widths.
func TestTableColumns(t *testing.T) {
	table := newTable("by event", "event", "\tmessages")
	table.add("mqtt", "温度/工場", "1")
	table.add("mqtt", "cafe\u0301", "12")
	table.add("mqtt", "👩‍🏭", "123")
	table.add("mqtt", "abcdefghi")
	var out bytes.Buffer
	table.write(&out)
	want := `
  by event  event      messages
  mqtt      温度/工場         1
  mqtt      café             12
  mqtt      👩‍🏭              123
  mqtt      abcdefghi
`
	if got := out.String(); got != strings.ReplaceAll(want, `\u0301`, "\u0301") {
		t.Errorf("got\n%s", got)
	}
}
