package replay

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"sheaf/parsers/builtin"
	"sheaf/parsers/ip"
)

func TestParseEndpoint(t *testing.T) {
	for s, want := range map[string]string{
		"10.2.0.10":            "10.2.0.10",
		"10.2.0.10:1883":       "10.2.0.10:1883",
		"fd00::10":             "fd00::10",
		"[fd00::10]:1883":      "[fd00::10]:1883",
		"::ffff:10.2.0.10":     "10.2.0.10",
		"[::ffff:10.2.0.10]:1": "10.2.0.10:1",
		"":                     "",
		"broker":               "",
		"10.2.0.10:":           "",
		"10.2.0.10:0":          "",
		"10.2.0.10:65536":      "",
		"10.2.0.10:mqtt":       "",
		"[fd00::10]":           "",
		"fe80::1%eth0":         "",
		":1883":                "",
	} {
		got, err := ParseEndpoint(s)
		switch {
		case want == "" && err == nil:
			t.Errorf("%q was taken for %v", s, got)
		case want != "" && (err != nil || got.String() != want):
			t.Errorf("%q: %v, %v, want %s", s, got, err, want)
		}
	}
}

// tcp returns a bare IPv4 and TCP header between 10.1.1.1 and 10.2.0.10.
func tcp(src, dst uint16, flags byte, fromBroker bool) []byte {
	p := make([]byte, 40)
	p[0], p[3], p[9], p[32], p[33] = 0x45, 40, ip.TCP, 0x50, flags
	a, b := []byte{10, 1, 1, 1}, []byte{10, 2, 0, 10}
	if fromBroker {
		a, b = b, a
	}
	copy(p[12:], a)
	copy(p[16:], b)
	p[20], p[21], p[22], p[23] = byte(src>>8), byte(src), byte(dst>>8), byte(dst)
	return p
}

func TestSides(t *testing.T) {
	fragment := tcp(0, 0, 0, true)
	fragment[7] = 8 // an offset
	for _, test := range []struct {
		name    string
		broker  string
		packets [][]byte
		want    []Direction
	}{
		{"known port", "", [][]byte{tcp(40000, 1883, 16, false), tcp(1883, 40000, 16, true)}, []Direction{Up, Down}},
		{"known port above the other", "", [][]byte{tcp(1883, 400, 16, true), tcp(400, 1883, 16, false)}, []Direction{Down, Up}},
		{"SYN", "", [][]byte{tcp(400, 9999, 2, false), tcp(9999, 400, 18, true)}, []Direction{Up, Down}},
		{"SYN of ECN", "", [][]byte{tcp(400, 9999, 0xc2, false)}, []Direction{Up}},
		{"SYN and ACK alone", "", [][]byte{tcp(9999, 400, 18, true)}, []Direction{Down}},
		{"lower port", "", [][]byte{tcp(9999, 400, 16, false), tcp(400, 9999, 16, true)}, []Direction{Up, Down}},
		{"broker", "10.1.1.1", [][]byte{tcp(40000, 1883, 16, false), tcp(1883, 40000, 16, true)}, []Direction{Down, Up}},
		{"broker with port", "10.1.1.1:40000", [][]byte{tcp(40000, 1883, 2, false)}, []Direction{Down}},
		{"broker with another port", "10.1.1.1:40001", [][]byte{tcp(40000, 1883, 2, false)}, []Direction{Up}},
		{"fragments go with their hosts", "", [][]byte{tcp(40000, 1883, 16, false), fragment}, []Direction{Up, Down}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var broker Endpoint
			if test.broker != "" {
				var err error
				if broker, err = ParseEndpoint(test.broker); err != nil {
					t.Fatal(err)
				}
			}
			s := newSides(builtin.Registry(), broker)
			for range 2 {
				for i, p := range test.packets {
					if got := s.flow(p).dir; got != test.want[i] {
						t.Errorf("packet %d goes %v, want %v", i, got, test.want[i])
					}
				}
			}
			if s.forget(); len(s.flows) != 0 || s.full() {
				t.Error("flows were not forgotten")
			}
		})
	}
}

// TestFlowOf holds that the order of packets that a codec may not exchange is
// compared, and that nothing odd is read beyond its end.
func TestFlowOf(t *testing.T) {
	v6 := func(s string) []byte {
		b, err := hex.DecodeString("60000000" + "0000" + s[:2] + "40" +
			"fd000000000000000000000000000001" + "fd000000000000000000000000000002" + s[2:])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, test := range []struct {
		name     string
		packet   []byte
		proto    uint8
		src, dst uint16
	}{
		{"plain", v6("06" + "00010002" + "0000000000000000"), 6, 1, 2},
		{"options", v6("00" + "3c00000000000000" + "1101000000000000" + "0000000000000000" + "00030004" + "00080000"), 17, 3, 4},
		{"fragment", v6("2c" + "0600000100000000" + "00010002"), 6, 0, 0},
		{"atomic fragment", v6("2c" + "0600000000000000" + "00010002"), 6, 0, 0},
		{"authenticated", v6("33" + "06010000000000000000000000010002"), 51, 0, 0},
		{"cut in an option", v6("00" + "06000000"), 0, 0, 0},
		{"option beyond the end", v6("00" + "06ff000000000000"), 0, 0, 0},
		{"cut in the ports", v6("06" + "0001"), 6, 0, 0},
	} {
		key := flowOf(test.packet)
		if key.Proto != test.proto || key.SrcPort != test.src || key.DstPort != test.dst || key.DstAddr() != netip.MustParseAddr("fd00::2") {
			t.Errorf("%s: %+v", test.name, key)
		}
	}
	for n := range 41 {
		flowOf(tcp(1, 2, 2, false)[:min(n, 40)])
		newSides(builtin.Registry(), Endpoint{}).flow(tcp(1, 2, 2, false)[:min(n, 40)])
	}
}
