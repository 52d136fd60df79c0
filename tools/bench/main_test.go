package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/tools/mkcapture/capgen"
)

// tiny is a capture of some hundred packets.
func tiny(t *testing.T) capture {
	t.Helper()
	f := capgen.File{Workload: capgen.Fanout, Config: capgen.Config{Clients: 10, Messages: 20}}
	name := filepath.Join(t.TempDir(), "tiny.pcap")
	w, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WritePcap(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return capture{name: "tiny", must: 100, aim: 50, open: func() (io.ReadCloser, error) { return os.Open(name) }}
}

// TestSizes holds the order of the columns: each way is smaller than the one
// before.
func TestSizes(t *testing.T) {
	all, err := measureSizes([]capture{tiny(t)})
	if err != nil {
		t.Fatal(err)
	}
	s := &all[0]
	if s.Messages != 10*20 {
		t.Errorf("%d messages, want %d", s.Messages, 10*20)
	}
	if !(s.Sheaf > 0 && s.Sheaf < s.Zstd19 && s.Zstd19 < s.Zstd3 && s.Zstd3 < s.Plain && s.Headers < s.Plain) {
		t.Errorf("sizes out of order: %+v", s)
	}
	var b strings.Builder
	sizeTable("a test", all).write(&b)
	if !strings.Contains(b.String(), "aim reached") {
		t.Errorf("the table does not say that the aim is reached:\n%s", b.String())
	}
}

// TestSpeed holds that lanes allocate nothing in the steady state, and that a
// pass makes the frames of its schedule.
func TestSpeed(t *testing.T) {
	s, err := speedOf("fanout", fanout(t, 300), 2)
	if err != nil {
		t.Fatal(err)
	}
	if s.Packets == 0 || s.Encode.Min <= 0 || s.Decode.Min <= 0 || s.Zstd.Min <= 0 || s.Encode.Median < s.Encode.Min {
		t.Errorf("%+v", s)
	}
	if hard, _ := s.missed(); len(hard) > 0 {
		t.Error(hard)
	}
	var b strings.Builder
	s.table().write(&b)
	for _, want := range []string{"encode (Add, Flush)", "decode (Expand)", "zstd SpeedDefault", "encode / zstd"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no row %q in\n%s", want, b.String())
		}
	}
}

func TestFlows(t *testing.T) {
	full := 0
	all, err := measureFlows([]int{10, 2000}, func() error { full++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if full != 1 {
		t.Errorf("the hook was called %d times, want once", full)
	}
	last := &all[1]
	if last.Packets < flowLeast || last.Encode <= 0 || last.Growth <= 0 {
		t.Errorf("%+v", last)
	}
	// A flow has to be remembered somewhere, and not more than by a lot.
	if last.Heap[up] < 100 || last.Heap[down] < 100 || last.heap() > 4*targetMemory {
		t.Errorf("a flow takes %v bytes", last.Heap)
	}
}

// TestScheduleIsRepeatable holds that a source gives the same schedule again.
func TestScheduleIsRepeatable(t *testing.T) {
	src := fanout(t, 10).packets
	var steps [2][]step
	for i := range steps {
		s, err := newSchedule(src, nil)
		if err != nil {
			t.Fatal(err)
		}
		steps[i] = s.steps
	}
	if len(steps[0]) == 0 || len(steps[0]) != len(steps[1]) {
		t.Fatalf("%d frames, then %d", len(steps[0]), len(steps[1]))
	}
	for i := range steps[0] {
		if steps[0][i] != steps[1][i] {
			t.Fatalf("frame %d: %+v, then %+v", i, steps[0][i], steps[1][i])
		}
	}
}

// TestFramesChecksItsSource holds that a schedule is not run over other packets.
func TestFramesChecksItsSource(t *testing.T) {
	s, err := newSchedule(flowPackets(10, 100), nil)
	if err != nil {
		t.Fatal(err)
	}
	none := func(*step, *batch) error { return nil }
	if err := s.frames(flowPackets(10, 100), none); err != nil {
		t.Error(err)
	}
	if err := s.frames(flowPackets(10, 99), none); err == nil {
		t.Error("a packet is missing, and no error")
	}
}

func TestTable(t *testing.T) {
	tab := &table{title: "sizes", heading: []string{"what", "B", ""}, notes: []string{"a note"}}
	tab.add("one", "1", "ok")
	tab.add("a thousand", grouped(1234567), "MISSED")
	var b strings.Builder
	tab.write(&b)
	want := `
sizes
  what                B
  one                 1      ok
  a thousand  1,234,567  MISSED
  a note
`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestConclude(t *testing.T) {
	size := Size{Name: "tiny", Sheaf: 3, Must: 2}
	slow := []Speed{{Encode: Spread{Median: targetEncode + 1}}}
	big := Flows{Flows: 1000, Growth: 1, Heap: [2]float64{0, targetMemory + 1}}
	for _, c := range []struct {
		name   string
		result Result
		check  bool
		fails  bool
		says   string
	}{
		{"nothing measured", Result{}, true, false, "all targets met"},
		{"size", Result{Real: []Size{size}}, true, true, "MISSED: size of tiny: 3.00 B, must 2 B"},
		{"size, unchecked", Result{Real: []Size{size}}, false, false, "MISSED: size of tiny"},
		{"time", Result{Speed: slow}, true, false, "MISSED: encode takes 1501 ns"},
		{"allocations", Result{Speed: []Speed{{DecodeAllocs: 1}}}, true, true, "MISSED: decode allocates 1.0000"},
		{"sealing", Result{Sealing: []Sealing{{Name: "TLS", Opened: true, Beyond: targetSealing + 1}}}, true, false, "MISSED: TLS takes 1501 ns a record"},
		{"sealing at its target", Result{Sealing: []Sealing{{Opened: true, Beyond: targetSealing}}}, true, false, "all targets met"},
		{"not sealing", Result{Sealing: []Sealing{{Beyond: targetSealing + 1, Allocs: 1}}}, true, false, "all targets met"},
		{"allocations of sealing", Result{Sealing: []Sealing{{Name: "TLS", Opened: true, Allocs: targetSealingAllocs}}}, true, true, "MISSED: TLS allocates 0.0100"},
		{"memory", Result{Flows: []Flows{big}}, true, true, "MISSED: with 1,000 flows a gateway remembers 1025 B"},
		{"growth", Result{Flows: []Flows{{Flows: 100, Growth: 1}, {Flows: 1000, Growth: 3}}}, true, false, "MISSED: with 1,000 flows a packet takes 3.00 times"},
	} {
		var b strings.Builder
		err := conclude(&c.result, c.check, &b)
		if c.fails != errors.Is(err, errMissed) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if !strings.Contains(b.String(), c.says) {
			t.Errorf("%s: %q does not say %q", c.name, b.String(), c.says)
		}
	}
}

// TestRun holds that the command runs where there are no captures but those of the
// repository, and writes what it is asked to.
func TestRun(t *testing.T) {
	recorded, err := filepath.Abs(filepath.Join("..", "..", defaultRecorded))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var out, errs strings.Builder
	err = run([]string{"-short", "-only", "sizes,speed,sealing", "-recorded", recorded, "-json", "out.json", "-cpuprofile", "cpu.prof", "-memprofile", "mem.prof"}, &out, &errs)
	if err != nil {
		t.Fatal(err, errs.String())
	}
	for _, want := range []string{"sizes of the captures in testdata: ", "RabbitMQ, fan-out to 100 ", "inside TLS ", "speed: ", "speed of other traffic: ", "telemetry-200", "sealing: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	b, err := os.ReadFile("out.json")
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := json.Unmarshal(b, &r); err != nil || len(r.Sizes) < 5 || len(r.Speed) < 2 || r.Flows != nil {
		t.Errorf("%v, %+v", err, r)
	}
	for _, name := range []string{"cpu.prof", "mem.prof"} {
		if fi, err := os.Stat(name); err != nil || fi.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"-only", "size"}, {"-nonsense"}, {"some.pcap"}} {
		var errs strings.Builder
		if err := run(args, io.Discard, &errs); !errors.Is(err, errUsage) || errs.Len() == 0 {
			t.Errorf("%v: error %v, said %q", args, err, errs.String())
		}
	}
	if err := run([]string{"-recorded", "nowhere", "-only", "sizes"}, io.Discard, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("captures that are not there: error %v", err)
	}
}
