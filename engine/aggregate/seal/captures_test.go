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
			if seen := reopen(t, file); seen.protected < 1000 {
				t.Errorf("%d records, want more than 1000", seen.protected)
			}
		})
	}
}

// TestRecordsOfRecorded holds the same of the captures of the repository: with sessions
// that are resumed, keys that are updated, and segments that are sent again.
func TestRecordsOfRecorded(t *testing.T) {
	updated := false
	for _, file := range pcaptest.Recorded(t) {
		if filepath.Ext(strings.TrimSuffix(file, ".gz")) != ".pcapng" {
			continue // without secrets
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			seen := reopen(t, file)
			if seen.protected < 50 {
				t.Errorf("%d records, want more than 50", seen.protected)
			}
			updated = updated || seen.updates > 0
		})
	}
	if !updated {
		t.Error("no keys were updated in any capture")
	}
}

// reopen checks all records of a capture.
func reopen(t *testing.T, file string) (seen reopened) {
	t.Helper()
	segments, keyLog := readCapture(t, file)
	streams, order := assemble(segments)
	suite := Suite(0)
	for _, key := range order {
		up, down := streams[key], streams[key.Reverse()]
		if !beginsHello(up, 1) || !beginsHello(down, 2) {
			continue // the other direction
		}
		ups, downs := streamKeys(t, up, down, keyLog)
		suite = ups[0].Suite()
		for _, way := range []reopened{checkStream(t, up, ups), checkStream(t, down, downs)} {
			seen.protected += way.protected
			seen.updates += way.updates
		}
	}
	t.Logf("%d records, %d of them update keys, %s", seen.protected, seen.updates, suite)
	return seen
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
