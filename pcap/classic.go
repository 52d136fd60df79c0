package pcap

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// The magic numbers, as read in the byte order of the file.
const (
	magicMicro    = 0xa1b2c3d4
	magicNano     = 0xa1b23c4d
	magicModified = 0xa1b2cd34 // A. Kuznetzov's patch to libpcap for Linux
)

// classic reads pcap files: draft-ietf-opsawg-pcap, a header of 24 bytes and
// records of 16 bytes and the captured frame.
type classic struct {
	src       *source
	order     binary.ByteOrder
	link      LinkType
	bound     uint32 // bytes that a record may hold
	headerLen int    // of a record: 16 bytes, or 24 in the modified format
	tick      int64  // nanoseconds in a unit of the fraction of a second
	swapLens  bool   // the captured and the real length may have changed places
}

func newClassic(src *source) (*classic, error) {
	magic, err := src.peek(4)
	if err != nil {
		return nil, readError(src, 0, 0, "the file header", err)
	}
	c := &classic{src: src, headerLen: 16, tick: 1000}
	switch {
	case c.matches(binary.LittleEndian, magic):
	case c.matches(binary.BigEndian, magic):
	default:
		if name := src.archived(); name != "" {
			return nil, &FileError{What: "the input is packed with " + name + ", which has to be undone first", Err: ErrFormat}
		}
		return nil, &FileError{What: fmt.Sprintf("the input begins with % x", magic), Err: ErrFormat}
	}
	h, err := src.take(24)
	if err != nil {
		return nil, readError(src, 0, 0, "the file header", err)
	}
	major, minor := c.order.Uint16(h[4:]), c.order.Uint16(h[6:])
	if major != 2 {
		return nil, &FileError{What: fmt.Sprintf("version %d.%d of the pcap format is unknown", major, minor)}
	}
	// Up to version 2.3 some programs wrote the two lengths the other way round.
	c.swapLens = minor <= 3
	c.bound = recordBound(c.order.Uint32(h[16:]))
	// The upper half holds flags and the length of the frame check sequence,
	// which comes after the IP packet and so falls away with the padding.
	c.link = LinkType(c.order.Uint32(h[20:]))
	if !c.link.Supported() {
		return nil, &LinkTypeError{LinkType: c.link}
	}
	return c, nil
}

// matches sets up c for the format that the magic number stands for when read
// in the given order, and reports whether there is one.
func (c *classic) matches(order binary.ByteOrder, magic []byte) bool {
	c.order = order
	switch order.Uint32(magic) {
	case magicMicro:
	case magicNano:
		c.tick = 1
	case magicModified:
		// Interface index, protocol, packet type and padding follow the lengths.
		c.headerLen = 24
	default:
		return false
	}
	return true
}

func (c *classic) next(number int, rec *record) error {
	begin := c.src.off
	h, err := c.src.take(c.headerLen)
	if err != nil {
		if err == io.EOF { // take gives it bare, and only before the first byte
			return err
		}
		return c.cut(number, begin, err)
	}
	sec, frac := c.order.Uint32(h), c.order.Uint32(h[4:])
	capLen, wireLen := c.order.Uint32(h[8:]), c.order.Uint32(h[12:])
	if c.swapLens && capLen > wireLen {
		capLen, wireLen = wireLen, capLen
	}
	if capLen > c.bound {
		return absurdLength(number, begin, capLen, c.bound)
	}
	rec.time = time.Unix(int64(sec), int64(frac)*c.tick).UTC()
	rec.wireLen = wireLen
	rec.link = c.link
	if rec.data, err = c.src.take(int(capLen)); err != nil {
		return c.cut(number, begin, err)
	}
	return nil
}

func (c *classic) cut(number int, begin int64, err error) error {
	return readError(c.src, number, begin, fmt.Sprintf("packet %d", number), err)
}
