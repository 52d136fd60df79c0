package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"sheaf/pcap"
	"sheaf/pcap/pcaptest"
)

// object is a JSON object as a stranger would read it.
type object = map[string]any

// replayJSON runs `sheaf replay --json` and returns its objects.
func replayJSON(t *testing.T, args ...string) ([]object, result) {
	t.Helper()
	return replayJSONFrom(t, nil, args...)
}

// replayJSONFrom is replayJSON with a standard input.
func replayJSONFrom(t *testing.T, stdin io.Reader, args ...string) ([]object, result) {
	t.Helper()
	got := sheaf(t, stdin, append([]string{"replay", "--json"}, args...)...)
	var out []object
	for line := range strings.Lines(got.stdout) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		out = append(out, o)
	}
	return out, got
}

// exact checks that all packets of a capture came out identical, and that no
// traffic takes more than it would plainly, but for 8 bytes a frame and as many for
// each flow that the other end had not heard of.
func exact(t *testing.T, o object) {
	t.Helper()
	want := o["packets"].(float64) - o["skipped"].(float64)
	if o["rebuilt"] != want || o["identical"] != want || o["mismatched"] != 0.0 {
		t.Errorf("%v: rebuilt %v, identical %v, mismatched %v; want %v: %v", o["file"], o["rebuilt"], o["identical"], o["mismatched"], want, o["difference"])
	}
	in, out, frames, flows := o["bytes_in"].(float64), o["bytes_frames"].(float64), o["frames"].(float64), o["contexts"].(float64)
	if frames > 0 && out >= in+8*(frames+flows) {
		t.Errorf("%v: %v bytes in %v frames for %v bytes of packets, %v flows", o["file"], out, frames, in, flows)
	}
}

// TestTestdata replays the captures in the repository with windows from none to
// a second.
func TestTestdata(t *testing.T) {
	files, err := filepath.Glob(captured("*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no captures", err)
	}
	for _, window := range []string{"0", "100us", "5ms", "50ms", "1s"} {
		objects, got := replayJSON(t, append(files, "--window", window)...)
		if got.code != exitOK || got.stderr != "" || len(objects) != len(files) {
			t.Errorf("window %s: exit code %d, %d objects of %d: %s", window, got.code, len(objects), len(files), got.stderr)
		}
		for i, o := range objects {
			if exact(t, o); o["file"] != files[i] || o["identical"] == 0.0 {
				t.Errorf("window %s: object %d is on %v of %v packets, want %s", window, i, o["file"], o["identical"], files[i])
			}
		}
	}
}

// TestJSON holds the form of what other programs read.
func TestJSON(t *testing.T) {
	objects, got := replayJSON(t, "--compare", captured("mixed-20.pcap.gz"), captured("missing.pcap"))
	if got.code != exitUnusable || len(objects) != 2 {
		t.Fatalf("exit code %d, %d objects", got.code, len(objects))
	}
	counters := []string{"packets", "rebuilt", "identical", "mismatched", "bytes_in", "frames", "bytes_frames", "carrier_packets", "bytes_wire"}
	numbers := func(o object, where string, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, ok := o[name].(float64); !ok {
				t.Errorf("%s%s is %v, want a number", where, name, o[name])
			}
		}
	}
	for _, o := range objects {
		numbers(o, "", append(counters, "skipped", "encode_ns_per_packet", "decode_ns_per_packet", "seconds", "verbatim", "contexts")...)
		directions := o["directions"].(object)
		for _, d := range []string{"up", "down"} {
			dir := directions[d].(object)
			numbers(dir, "directions."+d+".", append(counters, "messages", "event_messages")...)
			_, _ = dir["flush_reasons"].(object), dir["where"].(object)
		}
		for _, name := range []string{"protocols", "flush_reasons", "skip_reasons", "similarity", "where"} {
			if _, ok := o[name].(object); !ok {
				t.Errorf("%s is %v, want an object", name, o[name])
			}
		}
	}
	o := objects[0]
	exact(t, o)
	if o["file"] != captured("mixed-20.pcap.gz") || o["packets"] != 4772.0 {
		t.Errorf("file %v of %v packets", o["file"], o["packets"])
	}
	if want := o["bytes_frames"].(float64) + 60*o["carrier_packets"].(float64); o["bytes_wire"] != want {
		t.Errorf("bytes_wire %v, want %v", o["bytes_wire"], want)
	}
	for _, part := range []string{"headers", "acknowledgements", "topics", "bodies", "verbatim", "frames", "carrier"} {
		numbers(o["where"].(object)[part].(object), "where."+part+".", "bytes_in", "bytes_wire")
	}
	for _, reason := range []string{"window", "quiet", "ack", "urgent", "complete", "full", "end"} {
		numbers(o["flush_reasons"].(object), "flush_reasons.", reason)
	}
	for _, by := range []string{"event", "name", "length", "content", "none"} {
		numbers(o["similarity"].(object), "similarity.", by)
	}
	mqtt := o["protocols"].(object)["mqtt"].(object)
	numbers(mqtt, "protocols.mqtt.", "messages", "messages_up", "messages_down", "bytes_in", "bytes_frames", "bytes_wire")
	numbers(mqtt["other"].(object), "protocols.mqtt.other.", "events", "messages", "bytes_in", "bytes_frames", "bytes_wire")
	event := mqtt["events"].(object)["fab/4/state/2"].(object)
	numbers(event, "protocols.mqtt.events.x.", "messages", "messages_up", "messages_down", "bytes_in", "bytes_frames", "bytes_wire")
	if event["messages"] != 408.0 || event["messages_down"] != 408.0 {
		t.Errorf("event %v", event)
	}
	if len(o["compare"].([]any)) != 4 {
		t.Errorf("compare is %v", o["compare"])
	}
	if e, ok := objects[1]["error"].(string); !ok || !strings.Contains(e, "no such file") {
		t.Errorf("error is %v", objects[1]["error"])
	}
	if _, ok := o["error"]; ok {
		t.Errorf("error is %v", o["error"])
	}
}

func TestDamageInJSON(t *testing.T) {
	short := classic(101, datagram("one"), []byte{0x45}, datagram("two"))
	objects, got := replayJSON(t, written(t, "cut.pcap", short[:len(short)-1]))
	if got.code != exitOK || len(objects) != 1 {
		t.Fatalf("%+v", got)
	}
	o := objects[0]
	if damage, ok := o["damage"].(string); !ok || !strings.Contains(damage, "packet 3") {
		t.Errorf("damage is %v", o["damage"])
	}
	if o["packets"] != 2.0 || o["skipped"] != 1.0 || o["identical"] != 1.0 || fmt.Sprint(o["skip_reasons"]) != "map[broken IP header:1]" {
		t.Errorf("packets %v, skipped %v, identical %v, reasons %v", o["packets"], o["skipped"], o["identical"], o["skip_reasons"])
	}
}

func TestStdin(t *testing.T) {
	f, err := os.Open(captured("fanout-10-ipv6.pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := sheaf(t, f, "replay", "-")
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "-: 943 packets") {
		t.Errorf("%+v", got)
	}
}

// TestOut holds that the rebuilt packets can be read again, and are the same.
func TestOut(t *testing.T) {
	in := captured("odd.pcap")
	for _, name := range []string{"out.pcap", "out.pcap.gz"} {
		out := filepath.Join(t.TempDir(), name)
		// Without a wait, the order between the flows of a direction stays too.
		if got := sheaf(t, nil, "replay", "--window", "0", "--quiet", "0", "--ack-wait", "0", "--out", out, in); got.code != exitOK {
			t.Fatalf("%+v", got)
		}
		head, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if zipped := head[0] == 0x1f; zipped != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s begins with %x", name, head[:4])
		}
		want, got := packets(t, in), packets(t, out)
		for p, n := range want {
			if got[p] != n {
				t.Errorf("%s holds %d of %d packets %x", name, got[p], n, p)
			}
		}
		if len(want) != len(got) {
			t.Errorf("%s holds %d different packets of %d", name, len(got), len(want))
		}
		if again := sheaf(t, nil, "replay", out); again.code != exitOK || !strings.Contains(again.stdout, "all 429 came out identical") {
			t.Errorf("%s: %+v", name, again)
		}
	}
}

// packets returns how often a capture holds each packet.
func packets(t *testing.T, name string) map[string]int {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := pcap.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]int)
	for {
		p, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Skip == pcap.SkipNone {
			out[string(p.Data)]++
		}
	}
}

func TestOutSparesItsInput(t *testing.T) {
	short := classic(101, datagram("one"))
	path := written(t, "in.pcap", short)
	got := sheaf(t, nil, "replay", "--out", path, path)
	after, err := os.ReadFile(path)
	if got.code != exitUnusable || !strings.Contains(got.stderr, "would overwrite the capture") || err != nil || !bytes.Equal(after, short) {
		t.Errorf("%+v, %v", got, err)
	}
	if got := sheaf(t, nil, "replay", "--out", filepath.Join(path, "x"), path); got.code != exitUnusable || !strings.Contains(got.stderr, "--out") {
		t.Errorf("%+v", got)
	}
	// Of a capture that cannot be read, nothing is left behind.
	out := filepath.Join(t.TempDir(), "out.pcap")
	sheaf(t, &failing{bytes.NewReader(short), len(short) - 1}, "replay", "--out", out, "-")
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was left behind", out)
	}
}

// TestSharedCaptures replays captures recorded elsewhere, which lie beside the
// repository where they are at hand.
func TestSharedCaptures(t *testing.T) {
	root := pcaptest.Others(t)
	const unsupported = "rtps-decoder-exported-pdu.pcap" // link type 252
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".md" {
			return err
		}
		info, err := d.Info()
		if err == nil && !(testing.Short() && info.Size() > 100_000) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, got := replayJSON(t, files...)
	if len(objects) != len(files) || got.code != exitUnusable {
		t.Errorf("exit code %d, %d objects of %d files: %s", got.code, len(objects), len(files), got.stderr)
	}
	var failed []string
	for _, o := range objects {
		exact(t, o)
		if o["error"] != nil {
			failed = append(failed, filepath.Base(o["file"].(string)))
		}
	}
	if diff := cmp.Diff([]string{unsupported}, failed); diff != "" {
		t.Errorf("files that cannot be used:\n%s", diff)
	}
}

// TestHints holds what the report says of a capture that is not as it could be.
func TestHints(t *testing.T) {
	fddi := append([]byte{0, 0, 8, 0, 10, 0, 0, 0}, datagram("one")...) // in PPI
	cut := datagram("some more than was captured")
	cooked := func(iface byte, p []byte) []byte {
		return append([]byte{8, 0, 0, 0, 0, 0, 0, iface, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0}, p...)
	}
	packed, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		capture []byte
		want    []string
	}{
		{"link type", classic(192, fddi, fddi, fddi), []string{"  nothing to replay\n", "  3 skipped: 3 unsupported link type 10 (FDDI)\n"}},
		{"cut short", classic(101, datagram("one"), cut[:40]), []string{"  1 skipped: 1 cut short\n", "hint: of 1 packet fewer bytes were captured than they have; tcpdump -s 0 captures\n"}},
		{"any interface", classic(276, cooked(2, datagram("one")), cooked(3, datagram("one"))),
			[]string{"  all 1 came out identical\n", "  1 skipped: 1 copy of a packet captured twice\n", "  1 packet came again at another interface"}},
		{"short", classic(101, datagram("one"), datagram("two")), []string{"  time a packet: too short to tell, 2 packets\n"}},
		{"zstd", packed.EncodeAll(classic(101, datagram("one"), datagram("two")), nil), []string{"  all 2 came out identical\n"}},
	} {
		got := sheaf(t, nil, "replay", written(t, "hint.pcap", tt.capture))
		if got.code != exitOK || got.stderr != "" {
			t.Errorf("%s: %+v", tt.name, got)
		}
		for _, want := range tt.want {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: no %q in\n%s", tt.name, want, got.stdout)
			}
		}
	}
}
