package ip

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
)

// v4 returns an IPv4 packet with the bytes of the fragment fields and the rest after
// the header.
func v4(proto byte, fields uint16, options, rest []byte) []byte {
	b := make([]byte, MinIPv4, MinIPv4+len(options)+len(rest))
	b[0], b[9] = 0x40|byte(5+len(options)/4), proto
	binary.BigEndian.PutUint16(b[2:], uint16(cap(b)))
	binary.BigEndian.PutUint16(b[6:], fields)
	copy(b[12:], []byte{10, 1, 0, 7, 10, 2, 0, 10})
	return append(append(b, options...), rest...)
}

// v6 returns an IPv6 packet of the parts after the header.
func v6(next byte, parts ...[]byte) []byte {
	rest := slices.Concat(parts...)
	b := make([]byte, MinIPv6)
	b[0], b[6] = 0x60, next
	binary.BigEndian.PutUint16(b[4:], uint16(len(rest)))
	b[8], b[23], b[24], b[39] = 0xfd, 7, 0xfd, 10
	return append(b, rest...)
}

// ext returns an extension header of 8*(1+more) bytes.
func ext(next, more byte) []byte {
	return append([]byte{next, more, 1, 4}, make([]byte, 4+8*int(more))...) // PadN
}

// frag returns a fragment header.
func frag(next byte, offset uint16, more byte) []byte {
	return []byte{next, 77, byte(offset >> 5), byte(offset<<3) | more, 0, 0, 0, 1}
}

// auth returns an authentication header with a value of so many words, which come
// after its first three.
func auth(next, words byte) []byte {
	return append([]byte{next, words + 1}, make([]byte, 10+4*int(words))...)
}

func set(b []byte, at int, value byte) []byte {
	b = slices.Clone(b)
	b[at] = value
	return b
}

var (
	ports    = []byte{0x9C, 0x40, 7, 0x5B, 1, 2, 3, 4} // 40000 to 1883
	mostExts = slices.Concat(ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0), ext(60, 0))
)

// A want is what the headers of a packet say, beside addresses and lengths.
type want struct {
	proto         uint8
	fragment      Fragment
	len           int
	ported        bool // from 40000 to 1883
	authenticated bool
}

var whole = []struct {
	name          string
	packet        []byte
	deep, shallow want // shallow is zero where ParseShallow reads the same as Parse
}{
	{"IPv4 TCP", v4(6, 0x4000, nil, ports), want{6, Whole, 20, true, false}, want{}},
	{"IPv4 UDP", v4(17, 0, nil, ports), want{17, Whole, 20, true, false}, want{}},
	{"IPv4 ICMP", v4(1, 0, nil, ports), want{1, Whole, 20, false, false}, want{}},
	{"IPv4 options", v4(6, 0, []byte{0x94, 4, 0, 0}, ports), want{6, Whole, 24, true, false}, want{}},
	{"IPv4 all options", v4(6, 0, make([]byte, 40), ports), want{6, Whole, 60, true, false}, want{}},
	{"IPv4 first fragment", v4(6, 0x2000, nil, ports), want{6, First, 20, true, false}, want{}},
	{"IPv4 later fragment", v4(6, 0x2001, nil, ports), want{6, Later, 20, false, false}, want{}},
	{"IPv4 last fragment", v4(17, 0x1000, nil, ports), want{17, Later, 20, false, false}, want{}},
	{"IPv4 reserved bit", v4(6, 0x8000, nil, ports), want{6, Whole, 20, true, false}, want{}},
	{"IPv4 AH", v4(51, 0, nil, slices.Concat(auth(6, 3), ports)), want{51, Whole, 20, false, false}, want{}},
	{"IPv4 protocol of an extension header", v4(60, 0, nil, slices.Concat(ext(6, 0), ports)), want{60, Whole, 20, false, false}, want{}},
	{"IPv4 nothing behind", v4(255, 0, nil, nil), want{255, Whole, 20, false, false}, want{}},

	{"IPv6 TCP", v6(6, ports), want{6, Whole, 40, true, false}, want{}},
	{"IPv6 UDP", v6(17, ports), want{17, Whole, 40, true, false}, want{}},
	{"IPv6 ICMP", v6(58, ports), want{58, Whole, 40, false, false}, want{}},
	{"IPv6 no next header", v6(59, ports), want{59, Whole, 40, false, false}, want{}},
	{"IPv6 no next header, behind options", v6(60, ext(59, 0), ports), want{59, Whole, 48, false, false}, want{}},
	{"IPv6 in IPv6", v6(41, v6(6, ports)), want{41, Whole, 40, false, false}, want{}},
	{"ESP", v6(50, ports), want{50, Whole, 40, false, false}, want{}},
	{"mobility", v6(135, ext(59, 0)), want{135, Whole, 40, false, false}, want{}},
	{"hop-by-hop", v6(0, ext(6, 1), ports), want{6, Whole, 56, true, false}, want{}},
	{"hop-by-hop, destination, routing, destination", v6(0, ext(60, 0), ext(43, 0), ext(60, 2), ext(17, 0), ports), want{17, Whole, 88, true, false}, want{}},
	{"the longest extension header", v6(60, ext(6, 255), ports), want{6, Whole, 40 + 2048, true, false}, want{}},
	{"as many as may be", v6(60, mostExts, ext(6, 0), ports), want{6, Whole, 104, true, false}, want{}},
	{"as many, and a fragment header", v6(60, mostExts, ext(44, 0), frag(6, 0, 1), ports), want{6, First, 112, true, false}, want{}},
	{"jumbogram", set(set(v6(0, []byte{6, 0, 0xC2, 4, 0, 1, 0, 0}, ports), 4, 0), 5, 0), want{6, Whole, 48, true, false}, want{}},

	{"atomic fragment", v6(44, frag(6, 0, 0), ports), want{6, Atomic, 48, true, false}, want{}},
	{"first fragment", v6(44, frag(17, 0, 1), ports), want{17, First, 48, true, false}, want{}},
	{"first fragment, reserved bits", v6(44, frag(6, 0, 7), ports), want{6, First, 48, true, false}, want{}},
	{"later fragment", v6(44, frag(6, 1, 1), ports), want{6, Later, 48, false, false}, want{}},
	{"last fragment", v6(44, frag(6, 0x1fff, 0), ports), want{6, Later, 48, false, false}, want{}},
	{"options before a first fragment", v6(60, ext(44, 0), frag(6, 0, 1), ports), want{6, First, 56, true, false}, want{}},
	{"options in a first fragment", v6(44, frag(60, 0, 1), ext(6, 1), ports), want{6, First, 64, true, false}, want{60, First, 48, false, false}},
	{"options in an atomic fragment", v6(44, frag(60, 0, 0), ext(6, 0), ports), want{6, Atomic, 56, true, false}, want{60, Atomic, 48, false, false}},
	{"options in a later fragment", v6(44, frag(60, 1, 1), ext(6, 0), ports), want{60, Later, 48, false, false}, want{}},

	{"AH", v6(51, auth(6, 3), ports), want{6, Whole, 64, true, true}, want{51, Whole, 40, false, false}},
	{"the least AH", v6(51, auth(17, 0), ports), want{17, Whole, 52, true, true}, want{51, Whole, 40, false, false}},
	{"AH behind options", v6(60, ext(51, 0), auth(6, 3), ports), want{6, Whole, 72, true, true}, want{51, Whole, 48, false, false}},
	{"AH before options", v6(51, auth(60, 3), ext(6, 0), ports), want{6, Whole, 72, true, true}, want{51, Whole, 40, false, false}},
	{"AH in a first fragment", v6(44, frag(51, 0, 1), auth(6, 3), ports), want{6, First, 72, true, true}, want{51, First, 48, false, false}},
	{"AH before a fragment header", v6(51, auth(44, 3), frag(6, 0, 1), ports), want{6, First, 72, true, true}, want{51, Whole, 40, false, false}},
	{"ESP behind AH", v6(51, auth(50, 3), ports), want{50, Whole, 64, false, true}, want{51, Whole, 40, false, false}},
}

// check compares a header with what is wanted.
func check(t *testing.T, h *Header, packet []byte, want want) {
	t.Helper()
	src, dst, total := netip.MustParseAddr("10.1.0.7"), netip.MustParseAddr("10.2.0.10"), int(packet[2])<<8|int(packet[3])
	if packet[0]>>4 == 6 {
		src, dst, total = netip.MustParseAddr("fd00::7"), netip.MustParseAddr("fd00::a"), 40+(int(packet[4])<<8|int(packet[5]))
	}
	if h.Version != packet[0]>>4 || h.Src() != src || h.Dst() != dst || h.Total() != total {
		t.Errorf("version %d, %v to %v, length %d", h.Version, h.Src(), h.Dst(), h.Total())
	}
	if h.Proto != want.proto || h.Fragment != want.fragment || h.Len != want.len || h.Authenticated != want.authenticated {
		t.Errorf("protocol %d, fragment %d, %d bytes, authenticated %v; want %+v", h.Proto, h.Fragment, h.Len, h.Authenticated, want)
	}
	var sport, dport uint16
	if want.ported {
		sport, dport = 40000, 1883
	}
	if s, d := h.Ports(); s != sport || d != dport {
		t.Errorf("ports %d and %d, want %d and %d", s, d, sport, dport)
	}
}

// TestParse holds what the headers of each packet say, and that of each a beginning
// is either malformed or says the same, but for the ports that it lacks.
func TestParse(t *testing.T) {
	for _, tt := range whole {
		t.Run(tt.name, func(t *testing.T) {
			if tt.shallow == (want{}) {
				tt.shallow = tt.deep
			}
			var h Header
			if err := h.Parse(tt.packet); err != nil {
				t.Fatal(err)
			}
			check(t, &h, tt.packet, tt.deep)
			if err := h.ParseShallow(tt.packet); err != nil {
				t.Fatal(err)
			}
			check(t, &h, tt.packet, tt.shallow)
			for n := range tt.packet {
				for _, deep := range []bool{true, false} {
					parse, want := h.ParseShallow, tt.shallow
					if deep {
						parse, want = h.Parse, tt.deep
					}
					err := parse(tt.packet[:n])
					want.ported = want.ported && n >= want.len+4
					switch fixed := map[byte]int{4: MinIPv4, 6: MinIPv6}[tt.packet[0]>>4]; {
					case n >= want.len && err != nil:
						t.Fatalf("%d bytes: %v", n, err)
					case n >= want.len:
						check(t, &h, tt.packet[:n], want)
					case !errors.Is(err, ErrShort):
						t.Fatalf("%d bytes: error %v", n, err)
					case n >= fixed:
						want.proto, want.fragment, want.len, want.ported, want.authenticated = 0, Whole, 0, false, false
						check(t, &h, tt.packet[:n], want)
					case h.Version != 0 || h.Src().IsValid() || h.Dst().IsValid() || h.Total() != 0:
						t.Fatalf("%d bytes: %+v", n, h)
					}
				}
			}
		})
	}
}

// TestMalformed holds what is no header, and that the addresses of what is one in
// the beginning are read all the same.
func TestMalformed(t *testing.T) {
	tcp4 := v4(6, 0, nil, ports)
	for _, tt := range []struct {
		name    string
		packet  []byte
		want    error
		version uint8
		shallow error
	}{
		{"nothing", nil, ErrShort, 0, ErrShort},
		{"version 0", set(tcp4, 0, 0x05), ErrVersion, 0, ErrVersion},
		{"version 5", set(tcp4, 0, 0x55), ErrVersion, 0, ErrVersion},
		{"version 15", set(tcp4, 0, 0xf5), ErrVersion, 0, ErrVersion},
		{"IPv4 header of 16 bytes", set(tcp4, 0, 0x44), ErrHeader, 4, ErrHeader},
		{"IPv4 header of 0 bytes", set(tcp4, 0, 0x40), ErrHeader, 4, ErrHeader},
		{"IPv4 header beyond the packet", set(tcp4, 0, 0x4f), ErrShort, 4, ErrShort},
		{"extension header beyond the packet", v6(60, ext(6, 1)[:15]), ErrShort, 6, ErrShort},
		{"AH beyond the packet", v6(51, auth(6, 3)[:23]), ErrShort, 6, nil},
		{"AH shorter than one can be", v6(51, set(auth(6, 0), 1, 0)), ErrHeader, 6, nil},
		{"hop-by-hop twice", v6(0, ext(0, 0), ext(6, 0), ports), ErrHeader, 6, ErrHeader},
		{"hop-by-hop in the second place", v6(60, ext(0, 0), ext(6, 0), ports), ErrHeader, 6, ErrHeader},
		{"one too many", v6(60, mostExts, ext(60, 0), ext(6, 0), ports), ErrHeader, 6, ErrHeader},
		{"one too many, behind a fragment header", v6(44, frag(60, 0, 1), mostExts, ext(60, 0), ext(6, 0), ports), ErrHeader, 6, nil},
		{"AH is one too many", v6(60, mostExts, ext(51, 0), auth(6, 3), ports), ErrHeader, 6, nil},
		{"fragment of a fragment", v6(44, frag(44, 0, 1), frag(6, 0, 1), ports), ErrHeader, 6, nil},
		{"first fragment that ends in its options", v6(44, frag(60, 0, 1), ext(6, 0)[:7]), ErrShort, 6, nil},
	} {
		var h Header
		_ = h.Parse(v6(51, auth(6, 3), ports)) // what was read before leaves no trace
		if err := h.Parse(tt.packet); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		if h.Version != tt.version || h.Src().IsValid() != (tt.version != 0) || h.Len != 0 || h.Proto != 0 || h.Fragment != Whole || h.Authenticated {
			t.Errorf("%s: %+v", tt.name, h)
		}
		if err := h.ParseShallow(tt.packet); !errors.Is(err, tt.shallow) {
			t.Errorf("%s, shallow: error %v, want %v", tt.name, err, tt.shallow)
		}
	}
}

func TestPart(t *testing.T) {
	for f, want := range map[Fragment]bool{Whole: false, Atomic: false, First: true, Later: true} {
		if f.Part() != want {
			t.Errorf("fragment %d: %v", f, !want)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	packets := [][]byte{set(v4(6, 0, nil, ports), 0, 0x44), v6(44, frag(44, 0, 1), frag(6, 0, 1), ports)}
	for _, tt := range whole {
		packets = append(packets, tt.packet)
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, p := range packets {
			var h Header
			if h.Parse(p) == nil && h.Src() == h.Dst() {
				t.Fatal("no addresses")
			}
			_ = h.ParseShallow(p)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range whole {
		f.Add(tt.packet)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var deep, shallow Header
		errDeep, errShallow := deep.Parse(b), shallow.ParseShallow(b)
		if errDeep == nil && errShallow != nil {
			t.Fatalf("read, but not shallow: %v", errShallow)
		}
		for _, h := range []*Header{&deep, &shallow} {
			if h.Version == 0 {
				continue
			}
			if !h.Src().IsValid() || !h.Dst().IsValid() || h.Src().Is4() != (h.Version == 4) || h.Total() > 40+65535 {
				t.Fatalf("%+v: %v to %v, %d bytes", h, h.Src(), h.Dst(), h.Total())
			}
			if src, dst := h.Ports(); h.Fragment == Later && src|dst != 0 || h.Len > len(b) {
				t.Fatalf("%+v, ports %d and %d", h, src, dst)
			}
		}
		if errDeep == nil && (shallow.Len > deep.Len || shallow.Fragment != deep.Fragment && !deep.Authenticated || shallow.Authenticated) {
			t.Fatalf("%+v, shallow %+v", deep, shallow)
		}
	})
}
