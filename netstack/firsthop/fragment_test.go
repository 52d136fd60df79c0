package firsthop

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"pgregory.net/rapid"

	"sheaf/parsers/ip"
)

func fragments(t interface{ Fatal(...any) }, packet []byte, mtu int) (all [][]byte) {
	var h ip.Header
	if err := h.Parse(packet); err != nil {
		t.Fatal(err)
	}
	fragment(&h, mtu, func(b []byte) { all = append(all, slices.Clone(b)) })
	return all
}

// A packet of 1,500 bytes for an MTU of 600, to the byte, with one option that is to be
// copied and two that are not.
func TestFragment(t *testing.T) {
	options := []byte{7, 7, 4, 0, 0, 0, 0, 1, 0x94, 4, 0, 0} // record route, no operation, router alert
	data := make([]byte, 1500-32)
	for i := range data {
		data[i] = byte(i)
	}
	all := fragments(t, packet4(far4, a4, 17, 0, options, data...), 600)
	want := [][]byte{
		slices.Concat(unhex("48000258 00072000 4011 a26a 0a02000a 0a01000b"), options, data[:568]),
		slices.Concat(unhex("46000258 00072047 4011 af2b 0a02000a 0a01000b"), options[8:], data[568:568+576]),
		slices.Concat(unhex("4600015c 0007008f 4011 cfdf 0a02000a 0a01000b"), options[8:], data[568+576:]),
	}
	if len(all) != len(want) {
		t.Fatalf("%d fragments", len(all))
	}
	for i := range want {
		if !bytes.Equal(all[i], want[i]) {
			t.Errorf("fragment %d: % x...\nwant % x...", i, all[i][:40], want[i][:40])
		}
	}
}

// Fragments, of a whole packet or of a fragment, fit, and are what they come from when they
// are put together.
func TestFragmentProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mtu := rapid.IntRange(minMTU, 2000).Draw(t, "mtu")
		options := rapid.SampledFrom([][]byte{nil, {1, 1, 1, 0}, {0x94, 4, 0, 0}, {0x83, 0xff, 0, 0}, {0x82, 1, 0, 0}, bytes.Repeat([]byte{0x94, 4, 0, 0}, 10)}).Draw(t, "options")
		data := rapid.SliceOfN(rapid.Byte(), 1, 6000).Draw(t, "data")
		fields := rapid.SampledFrom([]uint16{0, moreFragments, 100, moreFragments | 100, 0x8000}).Draw(t, "fields")
		packet := packet4(far4, a4, 17, fields, options, data...)
		all := fragments(t, packet, mtu)
		var together []byte
		for i, f := range all {
			var h ip.Header
			if err := h.Parse(f); err != nil || len(f) > mtu || h.Total() != len(f) || checksum.Checksum(f[:h.Len], 0) != 0xffff {
				t.Fatalf("fragment %d: % x: %v", i, f, err)
			}
			is := binary.BigEndian.Uint16(f[6:])
			if int(is&offsetMask)*8 != int(fields&offsetMask)*8+len(together) {
				t.Fatalf("fragment %d is at %d", i, is&offsetMask)
			}
			if last := i == len(all)-1; is&moreFragments != 0 != (!last || fields&moreFragments != 0) {
				t.Fatalf("fragment %d of %d: flags %x", i, len(all), is)
			}
			together = append(together, h.Payload()...)
		}
		if !bytes.Equal(together, data) {
			t.Fatal("other bytes")
		}
	})
}

// A packet that may be fragmented is, on its way to a guest.
func TestFragmentsToGuest(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, _ := l.two()
		p := packet4(far4, a4, 17, 0, nil, make([]byte, 1481)...)
		want := fragments(t, p, 1500)
		if d := l.changed("a", func() { _ = l.Write([][]byte{p}) }); d != "sent=2" {
			t.Error(d)
		}
		got := a.take()
		if len(got) != 2 || !bytes.Equal(got[0], frameOf(routerMAC, macA, etherIPv4, want[0])) || !bytes.Equal(got[1], frameOf(routerMAC, macA, etherIPv4, want[1])) {
			t.Errorf("%x", got)
		}
		p[6] = dontFragment >> 8
		if d := l.changed("a", func() { _ = l.Write([][]byte{p}) }); d != "too_big=1" {
			t.Error(d)
		}
	})
}
