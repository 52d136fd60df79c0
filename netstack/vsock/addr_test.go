package vsock

import (
	"errors"
	"testing"
)

func TestParseAddr(t *testing.T) {
	for s, want := range map[string]Addr{
		"vsock:1883":                   {Port: 1883},
		"vsock:4294967294":             {Port: maxPort},
		"vsock:meter-1:1883":           {Guest: "meter-1", Port: 1883},
		"vsock:3:1":                    {CID: 3, Port: 1},
		"vsock:4294967294:1":           {CID: anyCID - 1, Port: 1},
		"vsock:/run/vm:1/v.sock:52":    {Path: "/run/vm:1/v.sock", Port: 52},
		"vsock:3rd-of-the-meters:1883": {Guest: "3rd-of-the-meters", Port: 1883},
	} {
		got, err := ParseAddr(s)
		if got != want || err != nil {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
		if got.String() != s {
			t.Errorf("%s is written %s", s, got)
		}
	}
	for _, s := range []string{
		"1883", "tcp:1883", "vsock:", "vsock:0", "vsock:4294967295", "vsock:-1", "vsock:x",
		"vsock:meter-1:", "vsock::1883", "vsock:meter-1:0",
		"vsock:0:1", "vsock:1:1", "vsock:2:1", "vsock:4294967295:1", "vsock:99999999999:1",
	} {
		if a, err := ParseAddr(s); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %+v, %v", s, a, err)
		}
	}
	if s := (Addr{Guest: "meter-1", CID: 3, Port: 9}).String(); s != "vsock:meter-1:9" {
		t.Errorf("with name and CID: %s", s)
	}
}
