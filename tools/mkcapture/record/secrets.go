package record

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"sheaf/pcap"
)

// A vault keeps packets until the secrets of all their connections are known: a capture
// has those in front.
type vault struct {
	mu   sync.Mutex
	log  []byte
	kept []kept
}

// A kept packet is one with the time that it was recorded at.
type kept struct {
	at     time.Time
	packet []byte // owned
}

// Write implements packetWriter.
func (v *vault) Write(at time.Time, packet []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept = append(v.kept, kept{at, bytes.Clone(packet)})
	return nil
}

// A logWriter is where clients write their key logs to.
type logWriter struct{ *vault }

// Write implements io.Writer for lines of a key log.
func (w logWriter) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, lines...)
	return len(lines), nil
}

// finish writes the capture.
func (v *vault) finish(out io.Writer) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	w, err := pcap.NewNgWriter(out)
	if err != nil {
		return err
	}
	if err := w.KeyLog(v.log); err != nil {
		return err
	}
	for i, k := range v.kept {
		if err := w.Write(k.at, k.packet); err != nil {
			return fmt.Errorf("packet %d: %w", i+1, err)
		}
	}
	return w.Flush()
}
