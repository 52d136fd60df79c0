package pcap

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sheaf/pcap/pcaptest"
)

// TestRecorded reads the recorded captures: every record is an IP packet, and none
// is earlier than the one before.
func TestRecorded(t *testing.T) {
	for _, path := range pcaptest.Recorded(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := NewReader(f)
			if err != nil {
				t.Fatal(err)
			}
			var last time.Time
			for {
				p, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if p.Skip != SkipNone || p.Time.Before(last) {
					t.Fatalf("packet %d: skipped as %q, at %v after %v", p.Number, p.Skip, p.Time, last)
				}
				last = p.Time
			}
			if r.Records() < 100 {
				t.Errorf("%d records", r.Records())
			}
		})
	}
}
