package pcap

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// An NgWriter writes IP packets, and the secrets of the TLS connections in them, to a
// pcapng file of one section and one interface: raw IP, timestamps in nanoseconds. Make
// one with NewNgWriter.
type NgWriter struct {
	out io.Writer
	w   *pcapgo.NgWriter // buffered
}

// NewNgWriter returns an NgWriter to w. What is written is buffered: Flush has to end it.
func NewNgWriter(w io.Writer) (*NgWriter, error) {
	link := pcapgo.NgInterface{LinkType: layers.LinkTypeRaw, SnapLength: recordLimit, TimestampResolution: 9}
	ng, err := pcapgo.NewNgWriterInterface(w, link, pcapgo.NgWriterOptions{})
	if err != nil {
		return nil, fmt.Errorf("writing the capture's header: %w", err)
	}
	return &NgWriter{out: w, w: ng}, nil
}

// KeyLog adds lines of a TLS key log, as NSS writes them, in a Decryption Secrets Block.
// They are to come before the packets that they are for, and are borrowed until KeyLog
// returns. More than 64 MiB at a time is an error.
func (w *NgWriter) KeyLog(lines []byte) error {
	if len(lines) > secretsLimit {
		return fmt.Errorf("writing secrets of %d bytes: the limit is %d", len(lines), secretsLimit)
	}
	if err := w.Flush(); err != nil { // pcapgo knows no such block: it goes around its buffer
		return err
	}
	padded := (len(lines) + 3) &^ 3
	total := uint32(padded + 20)
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, total), blockSecrets)
	b = binary.LittleEndian.AppendUint32(b, total)
	b = binary.LittleEndian.AppendUint32(b, secretsTLS)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(lines)))
	b = append(b, lines...)
	b = append(b, make([]byte, padded-len(lines))...)
	b = binary.LittleEndian.AppendUint32(b, total)
	_, err := w.out.Write(b)
	clear(b)
	if err != nil {
		return fmt.Errorf("writing secrets: %w", err)
	}
	return nil
}

// Write adds an IP packet, captured at t; the bytes are not looked at, and borrowed until
// Write returns. A t before 1970 or after the year 2262, where nanoseconds of 64 bits end,
// is an error, and so is a packet of more than 256 KiB.
func (w *NgWriter) Write(t time.Time, ipPacket []byte) error {
	if len(ipPacket) > recordLimit {
		return fmt.Errorf("writing a packet of %d bytes: the limit is %d", len(ipPacket), recordLimit)
	}
	if t.Before(time.Unix(0, 0)) || t.After(time.Unix(0, math.MaxInt64)) {
		return fmt.Errorf("writing a packet of %v: outside the years 1970 to 2262", t)
	}
	ci := gopacket.CaptureInfo{Timestamp: t, CaptureLength: len(ipPacket), Length: len(ipPacket)}
	if err := w.w.WritePacket(ci, ipPacket); err != nil {
		return fmt.Errorf("writing a packet: %w", err)
	}
	return nil
}

// Flush writes what is buffered.
func (w *NgWriter) Flush() error {
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("writing a capture: %w", err)
	}
	return nil
}
