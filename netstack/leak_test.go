package netstack

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// noLeaks fails the test if goroutines of this package or of the stack are left
// when everything that the test closes itself is closed. Call it first.
func noLeaks(t *testing.T) {
	before := goroutines()
	t.Cleanup(func() {
		deadline := time.Now().Add(5 * time.Second)
		for {
			after := goroutines()
			if len(after) <= len(before) {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines before, %d after:\n%s", len(before), len(after), strings.Join(after, "\n\n"))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

func goroutines() []string {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var own []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if (strings.Contains(g, "sheaf/netstack") || strings.Contains(g, "gvisor.dev")) && !strings.Contains(g, "testing.tRunner") {
			own = append(own, g)
		}
	}
	return own
}
