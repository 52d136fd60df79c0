package parsertest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
	"sheaf/pcap"
	"sheaf/pcap/pcaptest"
)

// Capture returns the path of a capture file of other projects. It skips the test
// where there are none.
func Capture(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(pcaptest.Others(t), name)
}

// Captures returns the capture files of other projects that fit patterns; without
// patterns all that are small. It skips the test where there are none.
func Captures(t *testing.T, patterns ...string) (files []string) {
	t.Helper()
	captures := pcaptest.Others(t)
	if patterns == nil {
		patterns = []string{"*.pcap*", "live/*.pcap"}
	}
	for _, pattern := range patterns {
		list, err := filepath.Glob(filepath.Join(captures, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, list...)
	}
	if len(files) == 0 {
		t.Fatalf("no capture files in %s", captures)
	}
	return files
}

// Segments returns the TCP and UDP segments of a capture file as they came, as far
// as it can be read.
func Segments(t *testing.T, path string) (segs []parsers.Segment) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := pcap.NewReader(file)
	if err != nil {
		t.Logf("%s: %v", path, err)
		return nil
	}
	var d parsers.Decoder
	for {
		p, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Logf("%s: stopped reading: %v", path, err)
			}
			return segs
		}
		var seg parsers.Segment
		if p.Data != nil && d.Decode(slices.Clone(p.Data), &seg) == nil && seg.TransportLen > 0 {
			segs = append(segs, seg)
		}
	}
}

// Reassemble sorts each connection's TCP segments by sequence number and takes out
// what was seen before. Connections begin anew at a SYN.
func Reassemble(segs []parsers.Segment) (sorted []parsers.Segment) {
	for _, conn := range connections(segs) {
		slices.SortStableFunc(conn, func(a, b parsers.Segment) int { return int(int32(a.Seq - b.Seq)) })
		var next seqnum.Value
		for i, seg := range conn {
			seq := seqnum.Value(seg.Seq)
			if seg.Flags&2 != 0 {
				seq++
			}
			if end := seq.Add(seqnum.Size(len(seg.Payload()))); i == 0 || next.LessThan(end) {
				next = end
				sorted = append(sorted, seg)
			}
		}
	}
	return sorted
}

// connections sorts TCP segments by connection and direction.
func connections(segs []parsers.Segment) (list [][]parsers.Segment) {
	newest := map[parsers.FlowKey]int{} // index in list
	for _, seg := range segs {
		if seg.Key.Proto != 6 {
			continue
		}
		i, known := newest[seg.Key]
		if !known || seg.Flags&2 != 0 && list[i][0].Seq != seg.Seq {
			i = len(list)
			newest[seg.Key] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], seg)
	}
	return list
}

// Scan calls span with what each segment is found to hold; the spans have to cover
// it.
func Scan(t *testing.T, reg *parsers.Registry, segs []parsers.Segment, span func(*parsers.Segment, parsers.Span)) {
	t.Helper()
	streams := map[parsers.FlowKey]*parsers.Stream{}
	for i := range segs {
		st := streams[segs[i].Key]
		if st == nil {
			st = new(parsers.Stream)
			streams[segs[i].Key] = st
		}
		sum := 0
		for _, sp := range st.Scan(reg, &segs[i], nil) {
			sum += sp.Len
			span(&segs[i], sp)
		}
		if sum != len(segs[i].Payload()) {
			t.Fatalf("spans cover %d of %d bytes", sum, len(segs[i].Payload()))
		}
	}
}

// CapturesOfOthers holds that no other protocol's traffic is taken for a protocol,
// the captures of which have names that begin with prefix.
func CapturesOfOthers(t *testing.T, reg *parsers.Registry, protocol, prefix string) {
	t.Helper()
	id, ok := reg.Lookup(protocol)
	if !ok {
		t.Fatalf("no protocol %s", protocol)
	}
	for _, file := range Captures(t) {
		if strings.HasPrefix(filepath.Base(file), prefix) {
			continue
		}
		n := 0
		Scan(t, reg, Segments(t, file), func(_ *parsers.Segment, sp parsers.Span) {
			if sp.Protocol == id {
				n++
			}
		})
		if n > 0 {
			t.Errorf("%s: %d spans", filepath.Base(file), n)
		}
	}
}
