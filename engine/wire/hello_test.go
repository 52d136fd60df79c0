package wire

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestHelloErrors goes as far as a handshake does: what is wrong is told by
// ParseHello or, of the limits, by Negotiate.
func TestHelloErrors(t *testing.T) {
	good := Hello{Min: 1, Max: 2, Limits: DefaultLimits}
	edit := func(change func(*Hello)) string {
		h := good
		change(&h)
		return string(AppendHello(nil, h))
	}
	for _, tt := range []struct {
		name string
		in   string
		want error
	}{
		{"nothing", "", ErrShort},
		{"good", edit(func(*Hello) {}), nil},
		{"good, more behind", edit(func(*Hello) {}) + "x", nil},
		{"another protocol", "GET / HTTP/1.1\r\n\r\n", ErrHello},
		{"another protocol's first byte", "G", ErrHello},
		{"nearly", "sheafs", ErrHello},
		{"of version 1", edit(func(h *Hello) { h.Min, h.Max = 1, 1 }), nil},
		{"of version 1, more behind", edit(func(h *Hello) { h.Min, h.Max = 1, 1 }) + "x", nil},
		{"of version 1, a byte less", edit(func(h *Hello) { h.Min, h.Max = 1, 1 })[:HelloLen1-1], ErrShort},
		{"as long as one of version 1", edit(func(*Hello) {})[:HelloLen1], ErrShort},
		{"a byte less", edit(func(*Hello) {})[:HelloLen-1], ErrShort},
		{"bits not known", edit(func(*Hello) {})[:HelloLen-1] + "\xfe", nil},
		{"version 0", edit(func(h *Hello) { h.Min = 0 }), ErrHello},
		{"versions turned round", edit(func(h *Hello) { h.Min, h.Max = 3, 2 }), ErrHello},
		{"all versions", edit(func(h *Hello) { h.Min, h.Max = 1, 255 }), nil},
		{"no flows", edit(func(h *Hello) { h.Limits.Flows = 0 }), ErrHello},
		{"one flow", edit(func(h *Hello) { h.Limits.Flows = 1 }), nil},
		{"most flows", edit(func(h *Hello) { h.Limits.Flows = MaxFlows }), nil},
		{"too many flows", edit(func(h *Hello) { h.Limits.Flows = MaxFlows + 1 }), ErrHello},
		{"no templates", edit(func(h *Hello) { h.Limits.Templates = 0 }), ErrHello},
		{"most templates", edit(func(h *Hello) { h.Limits.Templates = MaxTemplates }), nil},
		{"too many templates", edit(func(h *Hello) { h.Limits.Templates = MaxTemplates + 1 }), ErrHello},
		{"no bodies", edit(func(h *Hello) { h.Limits.Bodies = 0 }), nil},
		{"most bodies", edit(func(h *Hello) { h.Limits.Bodies = MaxBodies }), nil},
		{"too many bodies", edit(func(h *Hello) { h.Limits.Bodies = MaxBodies + 1 }), ErrHello},
		{"no packets", edit(func(h *Hello) { h.Limits.Packets = 0 }), ErrHello},
		{"most packets", edit(func(h *Hello) { h.Limits.Packets = MaxPackets }), nil},
		{"too many packets", edit(func(h *Hello) { h.Limits.Packets = MaxPackets + 1 }), ErrHello},
		{"no room for a packet", edit(func(h *Hello) { h.Limits.Bytes = MaxPacket - 1 }), ErrHello},
		{"room for one packet", edit(func(h *Hello) { h.Limits.Bytes = MaxPacket }), nil},
		{"most bytes", edit(func(h *Hello) { h.Limits.Bytes = MaxBytes }), nil},
		{"too many bytes", edit(func(h *Hello) { h.Limits.Bytes = MaxBytes + 1 }), ErrHello},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, n, err := ParseHello([]byte(tt.in))
			if err == nil {
				if _, _, err = Negotiate(good, h); err != nil {
					n = 0
				}
			}
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			want := HelloLen
			if err != nil {
				want = 0
			} else if h.Max == 1 {
				want = HelloLen1
			}
			if n != want {
				t.Errorf("%d bytes, want %d", n, want)
			}
			if errors.Is(err, ErrHello) && !strings.HasPrefix(err.Error(), ErrHello.Error()+": ") {
				t.Errorf("%v does not say why", err)
			}
		})
	}
}

// Of the flags bit 0 means something from version 2 on and bit 1 from version 3 on: the
// others are for later versions.
func TestHelloFlags(t *testing.T) {
	for _, tt := range []struct {
		max, flags  byte
		ends, seals bool
	}{
		{2, 0, false, false},
		{2, 1, true, false},
		{2, 0xff, true, false},
		{3, 0, false, false},
		{3, 1, true, false},
		{3, 2, false, true},
		{3, 0xfc, false, false},
		{3, 0xff, true, true},
	} {
		b := AppendHello(nil, Hello{Min: 1, Max: tt.max, Limits: DefaultLimits})
		b[HelloLen-1] = tt.flags
		if h, _, err := ParseHello(b); err != nil || h.Ends != tt.ends || h.Seals != tt.seals {
			t.Errorf("version %d, flags %#x: ends %v, seals %v, %v", tt.max, tt.flags, h.Ends, h.Seals, err)
		}
	}
}

var genHello = rapid.Custom(func(t *rapid.T) Hello {
	h := Hello{Min: uint8(rapid.IntRange(1, 255).Draw(t, "min"))}
	h.Max = uint8(rapid.IntRange(int(h.Min), 255).Draw(t, "max"))
	if h.Max > 1 {
		copy(h.Instance[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "instance"))
		h.Ends = rapid.Bool().Draw(t, "ends")
		h.Seals = h.Max > 2 && rapid.Bool().Draw(t, "seals")
	}
	h.Limits = Limits{
		Flows:     rapid.Uint32Range(1, MaxFlows).Draw(t, "flows"),
		Templates: rapid.Uint32Range(1, MaxTemplates).Draw(t, "templates"),
		Bodies:    rapid.Uint32Range(0, MaxBodies).Draw(t, "bodies"),
		Packets:   rapid.Uint32Range(1, MaxPackets).Draw(t, "packets"),
		Bytes:     rapid.Uint32Range(MaxPacket, MaxBytes).Draw(t, "bytes"),
	}
	return h
})

func TestHellos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHello.Draw(t, "hello")
		b := AppendHello(nil, h)
		if len(b) != HelloLen && (h.Max > 1 || len(b) != HelloLen1) {
			t.Fatalf("%d bytes", len(b))
		}
		got, n, err := ParseHello(b)
		if err != nil || n != len(b) || got != h {
			t.Fatalf("%+v became %+v, %d bytes, %v", h, got, n, err)
		}
		for cut := range b {
			if _, _, err := ParseHello(b[:cut]); err != ErrShort {
				t.Fatalf("cut at %d: %v", cut, err)
			}
		}
	})
}

func offer(min, max uint8, limits Limits) Hello { return Hello{Min: min, Max: max, Limits: limits} }

func TestNegotiate(t *testing.T) {
	small := Limits{Flows: 10, Templates: 20, Bodies: 0, Packets: 30, Bytes: MaxPacket}
	mixed := DefaultLimits
	mixed.Templates, mixed.Packets = 20, 1<<16
	for _, tt := range []struct {
		name    string
		a, b    Hello
		version uint8 // 0 for no agreement
		limits  Limits
	}{
		{"equal", offer(1, 1, DefaultLimits), offer(1, 1, DefaultLimits), 1, DefaultLimits},
		{"the smaller", offer(1, 1, DefaultLimits), offer(1, 1, small), 1, small},
		{"each by itself", offer(1, 1, DefaultLimits), offer(1, 1, mixed), 1,
			Limits{Flows: 1 << 18, Templates: 20, Bodies: 8 << 20, Packets: 1 << 13, Bytes: 4 << 20}},
		{"newest in common", offer(1, 3, small), offer(2, 5, small), 3, small},
		{"touching", offer(1, 2, small), offer(2, 9, small), 2, small},
		{"nothing in common", offer(1, 1, small), offer(2, 3, small), 0, Limits{}},
		{"limits that are none", offer(1, 1, small), offer(1, 1, Limits{}), 0, Limits{}},
	} {
		for _, pair := range [][2]Hello{{tt.a, tt.b}, {tt.b, tt.a}} {
			version, limits, err := Negotiate(pair[0], pair[1])
			if tt.version == 0 {
				if !errors.Is(err, ErrHello) {
					t.Errorf("%s: error %v", tt.name, err)
				}
				continue
			}
			if err != nil || version != tt.version || limits != tt.limits {
				t.Errorf("%s: version %d, %+v, %v", tt.name, version, limits, err)
			}
		}
	}
}

// A version that is not in common is told before anything else: the limits of
// another version may mean something else.
func TestVersionBeforeLimits(t *testing.T) {
	here, there := Hello{Min: 2, Max: 2, Limits: DefaultLimits}, Hello{Min: 3, Max: 4}
	h, _, err := ParseHello(AppendHello(nil, there))
	if err != nil || h != there {
		t.Fatalf("%+v, %v", h, err)
	}
	_, _, err = Negotiate(here, h)
	e, ok := errors.AsType[*VersionError](err)
	if !ok || e.Here != here.Versions() || e.There != there.Versions() || !errors.Is(err, ErrHello) {
		t.Fatalf("error %v", err)
	}
	if want := "versions 2 to 2 here, 3 to 4 there"; err.Error() != want {
		t.Errorf("%q, not %q", err, want)
	}
}

// Both ends come to the same result, which both accept.
func TestNegotiateAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genHello.Draw(t, "a"), genHello.Draw(t, "b")
		v1, l1, err1 := Negotiate(a, b)
		v2, l2, err2 := Negotiate(b, a)
		if v1 != v2 || (err1 == nil) != (err2 == nil) || err1 == nil && l1 != l2 {
			t.Fatalf("%d %+v %v, but %d %+v %v", v1, l1, err1, v2, l2, err2)
		}
		if err1 == nil && (v1 < a.Min || v1 > a.Max || v1 < b.Min || v1 > b.Max || l1.Check() != nil) {
			t.Fatalf("version %d, %+v", v1, l1)
		}
	})
}

func TestDefaultLimits(t *testing.T) {
	if err := DefaultLimits.Check(); err != nil {
		t.Error(err)
	}
}
