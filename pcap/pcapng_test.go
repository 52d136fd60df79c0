package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	ngLittle = ng{binary.LittleEndian}
	ngBig    = ng{binary.BigEndian}
)

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestPcapngBlocks(t *testing.T) {
	micros := uint64(at.UnixMicro())
	micro := at.Truncate(time.Microsecond)
	for name, n := range map[string]ng{"little-endian": ngLittle, "big-endian": ngBig} {
		t.Run(name, func(t *testing.T) {
			eth := hexBytes(macHex, "86dd", ip6Hex)
			file := join(
				n.section(),
				n.block(4, []byte{1, 2, 3}), // name resolution, unlike any that we read
				n.iface(LinkRaw, 30),
				n.iface(LinkEthernet, 0),
				n.iface(252, 0),
				n.enhanced(1, micros, eth, len(eth)),
				n.simple(ip4, len(ip4)),
				n.simple(ip6[:30], len(ip6)),
				n.old(1, micros, eth),
				n.block(5, make([]byte, 8)),
				n.enhanced(2, micros, ip4, len(ip4)),
				n.enhanced(3, micros, ip4, len(ip4)),
				n.block(0x40000bad, make([]byte, 300<<10)), // larger than any record
				n.enhanced(0, micros, ip4, len(ip4)),
			)
			got, err := readAll(t, file)
			if err != nil {
				t.Fatal(err)
			}
			want := []Packet{
				{Number: 1, Time: micro, Data: ip6, Interface: 1, WireLen: int64(len(eth))},
				{Number: 2, Data: ip4, WireLen: int64(len(ip4))},
				{Number: 3, Skip: SkipTruncated, WireLen: int64(len(ip6))},
				{Number: 4, Time: micro, Data: ip6, Interface: 1, WireLen: int64(len(eth))},
				{Number: 5, Time: micro, Interface: 2, WireLen: int64(len(ip4)),
					Skip: SkipUnsupportedLink, Note: "link type 252 (WIRESHARK_UPPER_PDU)"},
				{Number: 6, Interface: -1, WireLen: int64(len(ip4)), Skip: SkipNoInterface},
				{Number: 7, Time: micro, Data: ip4, WireLen: int64(len(ip4))},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("packets differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A new section may change the byte order, and forgets the interfaces.
func TestPcapngSections(t *testing.T) {
	got, err := readAll(t, join(
		ngLittle.section(), ngLittle.iface(LinkRaw, 0), ngLittle.iface(LinkRaw, 0),
		ngLittle.enhanced(1, 5e6, ip4, len(ip4)),
		ngBig.section(), ngBig.enhanced(0, 6e6, ip4, len(ip4)),
		ngBig.iface(LinkNull, 0, ngBig.resol(9)),
		ngBig.enhanced(0, 7e9, hexBytes("00000002", ip4Hex), len(ip4)+4),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := []Packet{
		{Number: 1, Time: time.Unix(5, 0).UTC(), Data: ip4, Interface: 1, WireLen: 24},
		{Number: 2, Interface: -1, Skip: SkipNoInterface, WireLen: 24},
		{Number: 3, Time: time.Unix(7, 0).UTC(), Data: ip4, Interface: 2, WireLen: 28},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packets differ (-want +got):\n%s", diff)
	}
}

func TestPcapngTime(t *testing.T) {
	n := ngLittle
	for _, tt := range []struct {
		name    string
		options []byte
		ticks   uint64
		want    time.Time
	}{
		{"microseconds by default", nil, 1_500_000, time.Unix(1, 5e8)},
		{"seconds", n.resol(0), 7, time.Unix(7, 0)},
		{"nanoseconds", n.resol(9), 1_000_000_007, time.Unix(1, 7)},
		{"picoseconds", n.resol(12), 1_000_000_007_999, time.Unix(1, 7)},
		{"10^-19 s", n.resol(19), 15e18, time.Unix(1, 5e8)},
		{"finer than 64 bits", n.resol(20), 15e18, time.Time{}},
		{"half seconds", n.resol(0x81), 3, time.Unix(1, 5e8)},
		{"2^-32 s", n.resol(0x80 | 32), 5<<32 | 1<<31, time.Unix(5, 5e8)},
		{"2^-63 s", n.resol(0x80 | 63), 1<<63 | 1<<61, time.Unix(1, 25e7)},
		{"2^-64 s", n.resol(0x80 | 64), 1 << 63, time.Time{}},
		{"offset", n.offset(1_700_000_000), 2e6, time.Unix(1_700_000_002, 0)},
		{"negative offset", n.offset(-5), 2e6, time.Unix(-3, 0)},
		{"both, with other options", join(n.option(2, []byte("eth0")), n.resol(3), n.option(11, make([]byte, 77)), n.offset(10), n.option(0, nil)), 1001, time.Unix(11, 1e6)},
		{"after the end of the options", join(n.option(0, nil), n.resol(9)), 1_500_000, time.Unix(1, 5e8)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(t, join(n.section(), n.iface(LinkRaw, 0, tt.options), n.enhanced(0, tt.ticks, ip4, len(ip4))))
			if err != nil || len(got) != 1 {
				t.Fatalf("got %d packets, %v", len(got), err)
			}
			if !got[0].Time.Equal(tt.want) {
				t.Errorf("got %v, want %v", got[0].Time, tt.want.UTC())
			}
		})
	}
}

func TestPcapngDamage(t *testing.T) {
	n := ngLittle
	head := join(n.section(), n.iface(LinkRaw, 0))
	packet := n.enhanced(0, 1, ip4, len(ip4))
	with := func(b []byte, off int, v uint32) []byte {
		b = slices.Clone(b)
		binary.LittleEndian.PutUint32(b[off:], v)
		return b
	}
	for _, tt := range []struct {
		name    string
		file    []byte
		packets int
		text    string // of the error, without its place
		err     error
	}{
		{"ends in a packet", join(head, packet, packet[:40]), 1, "the file ends in the middle of packet 2", io.ErrUnexpectedEOF},
		{"ends before a block's second length", join(head, packet, packet[:len(packet)-4]), 1, "the file ends in the middle of packet 2", io.ErrUnexpectedEOF},
		{"ends in a block header", join(head, packet, packet[:7]), 1, "the file ends in the middle of a block header before packet 2", io.ErrUnexpectedEOF},
		{"ends in another block", join(head, n.block(5, make([]byte, 8))[:17]), 0, "the file ends in the middle of a block of type 0x5 before packet 1", io.ErrUnexpectedEOF},
		{"ends in the file header", head[:20], 0, "the file ends in the middle of the file header", io.ErrUnexpectedEOF},
		{"absurd length", join(head, packet, with(packet, 20, 16711424)), 1, "packet 2 claims 16711424 bytes; the limit is 262144", nil},
		{"more than the block", join(head, packet, with(packet, 20, 1000)), 1, "packet 2 claims 1000 bytes in a block of 76", nil},
		{"block of no length", join(head, make([]byte, 100)), 0, "a block of type 0x0 before packet 1 claims a length of 0", nil},
		{"block of odd length", join(head, with(packet, 4, 82)), 0, "a block of type 0x6 before packet 1 claims a length of 82", nil},
		{"packet block too short", join(head, n.block(6, make([]byte, 16))), 0, "a block of type 0x6 and 28 bytes is too short", nil},
		{"lengths differ", join(head, packet, with(packet, len(packet)-4, 88)), 1, "a block of 76 bytes says at its end that it has 88", nil},
		{"option too long", join(head, n.iface(LinkRaw, 0, n.option(2, []byte("abcd"))[:4])), 0, "a block of type 0x1 and 24 bytes is too short", nil},
		{"byte-order magic", with(head, 8, 0x11223344), 0, "a section header has the byte-order magic 44 33 22 11", nil},
		{"version", with(head, 12, 9), 0, "version 9.0 of the pcapng format is unknown", nil},
		{"section too short", join(head, n.block(blockSection, hexBytes("4d3c2b1a 01000000"))), 0, "a section header has 20 bytes", nil},
		{"too many interfaces", join(head, bytes.Repeat(n.iface(LinkRaw, 0), maxInterfaces)), 0, "a section describes more than 65536 interfaces", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readAll(t, tt.file)
			if len(got) != tt.packets {
				t.Errorf("got %d packets, want %d", len(got), tt.packets)
			}
			var fe *FileError
			if !errors.As(err, &fe) {
				t.Fatalf("got error %v, want a *FileError", err)
			}
			if tt.err != nil && !errors.Is(err, tt.err) {
				t.Errorf("got cause %v, want %v", fe.Err, tt.err)
			}
			if !strings.HasPrefix(err.Error(), tt.text+" (at byte ") {
				t.Errorf("got error\n%s\nwant\n%s", err, tt.text)
			}
		})
	}
}
