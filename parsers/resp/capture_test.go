package resp_test

import (
	"path/filepath"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/parsertest"
	"sheaf/parsers/resp"
)

// TestCapturesOfOthers holds that no other protocol's traffic is taken for RESP.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, builtin.Registry(), "redis", "redis")
}

// TestCaptures counts what is published and delivered, and all other messages,
// with segments in order.
func TestCaptures(t *testing.T) {
	for file, want := range map[string]struct{ published, others, events, opaque int }{
		"redis-zeek-pubsub-resp2.pcap":       {5, 12, 2, 0},
		"redis-zeek-inline-almost-resp.pcap": {0, 2, 0, 42}, // neither RESP nor far from it
		"redis-zeek-attributes.pcap":         {0, 0, 0, 146},
		"redis-zeek-bulk-loading.pcap":       {0, 2003, 0, 0},
		"redis-zeek-large.pcap":              {0, 10, 0, 0},
		"redis-zeek-django-cloud.pcapng":     {0, 158, 0, 928}, // short replies on a port of its own
		"redis-zeek-stream.pcap":             {3, 5, 1, 0},     // XADDs, which its README does not count
		"redis-ndpi-resp.pcap":               {0, 8, 0, 0},
		"redis-deepflow-get-500k.pcap":       {0, 20, 0, 0},
		"redis-zeek-django-cache.pcap":       {0, 632, 0, 0},
		"redis-deepflow-lrange.pcap":         {0, 2, 0, 0},
		"live/redis-fanout-100.pcap":         {2747, 400, 1, 0},
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			reg := builtin.Registry()
			id, _ := reg.Lookup("redis")
			published, others, opaque := 0, 0, 0
			events := map[string]bool{}
			parsertest.Scan(t, reg, parsertest.Reassemble(parsertest.Segments(t, parsertest.Capture(t, file))), func(_ *parsers.Segment, sp parsers.Span) {
				if sp.Protocol != id {
					opaque += sp.Len
					return
				}
				if sp.At != 0 {
					return
				}
				switch resp.Name(sp.Name) {
				case resp.PUBLISH, resp.SPUBLISH, resp.XADD, resp.Msg, resp.PMsg, resp.SMsg:
					published++
					if len(sp.Event) == 0 {
						t.Errorf("%s without an event", resp.Name(sp.Name))
					}
					events[string(sp.Event)] = true
				default:
					others++
				}
			})
			if published != want.published || others != want.others || len(events) != want.events || opaque != want.opaque {
				t.Errorf("%d published, %d others, %d opaque bytes, want %+v: %v", published, others, opaque, want, events)
			}
		})
	}
}
