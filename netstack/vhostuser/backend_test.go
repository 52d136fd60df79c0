package vhostuser

import (
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sheaf/netstack/vhostuser/vhosttest"
)

// A text is what was logged.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The log has the cause of what happened, and not as often as a guest can bring it about.
func TestLog(t *testing.T) {
	noLeaks(t)
	log := &text{}
	path := filepath.Join(t.TempDir(), "s")
	n, err := OpenNIC(NICConfig{Path: path, MTU: testMTU, Log: slog.New(slog.NewTextHandler(log, nil))})
	must(t, err)
	defer n.Close()
	f, err := vhosttest.Dial(path)
	must(t, err)
	defer f.Close()
	must(t, f.Negotiate(0, ^uint64(0)))
	for range 100 * logBurst {
		must(t, f.Send(vhosttest.NetSetMTU, vhosttest.U64(testMTU+1)))
	}
	_, err = f.Get(vhosttest.GetFeatures)
	must(t, err)
	const want = "NET_SET_MTU: an MTU of 1401, more than 1400"
	if n := strings.Count(log.String(), want); n < 1 || n > 10*logBurst {
		t.Errorf("%q is in the log %d times:\n%.500s", want, n, log)
	}
}
