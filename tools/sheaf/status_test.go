package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sheaf/engine"
	"sheaf/netstack"
)

// sampleStatus is a status with a bit of everything, after so many seconds.
func sampleStatus(seconds uint64) *engine.Status {
	since := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	n := seconds
	return &engine.Status{
		Fingerprint: "T1R4SAM-QG65WJ9-F9JRTQR-25KW9N5-N6M8CZ4-Z7T9S9S-0ESR6GA-2PQ1XAH",
		Device:      "sheaf0",
		Since:       since,
		Uptime:      time.Duration(seconds) * time.Second,
		Unroutable:  3,
		Losses:      engine.DeviceLosses{Malformed: 1, Unsplit: 2, Truncated: 3, Untaken: 4},
		Joined:      5,
		Stack: &netstack.StackStats{
			Stray: 6, Dropped: 7, Forward: netstack.EndStats{Active: 1, Opened: 2, Refused: 3, Failed: 4}, Terminal: netstack.EndStats{Failed: 1},
		},
		Secrets: &engine.SecretsStatus{
			Servers: []string{"10.2.0.10:8883", "10.2.0.10:4222"}, Connections: 40, Asked: 38, Known: 39, Evicted: 1, Lines: 205, Bad: 2,
			KeyLogs: []engine.KeyLogStatus{
				{Path: "/run/sheaf/keys", Bytes: 41_234, Grew: since.Add(time.Duration(seconds-3) * time.Second)},
				{Path: "/tmp/keys\x07", Fault: "others may read it\nchmod 600"},
			},
		},
		Faults: []string{"the device is down", "route 10.2.0.0/24 is missing"},
		Peers: []engine.PeerStatus{
			{
				Name: "plant-7", Up: true, Carrier: "quic", Remote: "198.51.100.7:4747", RTT: 41_240 * time.Microsecond,
				Since: since.Add(90 * time.Second), Error: "dial quic: no answer\ndial tls: refused",
				Allowed: []string{"10.1.0.0/16", "fd00:1::/64"}, Refused: 1,
				Sent:     engine.Traffic{Packets: 20 * n, Bytes: 4000 * n, Frames: n, BytesFrames: 100 * n, BytesWire: 145 * n},
				Received: engine.Traffic{Packets: 10 * n, Bytes: 600 * n, Frames: n, BytesFrames: 20 * n, BytesWire: 65 * n},
				Lanes: []engine.LaneStatus{
					{
						Class: "messages", Up: true, Epochs: 2, Ended: "no progress for 2s", Dropped: 1200, Verbatim: 7, Contexts: 40,
						Packets: 2000, Waited: 3400 * time.Millisecond, Longest: 31 * time.Millisecond,
						Flushes: map[string]uint64{"window": 5, "complete": 7000, "quiet": 0},
						Hits:    map[string]uint64{"event": 7100, "content": 2},
						Where: map[string]engine.WhereTotal{
							"frames":  {BytesOut: 8 * float64(n)},
							"headers": {BytesIn: 1000 * n, BytesOut: 2 * float64(n)},
							"bodies":  {BytesIn: 3000 * n, BytesOut: 90 * float64(n)},
						},
						TLS: engine.TLSStatus{
							Connections: 38, Records: 20 * n, Bytes: 2900 * n,
							Carried: map[string]uint64{"no secrets": 12, "cipher suite": 0, "secrets do not fit": 0, "server not named": 30},
						},
						Events: []engine.EventStatus{
							{Protocol: "mqtt", Message: "PUBLISH", Event: "plant/4/alarms", Messages: 19 * n, BytesIn: 3000 * n, BytesOut: 9.5 * float64(n)},
							{Protocol: "mqtt", Message: "PUBLISH", Event: "a/\x1b[2J\xff\n" + strings.Repeat("long", 20) + "/end", Messages: 12, BytesIn: 1500, BytesOut: 700},
							{Protocol: "mqtt", Message: "PINGRESP", Messages: 4, BytesIn: 216, BytesOut: 10},
							{Protocol: "nats", Message: "MSG", Event: "orders.eu", Messages: 1, BytesIn: 99, BytesOut: 40},
						},
					},
					{
						Class: "bulk", Epochs: 1, Flushes: map[string]uint64{"complete": 50, "full": 3},
						Where: map[string]engine.WhereTotal{"verbatim": {BytesIn: 60, BytesOut: 60}},
						TLS: engine.TLSStatus{
							Carried: map[string]uint64{"no secrets": 0, "cipher suite": n},
							Suites:  map[string]uint64{"TLS_RSA_WITH_AES_128_CBC_SHA": 2, "0x1306": 1},
						},
						Events: []engine.EventStatus{
							{Protocol: "opaque", Messages: 3 * n, BytesIn: 2000 * n, BytesOut: 1900 * float64(n)},
							{Protocol: "tls", Encrypted: true, Message: "application_data", Messages: n, BytesIn: 300 * n, BytesOut: 290 * float64(n)},
						},
					},
				},
			},
			{Name: "vessel\x07", Error: "never called", Lanes: []engine.LaneStatus{{Class: "messages"}, {Class: "bulk"}}},
		},
	}
}

// TestGoldenStatus holds how a status looks, once and while it is watched.
func TestGoldenStatus(t *testing.T) {
	var out bytes.Buffer
	writeStatus(&out, sampleStatus(7320), nil, 2)
	golden(t, "status.golden", out.String())
	out.Reset()
	writeStatus(&out, sampleStatus(7322), sampleStatus(7320), 0)
	golden(t, "status-watch.golden", out.String())
}

// TestStatusOfStates holds what is said of peers by their connection and lanes.
func TestStatusOfStates(t *testing.T) {
	lanes := []engine.LaneStatus{{Class: "messages", Fault: "x"}, {Class: "bulk", Up: true}}
	for _, test := range []struct {
		peer      engine.PeerStatus
		row, line string
	}{
		{engine.PeerStatus{Name: "p", Connected: true, Up: true, Error: "e"}, "p up ", "was down before because of: e"},
		{engine.PeerStatus{Name: "p", Connected: true, Error: "messages lane: versions 2 to 2 here, 1 to 1 there"}, "p fault ", "connected, but: messages lane: versions 2 to 2 here, 1 to 1 there"},
		{engine.PeerStatus{Name: "p", Error: "e"}, "p down ", "is down because of: e"},
	} {
		test.peer.Lanes = lanes
		var out bytes.Buffer
		writeStatus(&out, &engine.Status{Peers: []engine.PeerStatus{test.peer}}, nil, 0)
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, test.row) || !strings.Contains(text, test.line) {
			t.Errorf("%q and %q are not both in\n%s", test.row, test.line, &out)
		}
	}
}

// TestOddStatus looks at what is not usual: nothing yet, counters that went back,
// peers that came.
func TestOddStatus(t *testing.T) {
	for name, test := range map[string]struct{ now, before *engine.Status }{
		"empty":    {&engine.Status{}, nil},
		"new peer": {sampleStatus(60), &engine.Status{}},
		"back":     {sampleStatus(60), sampleStatus(61)},
		"at once":  {sampleStatus(60), sampleStatus(60)},
	} {
		var out bytes.Buffer
		writeStatus(&out, test.now, test.before, 10)
		if s := out.String(); strings.ContainsAny(s, "\x1b\x07") || strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
			t.Errorf("%s:\n%s", name, s)
		}
	}
}

func TestLasting(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 59*time.Second + 999*time.Millisecond: "59 s", time.Minute: "1 min 0 s",
		time.Hour + 2*time.Minute + 3*time.Second: "1 h 2 min", 49 * time.Hour: "2 d 1 h",
	} {
		if got := lasting(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, test := range []struct {
		text          string
		width, height int
		want          string
	}{
		{"a\nb\n", 80, 24, "a\nb\n"},
		{"äöü\nabcd\n", 3, 24, "äöü\nab…\n"},
		{"1\n2\n3\n4\n", 80, 5, "1\n2\n3\n4\n"},
		{"1\n2\n3\n4\n", 80, 4, "1\n2\n(2 lines more; a taller window or no --watch shows them)\n"},
		{"1\n2\n", 80, 1, "1\n2\n"}, {"1\n2\n", 0, 0, "1\n2\n"},
	} {
		if got := clip(test.text, test.width, test.height); got != test.want {
			t.Errorf("%q to %dx%d: %q, want %q", test.text, test.width, test.height, got, test.want)
		}
	}
}

// echo starts a server that says what it hears.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

// dial connects to what listens as soon as the server behind it is known to be
// there.
func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// TestStatus asks gateways that carry something.
func TestStatusOfPair(t *testing.T) {
	p := newPair(t, echo(t))
	p.run(t)
	c := dial(t, p.local)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Write(make([]byte, 30_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 30_000)); err != nil {
		t.Fatal(err)
	}
	got := sheaf(t, nil, "status", "--control", p.control)
	if got.code != exitOK || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	for _, want := range []string{"sheaf is up for", "broker  up", "  sent ", "  received ", "  messages  up", "opaque", "where it went", "frames sent because of: ", "behind it 10.2.0.0/24", "  hint: "} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is not in\n%s", want, got.stdout)
		}
	}
	// The object holds what the table shows, and reads back as what was written.
	got = sheaf(t, nil, "status", "--json", "--control", p.control)
	var s engine.Status
	dec := json.NewDecoder(strings.NewReader(got.stdout))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil || got.code != exitOK {
		t.Fatalf("%v: %+v", err, got)
	}
	if len(s.Peers) != 1 || s.Peers[0].Sent.Bytes < 30_000 || s.Peers[0].Received.Bytes < 30_000 {
		t.Errorf("%+v", s)
	}
	var out bytes.Buffer
	if err := (&statusOptions{json: true}).show(newScreen(&out), &s, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got.stdout, out.String()); diff != "" {
		t.Errorf("written again it is another:\n%s", diff)
	}
	if got := sheaf(t, nil, "status", "--events", "-1", "--control", p.control); got.code != exitUnusable || !strings.Contains(got.stderr, "expected 0 or more rows") {
		t.Errorf("%+v", got)
	}
	if code := run([]string{"status", "--control", p.control}, nil, &failing{}, io.Discard); code != exitUnusable {
		t.Errorf("exit code %d where nothing can be written", code)
	}
}

// TestStatusWatch watches a gateway that goes away and comes back. No terminal is
// there, so no escape sequence may be.
func TestStatusWatch(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	stop, _, _ := started(t, p.clients)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs record
	done := make(chan error, 1)
	go func() {
		done <- showStatus(ctx, &statusOptions{control: p.control, watch: true, events: 5}, &out, &errs)
	}()
	reports := func() int { return strings.Count(out.String(), "sheaf is up for") }
	eventually(t, "rates", func() bool { return strings.Contains(out.String(), "now: packets") })
	stop()
	eventually(t, "a complaint", func() bool { return strings.Contains(errs.String(), "no gateway is running") })
	before := reports()
	started(t, p.clients)
	eventually(t, "another report", func() bool { return reports() > before })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if strings.Contains(out.String(), "\x1b") || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("%s\n%s", out.String(), errs.String())
	}

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	var lines record
	go func() {
		done <- showStatus(ctx, &statusOptions{control: p.control, watch: true, json: true}, &lines, &errs)
	}()
	eventually(t, "two objects", func() bool { return strings.Count(lines.String(), "\n") >= 2 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(lines.String()) {
		var s engine.Status
		if err := json.Unmarshal([]byte(line), &s); err != nil || len(s.Peers) != 1 {
			t.Errorf("%v in %q", err, line)
		}
	}
}

// TestScreen draws on what is a terminal as far as it is told.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{w: &out, fd: 1 << 20} // no such file: its size is not known
	if err := s.redraw("one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	if newScreen(&out).fd != -1 {
		t.Error("a buffer is taken for a terminal")
	}
}
