package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/engine/aggregate/seal"
	"sheaf/parsers"
	"sheaf/tools/mkcapture/capgen"
)

// TestSecured holds that a trace inside TLS is one that a network could show: checksums
// and lengths are right, each direction's bytes follow one another, and what is sent is
// acknowledged, and nothing else.
func TestSecured(t *testing.T) {
	plain, err := makeTrace(capgen.Fanout, capgen.Config{Clients: 5, Messages: 10, QoS: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sealed {
		out, known, err := secured(plain, s.suite)
		if err != nil {
			t.Fatal(err)
		}
		flights := 3
		if !s.suite.TLS13() {
			flights = 4
		}
		if more := len(out.entries) - len(plain.entries); more != 5*flights || len(known) != 5 {
			t.Errorf("%s: %d packets more, secrets of %d connections", s.name, more, len(known))
		}
		ends, acked := make(map[parsers.FlowKey]uint32), make(map[parsers.FlowKey]uint32)
		var decoder parsers.Decoder
		var seg parsers.Segment
		n := 0
		for p := range out.packets {
			n++
			if err := decoder.Decode(p.data, &seg); err != nil {
				t.Fatal(err)
			}
			h := header.IPv4(p.data)
			tcp := header.TCP(h.Payload())
			sum := header.PseudoHeaderChecksum(header.TCPProtocolNumber, h.SourceAddress(), h.DestinationAddress(), uint16(len(tcp)))
			if int(h.TotalLength()) != len(p.data) || !h.IsChecksumValid() || checksum.Checksum(tcp, sum) != 0xffff {
				t.Fatalf("%s: packet %d: length or checksum", s.name, n)
			}
			if at, met := ends[seg.Key]; met && at != seg.Seq {
				t.Fatalf("%s: packet %d begins %d bytes behind the one before", s.name, n, int32(seg.Seq-at))
			}
			if at, met := ends[seg.Key.Reverse()]; met && int32(at-seg.Ack) < 0 {
				t.Fatalf("%s: packet %d acknowledges what was not sent", s.name, n)
			}
			acked[seg.Key.Reverse()] = seg.Ack
			ends[seg.Key] = seg.Seq + uint32(len(seg.Payload())+bits(seg.Flags, parsers.FlagSYN)+bits(seg.Flags, parsers.FlagFIN))
		}
		for key, end := range ends {
			if acked[key] != end {
				t.Errorf("%s: %d bytes are not acknowledged in the end", s.name, int32(end-acked[key]))
			}
		}
	}
}

func bits(flags, of uint8) int {
	if flags&of != 0 {
		return 1
	}
	return 0
}

// TestSecuredRefuses holds what a securer does not take.
func TestSecuredRefuses(t *testing.T) {
	plain, err := makeTrace(capgen.Fanout, capgen.Config{Clients: 2, Messages: 3})
	if err != nil {
		t.Fatal(err)
	}
	missing := &trace{}
	for p := range plain.packets {
		if !bytes.Contains(p.data, []byte("MQTT")) { // CONNECT
			missing.add(p.at, p.dir, p.data)
		}
	}
	six, err := makeTrace(capgen.Fanout, capgen.Config{Clients: 2, Messages: 3, IPv6: true})
	if err != nil {
		t.Fatal(err)
	}
	middle, err := makeTrace(capgen.FanoutSkew, capgen.Config{Clients: 2, Messages: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		trace *trace
		says  string
	}{
		{"what the client begins with is missing", missing, "where no segment ended"},
		{"IPv6", six, "not TCP over IPv4"},
		{"the middle of connections", middle, "the server speaks first"},
	} {
		if _, _, err := secured(tt.trace, seal.AES128GCM13); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

// TestSealingRuns holds that all protected records but those before their secrets are told
// are opened and sealed, to the same packets, and that nothing is opened without secrets.
func TestSealingRuns(t *testing.T) {
	runs, err := sealingRuns(capgen.Config{Clients: 10, Messages: 20})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range runs {
		ends, err := r.schedule.lanes()
		if err != nil {
			t.Fatal(err)
		}
		err = r.schedule.frames(r.trace.packets, func(st *step, b *batch) error {
			from := 0
			for i, to := range b.ends {
				if err := ends[st.dir].Merger.Add(b.at[i], b.bytes[from:to]); err != nil {
					return err
				}
				from = to
			}
			packets, _, err := ends[1-st.dir].Expander.Expand(ends[st.dir].Merger.Flush(nil, st.now, st.why))
			if got, want := sorted(packets), sorted(b.packets()); !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("%s: packets came out different", r.Name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		opened, carried := uint64(0), uint64(0)
		for _, end := range ends {
			s := &end.Merger.Stats().TLS
			opened += s.Records
			for why, n := range s.Carried {
				if seal.Carried(why) != seal.CarriedShort { // a client's Finished
					carried += n
				}
			}
		}
		// A message each, and CONNECT, SUBSCRIBE and their answers; 0 or all were opened.
		if least := uint64(10 * (20 + 4)); r.Opened != (opened >= least) || r.Opened != (i > 1) || r.Opened && carried > 0 || !r.Opened && opened > 0 {
			t.Errorf("%s: %d records opened, %d carried", r.Name, opened, carried)
		}
	}
}

// packets are those of a batch.
func (b *batch) packets() (all [][]byte) {
	from := 0
	for _, to := range b.ends {
		all = append(all, b.bytes[from:to])
		from = to
	}
	return all
}

// sorted returns packets in an order that does not tell of that of flows among one another,
// which a frame does not keep.
func sorted(packets [][]byte) [][]byte {
	out := slices.Clone(packets)
	slices.SortFunc(out, bytes.Compare)
	return out
}

// TestSealing holds that each row is measured and has its target.
func TestSealing(t *testing.T) {
	runs, err := sealingRuns(capgen.Config{Clients: 10, Messages: 300})
	if err != nil {
		t.Fatal(err)
	}
	var all []Sealing
	for _, r := range runs {
		for pass := range 2 {
			if err := r.pass(pass == 0); err != nil {
				t.Fatal(err)
			}
		}
		if r.Packets == 0 || r.Records == 0 || r.Records > r.Packets || r.Encode <= 0 || r.Decode <= 0 || r.Bytes < 130 || r.Bytes > 170 {
			t.Errorf("%+v", r.Sealing)
		}
		if hard, _ := missedSealing([]Sealing{r.Sealing}); len(hard) > 0 {
			t.Error(hard)
		}
		all = append(all, r.Sealing)
	}
	if plain, carried, opened := all[0].Wire, all[1].Wire, all[2].Wire; carried < 100 || opened > 2*plain {
		t.Errorf("a record takes %.1f bytes without TLS, %.1f carried, %.1f opened", plain, carried, opened)
	}
	var b strings.Builder
	sealingTable(all).write(&b)
	if n := strings.Count(b.String(), "1.5 us"); n != len(sealed) {
		t.Errorf("%d rows have a target in\n%s", n, b.String())
	}
}
