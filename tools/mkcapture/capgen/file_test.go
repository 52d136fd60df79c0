package capgen

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

const testdata = "../../../testdata"

// TestFilesAreWhatTheProgramMakes keeps the committed captures and the program
// from drifting apart. It compares what is inside the gzip files: another Go
// release may compress otherwise.
func TestFilesAreWhatTheProgramMakes(t *testing.T) {
	total := 0
	for _, f := range Standard() {
		stored, err := os.ReadFile(filepath.Join(testdata, f.Name))
		if err != nil {
			t.Errorf("%v; write the files with: go run ./tools/mkcapture -dir testdata", err)
			continue
		}
		total += len(stored)
		if len(stored) > 100<<10 && !strings.HasSuffix(f.Name, ".gz") {
			t.Errorf("%s: %d bytes and not gzipped", f.Name, len(stored))
		}
		var made bytes.Buffer
		packets, err := f.WritePcap(&made)
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if !bytes.Equal(plain(t, f.Name, stored), made.Bytes()) {
			t.Errorf("%s is not what the program makes; write it anew with: go run ./tools/mkcapture -dir testdata", f.Name)
		}
		checkReadable(t, f.Name, &made, packets)
	}
	if most := 2_500_000; total > most {
		t.Errorf("the files have %d bytes together, want at most %d", total, most)
	}
}

func plain(t *testing.T, name string, b []byte) []byte {
	t.Helper()
	if !strings.HasSuffix(name, ".gz") {
		return b
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err = io.ReadAll(z)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b
}

// checkReadable reads a pcap file to its end.
func checkReadable(t *testing.T, name string, r io.Reader, packets int) {
	t.Helper()
	p, err := pcapgo.NewReader(r)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if p.LinkType() != layers.LinkTypeRaw {
		t.Errorf("%s: link type %v, want raw", name, p.LinkType())
	}
	n := 0
	for {
		_, info, err := p.ReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("%s: packet %d: %v", name, n+1, err)
			return
		}
		if info.Timestamp.Before(Epoch) {
			t.Errorf("%s: packet %d is at %v, before the epoch", name, n+1, info.Timestamp)
		}
		n++
	}
	if n != packets || n == 0 {
		t.Errorf("%s: %d packets read, %d written", name, n, packets)
	}
}

func TestWriteIsDeterministic(t *testing.T) {
	f := File{Name: "a.pcap.gz", Workload: Fanout, Config: Config{Clients: 3, Messages: 3}, Nanos: true}
	var a, b bytes.Buffer
	for _, w := range []io.Writer{&a, &b} {
		if _, err := f.Write(w); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two writes of one capture differ")
	}
}
