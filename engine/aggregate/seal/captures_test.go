package seal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
	"sheaf/pcap"
	"sheaf/pcap/pcaptest"
)

// TestRecordsOfBrokers holds that every protected record of captures of real brokers comes
// out byte for byte, with the key logs that the captures bring.
func TestRecordsOfBrokers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pcaptest.Others(t), "tls", "*.pcapng.gz"))
	if err != nil || len(files) == 0 {
		t.Skipf("no captures of TLS beside the others of other projects: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			segments, keyLog := readCapture(t, file)
			streams, order := assemble(segments)
			records, suite := 0, Suite(0)
			for _, key := range order {
				up, down := streams[key], streams[key.Reverse()]
				if !beginsHello(up, 1) || !beginsHello(down, 2) {
					continue // the other direction
				}
				ups, downs := streamKeys(t, up, down, keyLog)
				suite = ups[0].Suite()
				records += checkStream(t, up, ups).protected + checkStream(t, down, downs).protected
			}
			if records < 1000 {
				t.Errorf("%d records, want more than 1000", records)
			}
			t.Logf("%d records, %s", records, suite)
		})
	}
}

// readCapture returns a capture's segments and its key log.
func readCapture(t *testing.T, path string) (segments []parsers.Segment, keyLog string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcap.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	r.KeyLog(func(b []byte) { lines.Write(b) })
	var d parsers.Decoder
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return segments, lines.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		var seg parsers.Segment
		if p.Data != nil && d.Decode(slices.Clone(p.Data), &seg) == nil && seg.TransportLen > 0 {
			segments = append(segments, seg)
		}
	}
}

// assemble returns what each direction of a connection sent, up to the first gap, from its
// first handshake record on: NATS says a line before it.
func assemble(segments []parsers.Segment) (streams map[parsers.FlowKey][]byte, order []parsers.FlowKey) {
	streams = map[parsers.FlowKey][]byte{}
	next := map[parsers.FlowKey]uint32{}
	for _, seg := range parsertest.Reassemble(segments) {
		const syn = 2
		if seg.Flags&syn != 0 {
			order, next[seg.Key] = append(order, seg.Key), seg.Seq+1
			continue
		}
		payload := seg.Payload()
		seen := int(int32(next[seg.Key] - seg.Seq))
		if seen < 0 || seen >= len(payload) {
			continue
		}
		streams[seg.Key] = append(streams[seg.Key], payload[seen:]...)
		next[seg.Key] += uint32(len(payload) - seen)
	}
	for key, stream := range streams {
		streams[key] = stream[max(0, bytes.Index(stream, []byte{22, 3})):]
	}
	return streams, order
}

func beginsHello(stream []byte, typ byte) bool {
	return len(stream) > HeadLen && stream[0] == 22 && stream[HeadLen] == typ
}
