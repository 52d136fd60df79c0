package main

import (
	"fmt"
	"os"
	"sheaf/tools/mkcapture/capgen"
	"testing"
)

func TestMixedProbe(t *testing.T) {
	if os.Getenv("MIXED") == "" {
		t.Skip()
	}
	defer oneCore()()
	tr, err := makeTrace(capgen.Mixed, capgen.Config{Clients: 50, Messages: 4000})
	if err != nil {
		t.Fatal(err)
	}
	s, err := speedOf("mixed", tr, 9)
	if err != nil {
		t.Fatal(err)
	}
	s.table().write(os.Stdout)
	for _, f := range []string{"mqtt-mixed-50x20", "mqtt-telemetry-200-qos1", "mqtt-control-200", "mqtt-fanout-500-qos0", "mqtt-fanout-10-qos0", "mqtt-fanout-100-qos1"} {
		tr, err := loadTrace("../../../shared/captures/full/" + f + ".pcap.gz")
		if err != nil {
			t.Fatal(err)
		}
		s, err := speedOf(f, tr, 3)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s: encode %.0f decode %.0f zstd %.0f allocs %.4f %.4f\n", f, s.Encode.Min, s.Decode.Min, s.Zstd.Min, s.EncodeAllocs, s.DecodeAllocs)
	}
}
