package tls_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
	"sheaf/parsers/tls"
)

// TestCaptures holds in which captures of other projects there is TLS, and that it
// is found in no other. Both have connections whose beginning was not seen, on ports
// that say nothing.
func TestCaptures(t *testing.T) {
	reg := parsers.NewRegistry(tls.Protocol())
	found := map[string]map[string]int{}
	for _, file := range parsertest.Captures(t) {
		parsertest.Scan(t, reg, parsertest.Segments(t, file), func(_ *parsers.Segment, sp parsers.Span) {
			if name := filepath.Base(file); sp.Protocol != parsers.Opaque && sp.At == 0 {
				if found[name] == nil {
					found[name] = map[string]int{}
				}
				found[name][tls.Name(sp.Name).String()]++
			}
		})
	}
	want := map[string]map[string]int{
		"amqp10-qpid-hello.pcapng":           {"application_data": 4},
		"mqtt-suricata-missing-connect.pcap": {"application_data": 11},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}
