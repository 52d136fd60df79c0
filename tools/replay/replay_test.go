package replay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
)

// captures returns the names of the captures in the repository.
func captures(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "testdata", "*.pcap*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no captures in testdata: %v", err)
	}
	return names
}

// a capturedPacket is a packet of a capture, owned.
type capturedPacket struct {
	at   time.Duration
	data []byte
}

// load reads all packets of a capture.
func load(t testing.TB, name string) []capturedPacket {
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
	var clock pcap.Clock
	var out []capturedPacket
	for {
		p, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Skip == pcap.SkipNone {
			out = append(out, capturedPacket{clock.At(p.Time), bytes.Clone(p.Data)})
		}
	}
}

// config returns a Config in which everything waits for w; 0 is not at all.
func config(w time.Duration) Config {
	if w == 0 {
		w = -1
	}
	return Config{Overhead: 60, Lane: aggregate.Config{
		Window: w, Quiet: w, AckWait: w, Registry: builtin.Registry(),
	}}
}

// replayFile replays a capture and returns the report.
func replayFile(t *testing.T, name string, cfg Config) *Report {
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
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.Run(in)
	return r.Report(name, err)
}

func TestSumsAgree(t *testing.T) {
	for _, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			p := replayFile(t, name, config(5*time.Millisecond))
			if !p.Exact() || p.Error+p.Damage != "" {
				t.Fatalf("not exact: %+v", p)
			}
			both := p.Directions.Up.Counts
			both.add(&p.Directions.Down.Counts)
			both.Packets += p.Skipped
			if diff := cmp.Diff(both, p.Counts); diff != "" {
				t.Errorf("directions and their sum differ:\n%s", diff)
			}
			if want := p.BytesFrames + 60*p.CarrierPackets; p.BytesWire != want {
				t.Errorf("%d bytes on the wire, want %d", p.BytesWire, want)
			}
			in, wire, flushes := uint64(0), 0.0, uint64(0)
			for _, part := range p.Where {
				in += part.BytesIn
				wire += part.BytesWire
			}
			for _, n := range p.FlushReasons {
				flushes += n
			}
			if in != p.BytesIn || flushes != p.Frames {
				t.Errorf("parts hold %d bytes of %d, reasons %d frames of %d", in, p.BytesIn, flushes, p.Frames)
			}
			// Of each frame, a few bits are nobody's.
			if missing := float64(p.BytesWire) - wire; missing < -float64(p.Frames)-10 || missing > float64(p.Frames)+10 {
				t.Errorf("parts took %.0f bytes of %d", wire, p.BytesWire)
			}
			for name, protocol := range p.Protocols {
				sum := protocol.Other.Messages
				for _, e := range protocol.Events {
					sum += e.Messages
				}
				if sum != protocol.Messages {
					t.Errorf("events of %s have %d messages of %d", name, sum, protocol.Messages)
				}
			}
		})
	}
}

// TestDeterministic holds that two replays differ in nothing but the time spent.
func TestDeterministic(t *testing.T) {
	name := filepath.Join("..", "..", "testdata", "odd.pcap")
	cfg := config(time.Millisecond)
	cfg.Compare = true
	a, b := replayFile(t, name, cfg), replayFile(t, name, cfg)
	if diff := cmp.Diff(a, b, cmpopts.IgnoreFields(Report{}, "EncodeNs", "DecodeNs"), cmpopts.IgnoreUnexported(Row{}),
		cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("two replays differ:\n%s", diff)
	}
}

func TestRebuiltAndProgress(t *testing.T) {
	name := filepath.Join("..", "..", "testdata", "mixed-20.pcap.gz")
	cfg := config(time.Millisecond)
	packets, calls := 0, 0
	var last time.Time
	cfg.Rebuilt = func(at time.Time, p []byte) error {
		if at.Before(last) || len(p) == 0 {
			t.Fatalf("packet %d of %d bytes came out at %v, after one of %v", packets, len(p), at, last)
		}
		last = at
		packets++
		return nil
	}
	cfg.Progress = func() { calls++ }
	p := replayFile(t, name, cfg)
	if uint64(packets) != p.Rebuilt || calls != int(p.Packets/progressEvery) {
		t.Errorf("%d packets given of %d, %d calls of Progress", packets, p.Rebuilt, calls)
	}
	stop := errors.New("disk full")
	cfg.Rebuilt = func(time.Time, []byte) error { return stop }
	if p := replayFile(t, name, cfg); p.Error != stop.Error() || p.Fault != "" {
		t.Errorf("error %q, fault %q", p.Error, p.Fault)
	}
}

func TestCompare(t *testing.T) {
	cfg := config(5 * time.Millisecond)
	cfg.Compare = true
	p := replayFile(t, filepath.Join("..", "..", "testdata", "fanout-100.pcap.gz"), cfg)
	names := []string{"plain", "header-compression", "zstd-3", "zstd-19"}
	for i, v := range p.Compare {
		if v.Name != names[i] || v.BytesWire != v.Bytes+60*v.CarrierPackets || v.BytesUp+v.BytesDown != v.BytesWire {
			t.Errorf("%+v does not add up", v)
		}
		if i > 0 && v.Bytes >= p.Compare[i-1].Bytes {
			t.Errorf("%s takes %d bytes, %s no more than %d", v.Name, v.Bytes, names[i-1], p.Compare[i-1].Bytes)
		}
	}
	if len(p.Compare) != len(names) || p.Compare[0].BytesWire != p.BytesIn {
		t.Errorf("compared with %+v", p.Compare)
	}
}

// TestFault holds that a frame which cannot be expanded ends the replay, and that
// no packet is counted as having come out.
func TestFault(t *testing.T) {
	r, err := New(config(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	packets := load(t, filepath.Join("..", "..", "testdata", "fanoutskew-20-qos1.pcap.gz"))[:10]
	// An end that has missed a frame does not know what the next refers to.
	r.ends[Up].Merger.Add(0, packets[0].data)
	r.ends[Down].Merger.Add(0, packets[0].data)
	r.ends[Up].Merger.Flush(nil, 0, aggregate.FlushEnd)
	r.ends[Down].Merger.Flush(nil, 0, aggregate.FlushEnd)
	for _, p := range packets {
		if err = r.Add(p.at, p.data); err != nil {
			break
		}
	}
	err = errors.Join(err, r.Finish())
	var fault *FaultError
	if !errors.As(err, &fault) {
		t.Fatalf("error %v, want a FaultError", err)
	}
	p := r.Report("x", err)
	if p.Exact() || p.Fault == "" || p.Mismatched != 10 || p.Identical != 0 {
		t.Errorf("report %+v", p)
	}
	if again := r.Add(0, packets[0].data); again == nil {
		t.Error("a lane that broke down takes another packet")
	}
}

func BenchmarkReplay(b *testing.B) {
	packets := load(b, filepath.Join("..", "..", "testdata", "fanout-100.pcap.gz"))
	cfg := config(5 * time.Millisecond)
	var spent time.Duration
	for b.Loop() {
		r, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		for _, p := range packets {
			if err := r.Add(p.at, p.data); err != nil {
				b.Fatal(err)
			}
		}
		if err := r.Finish(); err != nil {
			b.Fatal(err)
		}
		spent += r.Encode + r.Decode
	}
	n := float64(b.N * len(packets))
	b.ReportMetric(float64(b.Elapsed())/n, "ns/packet")
	b.ReportMetric(float64(b.Elapsed()-spent)/n, "overhead-ns/packet")
}
