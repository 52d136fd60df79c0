package pcap

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"time"
)

// Block types, draft-ietf-opsawg-pcapng section 11.1.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockOldPacket = 2
	blockSimple    = 3
	blockEnhanced  = 6
)

// maxInterfaces bounds the table of a section; packets name them with 32 bits.
const maxInterfaces = 1 << 16

// pcapng reads pcapng files: a sequence of blocks, each of
//
//	type (4) | total length (4) | body, padded to 4 | total length again (4)
//
// in the byte order that the section header block before it has announced.
type pcapng struct {
	src    *source
	order  binary.ByteOrder
	ifaces []ifaceDesc  // of the current section
	before int          // interfaces of the sections before it
	snap   uint32       // the largest snapshot length of the section
	keyLog func([]byte) // given the TLS secrets of the file; nil: nobody wants them
}

// An ifaceDesc is what an interface description block says.
type ifaceDesc struct {
	link    LinkType
	snapLen uint32 // 0 if there is none
	units   uint64 // of a timestamp in a second; 0 if finer than we can tell
	offset  int64  // seconds to add to every timestamp
	note    string // why packets are skipped, if they are
}

func newPcapng(src *source) (*pcapng, error) {
	p := &pcapng{src: src}
	h, err := src.take(8)
	if err != nil {
		return nil, readError(src, 0, 0, "the file header", err)
	}
	if err := p.section(block{begin: 0}, [4]byte(h[4:8])); err != nil {
		return nil, err
	}
	return p, nil
}

// A block is the one being read.
type block struct {
	number int   // of the packet that comes next in the file, for errors; 0 in the file header
	begin  int64 // where it begins, in bytes of the capture
	kind   uint32
	left   uint32 // bytes of the body not yet consumed
	total  uint32
}

func (b *block) damaged(format string, args ...any) error {
	return &FileError{Packet: b.number, Offset: b.begin, What: fmt.Sprintf(format, args...)}
}

// cut is the error for a read within the block that failed.
func (p *pcapng) cut(b *block, err error) error {
	within := fmt.Sprintf("a block of type %#x before packet %d", b.kind, b.number)
	switch {
	case b.number == 0:
		within = "the file header"
	case b.kind == blockEnhanced || b.kind == blockSimple || b.kind == blockOldPacket:
		within = fmt.Sprintf("packet %d", b.number)
	}
	return readError(p.src, b.number, b.begin, within, err)
}

// take consumes n bytes of the block's body. They are borrowed until the next.
func (p *pcapng) take(b *block, n uint32) ([]byte, error) {
	if n > b.left {
		return nil, b.damaged("a block of type %#x and %d bytes is too short", b.kind, b.total)
	}
	b.left -= n
	d, err := p.src.take(int(n))
	if err != nil {
		return nil, p.cut(b, err)
	}
	return d, nil
}

// finish consumes the rest of the block and checks the length at its end. It
// leaves bytes that were taken before as they are.
func (p *pcapng) finish(b *block) error {
	if err := p.src.skip(int64(b.left)); err != nil {
		return p.cut(b, err)
	}
	b.left = 0
	// Peek, since the packet's bytes still lie in the buffer of take.
	end, err := p.src.peek(4)
	if err != nil {
		return p.cut(b, err)
	}
	if again := p.order.Uint32(end); again != b.total {
		return b.damaged("a block of %d bytes says at its end that it has %d", b.total, again)
	}
	return p.src.skip(4)
}

func (p *pcapng) next(number int, rec *record) error {
	for {
		b := block{number: number, begin: p.src.off}
		h, err := p.src.take(8)
		if err != nil {
			if err == io.EOF { // take gives it bare, and only before the first byte
				return err
			}
			return readError(p.src, number, b.begin, fmt.Sprintf("a block header before packet %d", number), err)
		}
		b.kind = p.order.Uint32(h)
		if b.kind == blockSection { // reads the same in both byte orders
			if err := p.section(b, [4]byte(h[4:8])); err != nil {
				return err
			}
			continue
		}
		if err := b.measure(p.order.Uint32(h[4:])); err != nil {
			return err
		}
		packet := true
		switch b.kind {
		case blockEnhanced, blockOldPacket:
			err = p.packet(&b, rec)
		case blockSimple:
			err = p.simple(&b, rec)
		case blockInterface:
			packet, err = false, p.describe(&b)
		case blockSecrets:
			packet, err = false, p.secrets(&b)
		default: // name resolution, statistics, custom blocks, ...
			packet = false
		}
		if err == nil {
			err = p.finish(&b)
		}
		if err != nil || packet {
			return err
		}
	}
}

// measure takes in the total length of the block, whose type and length fields
// have been consumed.
func (b *block) measure(total uint32) error {
	if total < 12 || total%4 != 0 {
		return b.damaged("a block of type %#x before packet %d claims a length of %d", b.kind, b.number, total)
	}
	b.total, b.left = total, total-12
	return nil
}

// section reads a section header block whose first eight bytes are consumed;
// the last four of them are its length, in a byte order yet to be learnt.
func (p *pcapng) section(b block, length [4]byte) error {
	b.kind = blockSection
	magic, err := p.src.take(4)
	if err != nil {
		return p.cut(&b, err)
	}
	switch {
	case binary.LittleEndian.Uint32(magic) == 0x1a2b3c4d:
		p.order = binary.LittleEndian
	case binary.BigEndian.Uint32(magic) == 0x1a2b3c4d:
		p.order = binary.BigEndian
	default:
		return b.damaged("a section header has the byte-order magic % x", magic)
	}
	if err := b.measure(p.order.Uint32(length[:])); err != nil {
		return err
	}
	if b.left < 16 {
		return b.damaged("a section header has %d bytes", b.total)
	}
	b.left -= 4
	v, err := p.take(&b, 4)
	if err != nil {
		return err
	}
	// Section 4.1: minor 2 is the same as 0; readers are to accept no other major.
	if major, minor := p.order.Uint16(v), p.order.Uint16(v[2:]); major != 1 {
		return b.damaged("version %d.%d of the pcapng format is unknown", major, minor)
	}
	p.before += len(p.ifaces)
	p.ifaces = p.ifaces[:0]
	p.snap = 0
	return p.finish(&b)
}

// describe reads an interface description block (section 4.2).
func (p *pcapng) describe(b *block) error {
	if len(p.ifaces) == maxInterfaces {
		return b.damaged("a section describes more than %d interfaces", maxInterfaces)
	}
	h, err := p.take(b, 8)
	if err != nil {
		return err
	}
	d := ifaceDesc{link: LinkType(p.order.Uint16(h)), snapLen: p.order.Uint32(h[4:]), units: 1_000_000}
	for b.left >= 4 {
		h, err := p.take(b, 4)
		if err != nil {
			return err
		}
		code, length := p.order.Uint16(h), uint32(p.order.Uint16(h[2:]))
		if code == 0 { // opt_endofopt
			break
		}
		// Option values are padded to four bytes; they are at most 64 KiB.
		v, err := p.take(b, (length+3)&^3)
		if err != nil {
			return err
		}
		switch {
		case code == 9 && length == 1: // if_tsresol
			d.units = tickRate(v[0])
		case code == 14 && length == 8: // if_tsoffset
			d.offset = int64(p.order.Uint64(v))
		}
	}
	if !d.link.Supported() {
		d.note = "link type " + d.link.String()
	}
	p.snap = max(p.snap, d.snapLen)
	p.ifaces = append(p.ifaces, d)
	return nil
}

// tickRate returns how many units a second has with the given if_tsresol: a
// negative power of 2 if the highest bit is set, else of 10 (section 4.2). It
// returns 0 for more than 64 bits can count.
func tickRate(resol byte) uint64 {
	exp := resol & 0x7f
	if resol&0x80 != 0 {
		return 1 << exp // Go shifts out to 0
	}
	if exp > 19 {
		return 0
	}
	units := uint64(1)
	for range exp {
		units *= 10
	}
	return units
}

// packet reads an enhanced packet block (section 4.3) or its forerunner, the
// packet block (appendix A), which has a drop count in half of the first field:
//
//	interface (4) | time, upper half (4) | lower half (4) | captured (4) | wire length (4) | frame
func (p *pcapng) packet(b *block, rec *record) error {
	h, err := p.take(b, 20)
	if err != nil {
		return err
	}
	id := p.order.Uint32(h)
	if b.kind == blockOldPacket {
		id = uint32(p.order.Uint16(h))
	}
	ticks := uint64(p.order.Uint32(h[4:]))<<32 | uint64(p.order.Uint32(h[8:]))
	capLen := p.order.Uint32(h[12:])
	rec.wireLen = p.order.Uint32(h[16:])
	if d := p.iface(id, rec); d != nil {
		rec.time = d.time(ticks)
	}
	return p.frame(b, capLen, rec)
}

// simple reads a simple packet block (section 4.4): the length on the wire and
// the frame, which belongs to the section's first interface and bears no time.
// How much was captured follows from the snapshot length.
func (p *pcapng) simple(b *block, rec *record) error {
	h, err := p.take(b, 4)
	if err != nil {
		return err
	}
	rec.wireLen = p.order.Uint32(h)
	capLen := min(rec.wireLen, b.left)
	if d := p.iface(0, rec); d != nil && d.snapLen != 0 {
		capLen = min(capLen, d.snapLen)
	}
	return p.frame(b, capLen, rec)
}

// iface sets what the record's interface says about it, and returns its
// description, or nil if the section has none with that number.
func (p *pcapng) iface(id uint32, rec *record) *ifaceDesc {
	if uint64(id) >= uint64(len(p.ifaces)) {
		rec.iface, rec.skip = -1, SkipNoInterface
		return nil
	}
	d := &p.ifaces[id]
	rec.iface, rec.link = p.before+int(id), d.link
	if d.note != "" {
		rec.skip, rec.note = SkipUnsupportedLink, d.note
	}
	return d
}

// frame takes the captured bytes.
func (p *pcapng) frame(b *block, capLen uint32, rec *record) error {
	if bound := recordBound(p.snap); capLen > bound {
		return absurdLength(b.number, b.begin, capLen, bound)
	}
	if capLen > b.left {
		return b.damaged("packet %d claims %d bytes in a block of %d", b.number, capLen, b.total)
	}
	var err error
	rec.data, err = p.take(b, capLen)
	return err
}

// time returns the time of a timestamp in units since 1970.
func (d *ifaceDesc) time(ticks uint64) time.Time {
	if d.units == 0 {
		return time.Time{}
	}
	sec, frac := ticks/d.units, ticks%d.units
	hi, lo := bits.Mul64(frac, 1_000_000_000)
	ns, _ := bits.Div64(hi, lo, d.units) // frac < units, so the quotient is below 10^9
	return time.Unix(int64(sec)+d.offset, int64(ns)).UTC()
}
