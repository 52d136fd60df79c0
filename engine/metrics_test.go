package engine

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// What the userspace stack counts is in the status and in the metrics.
func TestStackIsShown(t *testing.T) {
	s, socket := lone(t)
	p := datagram("10.1.0.1", "10.9.0.1")
	s.g.deliver(s.g.peers["a"], [][]byte{p, p})
	st, err := NewClient(socket).Status(t.Context())
	if err != nil || st.Stack == nil || st.Stack.Stray != 2 || st.Stack.Terminal.Active != 0 {
		t.Fatalf("status %+v, %v", st.Stack, err)
	}
	resp, err := http.Get("http://" + s.g.scrape.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	for _, want := range []string{
		`sheaf_stack_lost_packets_total{reason="stray"} 2`, `sheaf_stack_lost_packets_total{reason="dropped"} 0`,
		`sheaf_connections{end="terminate"} 0`, `sheaf_connections{end="forward"} 0`, `sheaf_connections_total{end="terminate",outcome="refused"} 0`,
		`sheaf_device_joined_packets_total 0`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the metrics (%v):\n%s", want, err, text)
		}
	}
}
