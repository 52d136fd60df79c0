package stomp_test

import (
	"slices"
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/parsertest"
	"sheaf/parsers/stomp"
)

// TestCapturesOfOthers holds that no other protocol's traffic is taken for STOMP.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, builtin.Registry(), "stomp", "stomp")
}

// TestCaptures counts frames. The capture's one message is there as the SEND and
// as the MESSAGE, in lower case, that it becomes.
func TestCaptures(t *testing.T) {
	reg := builtin.Registry()
	id, _ := reg.Lookup("stomp")
	var got []string
	parsertest.Scan(t, reg, parsertest.Reassemble(parsertest.Segments(t, parsertest.Capture(t, "stomp-ndpi-queue.pcapng"))), func(_ *parsers.Segment, sp parsers.Span) {
		if sp.Protocol != id || sp.At != 0 {
			t.Errorf("span %+v", sp)
		}
		got = append(got, strings.TrimSpace(stomp.Name(sp.Name).String()+" "+string(sp.Event)))
	})
	want := []string{
		"STOMP", "SUBSCRIBE /queue/test", "SEND /queue/test", "DISCONNECT",
		"CONNECTED", "MESSAGE /queue/test", "RECEIPT",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
