package pcap

import (
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestClassicFormats(t *testing.T) {
	micro := at.Truncate(time.Microsecond)
	for _, tt := range []struct {
		name string
		file classicFile
		want time.Time
	}{
		{"little-endian microseconds", classicFile{order: binary.LittleEndian, magic: magicMicro, ticks: 123456}, micro},
		{"big-endian microseconds", classicFile{order: binary.BigEndian, magic: magicMicro, ticks: 123456}, micro},
		{"little-endian nanoseconds", classicFile{order: binary.LittleEndian, magic: magicNano, ticks: 123456789}, at},
		{"big-endian nanoseconds", classicFile{order: binary.BigEndian, magic: magicNano, ticks: 123456789}, at},
		{"little-endian modified", classicFile{order: binary.LittleEndian, magic: magicModified, ticks: 123456, middle: 8}, micro},
		{"big-endian modified", classicFile{order: binary.BigEndian, magic: magicModified, ticks: 123456, middle: 8}, micro},
		{"snapshot length 0", classicFile{order: binary.LittleEndian, magic: magicMicro, ticks: 123456}, micro},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.file.minor, tt.file.link = 4, LinkRaw
			got, err := readAll(t, tt.file.file(ip4, ip6))
			if err != nil {
				t.Fatal(err)
			}
			want := []Packet{
				{Number: 1, Time: tt.want, Data: ip4, WireLen: int64(len(ip4))},
				{Number: 2, Time: tt.want, Data: ip6, WireLen: int64(len(ip6))},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("packets differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Some programs that wrote versions up to 2.3 put the wire length first.
func TestClassicSwappedLengths(t *testing.T) {
	c := plain(LinkRaw)
	c.minor = 3
	frame := append(slices.Clone(ip4), 0, 0)
	rec := c.record(ip4, len(ip4))
	binary.LittleEndian.PutUint32(rec[8:], uint32(len(frame)))
	got, err := readAll(t, append(c.header(), rec...))
	if err != nil || len(got) != 1 || string(got[0].Data) != string(ip4) || got[0].WireLen != int64(len(frame)) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The upper half of the link type field tells of a frame check sequence.
func TestClassicFrameCheckSequence(t *testing.T) {
	frame := hexBytes(macHex, "0800", ip4Hex, "01020304")
	file := plain(LinkEthernet).file(frame)
	binary.LittleEndian.PutUint32(file[20:], 0x2400_0001)
	got, err := readAll(t, file)
	if err != nil || len(got) != 1 || string(got[0].Data) != string(ip4) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestClassicLargeRecord(t *testing.T) {
	// A segment yet to be split: IPv4 with a total length of 0.
	frame := make([]byte, 400<<10)
	copy(frame, ip4)
	frame[2], frame[3] = 0, 0
	c := plain(LinkRaw)
	c.snap = 512 << 10
	got, err := readAll(t, c.file(frame))
	if err != nil || len(got) != 1 || got[0].WireLen != int64(len(frame)) || got[0].Skip != SkipTooLong {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestClassicDamage(t *testing.T) {
	c := plain(LinkRaw)
	good := c.file(ip4, ip4)
	absurd := append(slices.Clone(good), c.record(nil, 0)...)
	binary.LittleEndian.PutUint32(absurd[len(good)+8:], 16711424)
	big := c
	big.snap = 0xffffffff
	bigAbsurd := append(big.file(ip4), big.record(nil, 0)...)
	binary.LittleEndian.PutUint32(bigAbsurd[len(bigAbsurd)-8:], snapLimit+1)
	oldVersion := c.file(ip4)
	oldVersion[4] = 1

	for _, tt := range []struct {
		name    string
		file    []byte
		packets int
		want    FileError
		text    string
	}{
		{"absurd length", absurd, 2, FileError{Packet: 3, Offset: int64(len(good))},
			"packet 3 claims 16711424 bytes; the limit is 262144 (at byte 104)"},
		{"absurd length and snapshot length", bigAbsurd, 1, FileError{Packet: 2, Offset: 64},
			"packet 2 claims 1048577 bytes; the limit is 1048576 (at byte 64)"},
		{"ends in a record header", good[:len(good)-25], 1, FileError{Packet: 2, Offset: 64, Err: io.ErrUnexpectedEOF},
			"the file ends in the middle of packet 2 (at byte 64): unexpected EOF"},
		{"ends after a record header", good[:len(good)-24], 1, FileError{Packet: 2, Offset: 64, Err: io.ErrUnexpectedEOF},
			"the file ends in the middle of packet 2 (at byte 64): unexpected EOF"},
		{"ends in a packet", good[:len(good)-1], 1, FileError{Packet: 2, Offset: 64, Err: io.ErrUnexpectedEOF},
			"the file ends in the middle of packet 2 (at byte 64): unexpected EOF"},
		{"ends in the file header", good[:20], 0, FileError{Err: io.ErrUnexpectedEOF},
			"the file ends in the middle of the file header (at byte 0): unexpected EOF"},
		{"unknown version", oldVersion, 0, FileError{}, "version 1.4 of the pcap format is unknown (at byte 0)"},
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
			if fe.Packet != tt.want.Packet || fe.Offset != tt.want.Offset || !errors.Is(fe.Err, tt.want.Err) {
				t.Errorf("got %+v, want %+v", *fe, tt.want)
			}
			if err.Error() != tt.text {
				t.Errorf("got error\n%s\nwant\n%s", err, tt.text)
			}
		})
	}
}

func TestClassicUnsupportedLinkType(t *testing.T) {
	_, err := readAll(t, plain(252).file(ip4))
	var le *LinkTypeError
	if !errors.As(err, &le) || le.LinkType != 252 {
		t.Fatalf("got %v, want a *LinkTypeError", err)
	}
	if want := "link type 252 (WIRESHARK_UPPER_PDU) is not supported"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %q, want it to begin with %q", err, want)
	}
}
