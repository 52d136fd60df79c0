package vhostuser

import (
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// patience is how long anything may take that is a matter of milliseconds, on a machine
// with other things to do.
const patience = 20 * time.Second

// noLeaks fails the test if it leaves goroutines, descriptors or mappings behind. Call it first.
func noLeaks(t testing.TB) {
	t.Helper()
	warm(t)
	runtime.GC()
	percent := debug.SetGCPercent(-1) // which would close files that nobody closes
	before := count(t)
	t.Cleanup(func() {
		defer debug.SetGCPercent(percent)
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			now := count(t)
			if now.goroutines <= before.goroutines && now.files <= before.files && now.mappings <= before.mappings {
				return
			}
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				t.Errorf("before %+v, now %+v\n%s", before, now, buf[:runtime.Stack(buf, true)])
				return
			}
		}
	})
}

// held is what a process has.
type held struct{ goroutines, files, mappings int }

func count(t testing.TB) (h held) {
	buf := make([]byte, 1<<20)
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "sheaf/netstack") && !strings.Contains(g, "testing.tRunner") {
			h.goroutines++
		}
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	h.files, h.mappings = len(names), strings.Count(string(maps), "memfd:guest")
	return h
}

// warm lets the runtime open what it keeps, its poller.
func warm(t testing.TB) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
}
