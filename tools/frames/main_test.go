package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
	"sheaf/pcap/pcaptest"
	replayed "sheaf/tools/replay"
)

// write makes a file of a directory.
func write(t *testing.T, dir, name string, text []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// datagram returns a UDP packet to a port of a broker, or from there.
func datagram(d way, body string) []byte {
	p := append([]byte{0x45, 0, 0, byte(28 + len(body)), 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 1, 1, 2, 0x90, 0, 0x16, 0x33, 0, byte(8 + len(body)), 0, 0}, body...)
	if d == down {
		copy(p[12:], []byte{10, 1, 1, 2, 10, 1, 1, 1, 0x16, 0x33, 0x90, 0})
	}
	return p
}

// made returns a capture of a packet each way, the second one so long after.
func made(t *testing.T, answer string, after time.Duration) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcap.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range [][]byte{datagram(up, "question"), datagram(down, answer)} {
		if err := w.Write(time.Unix(1_700_000_000, 0).Add(time.Duration(i)*after), p); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// lines runs the program on a directory.
func lines(t *testing.T, args ...string) []string {
	t.Helper()
	var out strings.Builder
	if err := run(args, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestLines(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "captures")
	capture := made(t, "answer", 50*time.Millisecond)
	write(t, dir, "b/two.pcap", capture)
	write(t, dir, "broken.pcapng.zst", []byte("no capture at all"))
	write(t, dir, "cut.pcap", capture[:len(capture)-1])
	write(t, dir, "large.pcap", append(bytes.Clone(capture), make([]byte, quickSize)...))
	write(t, dir, "notes.txt", []byte("no capture"))
	t.Chdir(t.TempDir())
	write(t, ".", "p/testdata/some.txt", []byte("name: v\nhex: 00\n"))

	// The length of frames, the packets rebuilt and the sums are the core's affair.
	sum := regexp.MustCompile(`/\d+(\tdown \d+)/\d+\tpackets \d+\tbytes [0-9a-f]{64}\ttimes [0-9a-f]{16}$`)
	var got []string
	for _, line := range lines(t, dir) {
		got = append(got, sum.ReplaceAllString(line, "$1"))
	}
	want := []string{"vector\tv\t00"}
	for _, c := range configurations {
		want = append(want, "captures/b/two.pcap\t"+c.name+"\tup 1\tdown 1")
	}
	want = append(want, "captures/broken.pcapng.zst\tunreadable")
	for _, c := range configurations {
		want = append(want, "captures/cut.pcap\t"+c.name+"\tup 1\tdown 0")
	}
	all := len(want) + len(configurations)
	if len(got) != all {
		t.Fatalf("%d lines, want %d:\n%s", len(got), all, strings.Join(got, "\n"))
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Error(diff)
	}
	if quick := lines(t, "-quick", dir); len(quick) != len(want) {
		t.Errorf("%d lines with -quick, want %d", len(quick), len(want))
	}
	if err := run([]string{"-x"}, io.Discard, io.Discard); err == nil || errors.Is(err, flag.ErrHelp) {
		t.Errorf("an unknown option: %v", err)
	}
}

// TestEachByteCounts holds that the sums tell contents and moments apart.
func TestEachByteCounts(t *testing.T) {
	line := func(answer string, after time.Duration) string {
		dir := t.TempDir()
		write(t, dir, "x.pcap", made(t, answer, after))
		_, sums, ok := strings.Cut(lines(t, dir)[0], "\tbytes ")
		if !ok {
			t.Fatal("no sums")
		}
		return sums
	}
	t.Chdir(t.TempDir()) // where no vectors are
	was := line("answer", time.Second)
	if again := line("answer", time.Second); again != was {
		t.Errorf("the same gives %s and %s", was, again)
	}
	content, times, _ := strings.Cut(was, "\ttimes ")
	if c, at, _ := strings.Cut(line("answeR", time.Second), "\ttimes "); c == content || at != times {
		t.Errorf("another byte gives %s, %s, and not another sum of bytes alone: %s", c, at, was)
	}
	if _, at, _ := strings.Cut(line("answer", time.Second+time.Microsecond), "\ttimes "); at == times {
		t.Errorf("another moment gives %s, as before", at)
	}
}

// TestSums holds that the sum of bytes is what the package comment says it is.
func TestSums(t *testing.T) {
	lane, err := aggregate.NewLane(aggregate.Config{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	packet := datagram(up, "question")
	if err := lane.Merger.Add(0, packet); err != nil {
		t.Fatal(err)
	}
	due, why, _ := lane.Merger.Deadline()
	frame := lane.Merger.Flush(nil, due, why)
	want := sha256.Sum256(append([]byte{0, 0, 0, 0, byte(len(frame))}, frame...))

	p, err := newPair(func(*aggregate.Config) {})
	if err == nil {
		err = errors.Join(p.add(0, up, packet), p.advance(due, true))
	}
	if line := p.line(err); !strings.Contains(line, fmt.Sprintf("\tpackets 1\tbytes %x\t", want)) {
		t.Errorf("%q, want the sum %x", line, want)
	}
}

// TestAsReplay holds that the frames are those of sheaf replay.
func TestAsReplay(t *testing.T) {
	for _, name := range []string{"fanout-10-ipv6.pcap.gz", "fanout-20-qos1.pcap.gz"} {
		path := filepath.Join(pcaptest.Own(t), name)
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		in, err := pcap.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := replayed.New(replayed.Config{Lane: aggregate.Config{Registry: builtin.Registry()}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Run(in); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := replay(&out, path, name); err != nil {
			t.Fatal(err)
		}
		p := pair{packets: int(r.Total().Rebuilt)}
		for i, d := range []replayed.Direction{replayed.Up, replayed.Down} {
			p.frames[i], p.bytes[i] = int(r.Way(d).Frames), int(r.Way(d).BytesFrames)
		}
		if want := name + "\tdefault\t" + p.counts(); !strings.HasPrefix(out.String(), want) {
			t.Errorf("%.150s, want\n%s", out.String(), want)
		}
	}
}

// TestFault holds that a fault is told, and ends the capture for its configuration.
func TestFault(t *testing.T) {
	p, err := newPair(func(c *aggregate.Config) {})
	if err != nil {
		t.Fatal(err)
	}
	good := p.line(nil)
	if bad := p.line(errors.New("words that change")); bad != strings.TrimSuffix(good, "\n")+"\tfault\n" {
		t.Errorf("%q, beside %q without a fault", bad, good)
	}
	if _, err := newPair(func(c *aggregate.Config) { c.Registry = nil }); err == nil {
		t.Error("a lane without protocols was started")
	}
}

func TestVectors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a/testdata/x.txt", []byte("# a file\n\nname: one\nhex: 0a0b\n\nname: same\nhex: 01\nhex: 02\n"))
	write(t, dir, "b/c/testdata/y.txt", []byte("name: same\ndo: nothing\nhex:\n\nname: no digits\n"))
	write(t, dir, "b/c/z.txt", []byte("name: elsewhere\nhex: 0c\n"))
	var out strings.Builder
	if err := vectors(&out, dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("vector\tone\t0a0b\nvector\tsame\t\nvector\tsame\t01 02\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWays(t *testing.T) {
	tcp := func(from, to uint16, flags byte) []byte {
		p := make([]byte, 40)
		p[0], p[9], p[33] = 0x45, 6, flags
		p[12], p[16] = byte(from), byte(to) // hosts of their own
		p[20], p[21], p[22], p[23] = byte(from>>8), byte(from), byte(to>>8), byte(to)
		return p
	}
	fragment := tcp(1883, 40000, 0)
	fragment[6] = 0x20
	six := make([]byte, 60)
	six[0], six[6] = 0x60, 6
	copy(six[40:], tcp(1883, 40000, 0x10)[20:])
	const syn, synAck, ack = 0x02, 0x12, 0x10
	for _, tt := range []struct {
		name   string
		packet []byte
		want   way
	}{
		{"to a broker", tcp(40000, 1883, ack), up},
		{"from a broker", tcp(1883, 40000, ack), down},
		{"from a broker that calls", tcp(1883, 40000, syn), down},
		{"IPv6", six, down},
		{"opened", tcp(100, 40000, syn), up},
		{"answered", tcp(100, 40000, synAck), down},
		{"from the lower port", tcp(100, 40000, ack), down},
		{"to the lower port", tcp(40000, 100, ack), up},
		{"a fragment has no ports", fragment, up},
		{"nothing", nil, up},
		{"too short", tcp(1883, 40000, ack)[:30], up},
	} {
		w := newWays(builtin.Registry())
		if got := w.of(tt.packet); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
	w := newWays(builtin.Registry())
	if w.of(tcp(100, 40000, syn)) != up || w.of(tcp(40000, 100, ack)) != down || w.of(tcp(100, 40000, ack)) != up {
		t.Error("the ways of a flow and its reverse do not stay")
	}
}
