package mqttsn_test

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/mqttsn"
	"sheaf/parsers/parsertest"
)

// TestCapturesOfOthers holds that no traffic is taken for MQTT-SN. There is no
// capture of it among them.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, parsers.NewRegistry(mqttsn.Protocol()), "mqttsn", "mqttsn-")
}
