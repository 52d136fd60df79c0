package pcap

import (
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// recordLimit is what a record may hold whatever the capture's snapshot
	// length says, in bytes. It is the limit of libpcap and Wireshark.
	recordLimit = 256 << 10
	// snapLimit is up to where a larger snapshot length is believed. Linux
	// segments of 512 KiB (BIG TCP) and the 512 KiB that macOS writes fit in.
	snapLimit = 1 << 20
)

// A Packet is one record of a capture.
type Packet struct {
	Number    int        // of the record in the capture, from 1; skipped ones count
	Time      time.Time  // when it was captured, in UTC; zero where the capture does not say
	Data      []byte     // the IP packet, borrowed until the next Next; nil if skipped
	Interface int        // number of the interface, from 0 in the order of the capture; -1 if unknown
	Tap       [24]byte   // what the frame itself tells of where it was captured; see below
	WireLen   int64      // bytes that the frame had on the wire, link layer included
	Skip      SkipReason // why there is no packet in Data; SkipNone if there is
	Note      string     // more about Skip, such as the link type's name; often empty

	// Of one Interface, frames with a different Tap were captured at different places:
	// it is the index of the interface in Linux cooked captures v2 and its name in
	// PKTAP. Cooked captures v1 are Blurred: direction and sender is all that they tell, so
	// that frames with the same Tap may be of different places too.
	Blurred bool
}

// A record is what a capture format yields for each captured frame.
type record struct {
	time    time.Time
	data    []byte // captured bytes, borrowed from the source until its next take
	wireLen uint32 // bytes on the wire
	iface   int
	link    LinkType
	skip    SkipReason // set by the format where the frame cannot be read
	note    string
}

// A format reads the records of one kind of capture file. The error of next is
// io.EOF at a clean end, and a *FileError otherwise.
type format interface {
	next(number int, rec *record) error
}

// A Reader reads a capture record by record. Make one with NewReader.
type Reader struct {
	src     *source
	format  format
	rec     record
	records int
	err     error // io.EOF once the end was reached or an error was returned
}

// NewReader returns a Reader of the capture in r: pcap or pcapng, plain, gzipped or
// in a zstd stream, which it tells from the first bytes. It reads ahead by up to 64 KiB
// and never seeks, so r may be a pipe. It does not close r.
//
// The error is a *FileError if r is empty, damaged or no capture (then wrapping
// ErrFormat), and a *LinkTypeError for a classic pcap file of a link type that
// is not supported.
func NewReader(r io.Reader) (*Reader, error) {
	src, err := newSource(r)
	if err != nil {
		return nil, &FileError{What: "the header of the compressed stream is damaged", Err: unexpected(err)}
	}
	magic, err := src.peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, readError(src, 0, 0, "the file header", err)
	case len(magic) == 0:
		return nil, &FileError{What: "the input is empty", Err: ErrFormat}
	case len(magic) < 4:
		return nil, &FileError{What: fmt.Sprintf("the input holds %d bytes only", len(magic)), Err: ErrFormat}
	}
	var f format
	if [4]byte(magic) == [4]byte{0x0a, 0x0d, 0x0d, 0x0a} {
		f, err = newPcapng(src)
	} else {
		f, err = newClassic(src)
	}
	if err != nil {
		return nil, err
	}
	return &Reader{src: src, format: f}, nil
}

// Next returns the next record. At the end of the capture the error is io.EOF.
// Where the file is damaged it is a *FileError, once, and io.EOF after that.
func (r *Reader) Next() (Packet, error) {
	if r.err != nil {
		return Packet{}, r.err
	}
	r.rec = record{}
	if err := r.format.next(r.records+1, &r.rec); err != nil {
		r.err = io.EOF
		return Packet{}, err
	}
	r.records++
	p := Packet{
		Number:    r.records,
		Time:      r.rec.time,
		Interface: r.rec.iface,
		WireLen:   int64(r.rec.wireLen),
		Skip:      r.rec.skip,
		Note:      r.rec.note,
	}
	if p.Skip == SkipNone {
		p.Data, p.Skip = extractIP(r.rec.link, r.rec.data, p.WireLen)
		copy(p.Tap[:], tapOf(r.rec.link, r.rec.data))
		p.Blurred = r.rec.link == LinkSLL
		if p.Skip == SkipUnsupportedLink {
			p.Note = innerNote(r.rec.link, r.rec.data)
		}
	}
	return p, nil
}

// Records returns how many records Next has returned, skipped ones included.
func (r *Reader) Records() int { return r.records }

// InputOffset returns how many bytes of the input were consumed so far, as they
// lie in the file: compressed ones if it is gzipped. Against the size of the
// file it gives the progress. Decompression runs ahead by up to 64 KiB.
func (r *Reader) InputOffset() int64 { return r.src.inputOffset() }

// extractIP returns the IP packet in a captured frame, borrowed from it.
func extractIP(link LinkType, frame []byte, wireLen int64) ([]byte, SkipReason) {
	cut := int64(len(frame)) < wireLen
	b, skip := stripLink(link, frame)
	if skip == SkipNone {
		b, skip = trimIP(b, cut)
	}
	switch {
	case skip == SkipNone:
		return b, SkipNone
	case skip == skipShort && cut:
		return nil, SkipTruncated
	case skip == skipShort:
		return nil, SkipBadLinkLayer
	}
	return nil, skip
}

// recordBound returns how many bytes a record may hold in a capture with the
// given snapshot length; 0 means that the capture gives none.
func recordBound(snapLen uint32) uint32 {
	return max(recordLimit, min(snapLen, snapLimit))
}

// absurdLength is the error for a record that claims more than its bound.
func absurdLength(number int, off int64, claimed, bound uint32) error {
	return &FileError{Packet: number, Offset: off,
		What: fmt.Sprintf("packet %d claims %d bytes; the limit is %d", number, claimed, bound)}
}

// readError is the error for input that ends or fails within what began at off.
func readError(src *source, number int, off int64, within string, err error) error {
	err = unexpected(err)
	what := "the file ends in the middle of " + within
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		what = fmt.Sprintf("reading %s failed %d bytes into the capture", within, src.off)
	}
	return &FileError{Packet: number, Offset: off, What: what, Err: err}
}
