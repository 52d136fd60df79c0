package pcap

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// A Writer writes IP packets to a pcap file with raw IP as its link type and
// timestamps in nanoseconds. Make one with NewWriter.
type Writer struct {
	w *pcapgo.Writer
}

// NewWriter returns a Writer to w and writes the file header. Each packet is
// two small writes: put a bufio.Writer between where w is a file, and flush it.
func NewWriter(w io.Writer) (*Writer, error) {
	pw := pcapgo.NewWriterNanos(w)
	if err := pw.WriteFileHeader(recordLimit, layers.LinkTypeRaw); err != nil {
		return nil, fmt.Errorf("writing the capture's header: %w", err)
	}
	return &Writer{w: pw}, nil
}

// Write adds an IP packet, captured at t; the bytes are not looked at, and
// borrowed until Write returns. The format counts seconds in 32 bits from 1970:
// a zero t becomes its beginning, any other t outside of it, up to the year
// 2106, is an error, and so is a packet of more than 256 KiB.
func (w *Writer) Write(t time.Time, ipPacket []byte) error {
	if len(ipPacket) > recordLimit {
		return fmt.Errorf("writing a packet of %d bytes: the limit is %d", len(ipPacket), recordLimit)
	}
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	if sec := t.Unix(); sec < 0 || sec > math.MaxUint32 {
		return fmt.Errorf("writing a packet of %v: outside the years 1970 to 2106", t)
	}
	ci := gopacket.CaptureInfo{Timestamp: t, CaptureLength: len(ipPacket), Length: len(ipPacket)}
	if err := w.w.WritePacket(ci, ipPacket); err != nil {
		return fmt.Errorf("writing a packet: %w", err)
	}
	return nil
}
