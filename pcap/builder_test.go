package pcap

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// hexBytes decodes hexadecimal digits with any white space between them.
func hexBytes(parts ...string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(strings.Join(parts, "")), ""))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	ip4Hex = "4500 0018 0001 0000 40 11 0000 0a000001 0a000002  deadbeef"
	ip6Hex = "6000 0000 0004 3b 40 20010db8000000000000000000000001 20010db8000000000000000000000002  cafef00d"
	macHex = "020000000002 020000000001" // destination, source
)

var ip4, ip6 = hexBytes(ip4Hex), hexBytes(ip6Hex)

// at is the time of the packets that the builders write.
var at = time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC)

// A classicFile describes the header of a pcap file.
type classicFile struct {
	order  binary.AppendByteOrder
	magic  uint32
	minor  uint16
	snap   uint32
	link   LinkType
	ticks  uint32 // fraction of the second, in the unit that magic stands for
	middle int    // bytes between the lengths and the frame
}

func (c classicFile) header() []byte {
	b := c.order.AppendUint32(nil, c.magic)
	b = c.order.AppendUint16(b, 2)
	b = c.order.AppendUint16(b, c.minor)
	b = append(b, make([]byte, 8)...)
	b = c.order.AppendUint32(b, c.snap)
	return c.order.AppendUint32(b, uint32(c.link))
}

func (c classicFile) record(frame []byte, wireLen int) []byte {
	b := c.order.AppendUint32(nil, uint32(at.Unix()))
	b = c.order.AppendUint32(b, c.ticks)
	b = c.order.AppendUint32(b, uint32(len(frame)))
	b = c.order.AppendUint32(b, uint32(wireLen))
	b = append(b, make([]byte, c.middle)...)
	return append(b, frame...)
}

// file returns a capture of whole frames.
func (c classicFile) file(frames ...[]byte) []byte {
	b := c.header()
	for _, f := range frames {
		b = append(b, c.record(f, len(f))...)
	}
	return b
}

// plain is the usual kind of file.
func plain(link LinkType) classicFile {
	return classicFile{order: binary.LittleEndian, magic: magicNano, minor: 4, snap: 65535, link: link, ticks: 123456789}
}

// ng builds the blocks of a pcapng file.
type ng struct{ order binary.AppendByteOrder }

func (n ng) block(kind uint32, body []byte) []byte {
	body = append(body, make([]byte, -len(body)&3)...)
	total := uint32(len(body) + 12)
	b := n.order.AppendUint32(nil, kind)
	b = n.order.AppendUint32(b, total)
	b = append(b, body...)
	return n.order.AppendUint32(b, total)
}

func (n ng) section() []byte {
	b := n.order.AppendUint32(nil, 0x1a2b3c4d)
	b = n.order.AppendUint16(b, 1)
	b = n.order.AppendUint16(b, 0)
	b = n.order.AppendUint64(b, 1<<64-1)
	b = append(b, n.option(4, []byte("sheaf"))...) // shb_userappl
	return n.block(blockSection, b)
}

func (n ng) option(code uint16, value []byte) []byte {
	b := n.order.AppendUint16(nil, code)
	b = n.order.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

func (n ng) iface(link LinkType, snap uint32, options ...[]byte) []byte {
	b := n.order.AppendUint16(nil, uint16(link))
	b = n.order.AppendUint16(b, 0)
	b = n.order.AppendUint32(b, snap)
	b = append(b, bytes.Join(options, nil)...)
	return n.block(blockInterface, b)
}

func (n ng) resol(v byte) []byte { return n.option(9, []byte{v}) }

func (n ng) offset(sec int64) []byte { return n.option(14, n.order.AppendUint64(nil, uint64(sec))) }

func (n ng) enhanced(iface uint32, ticks uint64, frame []byte, wireLen int) []byte {
	b := n.order.AppendUint32(nil, iface)
	b = n.order.AppendUint32(b, uint32(ticks>>32))
	b = n.order.AppendUint32(b, uint32(ticks))
	b = n.order.AppendUint32(b, uint32(len(frame)))
	b = n.order.AppendUint32(b, uint32(wireLen))
	b = append(b, frame...)
	b = append(b, make([]byte, -len(frame)&3)...)
	b = append(b, n.option(1, []byte("a comment"))...)
	return n.block(blockEnhanced, append(b, n.option(0, nil)...))
}

func (n ng) old(iface uint16, ticks uint64, frame []byte) []byte {
	b := n.order.AppendUint16(nil, iface)
	b = n.order.AppendUint16(b, 7) // drops
	b = n.order.AppendUint32(b, uint32(ticks>>32))
	b = n.order.AppendUint32(b, uint32(ticks))
	b = n.order.AppendUint32(b, uint32(len(frame)))
	b = n.order.AppendUint32(b, uint32(len(frame)))
	return n.block(blockOldPacket, append(b, frame...))
}

func (n ng) simple(frame []byte, wireLen int) []byte {
	return n.block(blockSimple, append(n.order.AppendUint32(nil, uint32(wireLen)), frame...))
}

// readAll returns the records of a capture with owned bytes, and the error that
// ended it, nil at a clean end.
func readAll(tb testing.TB, file []byte) ([]Packet, error) {
	tb.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	var all []Packet
	for {
		p, err := r.Next()
		if err == io.EOF {
			if p, err := r.Next(); err != io.EOF {
				tb.Errorf("Next after the end = %+v, %v, want io.EOF", p, err)
			}
			return all, nil
		}
		if err != nil {
			if fe := (*FileError)(nil); !errors.As(err, &fe) {
				tb.Errorf("Next: %v is a %T, want a *FileError", err, err)
			}
			if _, again := r.Next(); again != io.EOF {
				tb.Errorf("Next after an error = %v, want io.EOF", again)
			}
			return all, err
		}
		p.Data = bytes.Clone(p.Data)
		all = append(all, p)
		if p.Number != len(all) || r.Records() != len(all) {
			tb.Errorf("record %d has number %d; Records() = %d", len(all), p.Number, r.Records())
		}
		if (p.Data == nil) == (p.Skip == SkipNone) {
			tb.Errorf("packet %d has %d bytes and skip %v", p.Number, len(p.Data), p.Skip)
		}
	}
}
