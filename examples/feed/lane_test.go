package feed

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/engine/aggregate"
	"sheaf/parsers"
)

// TestMerge sends 30 news to each of 50 subscribers through a lane: they come out
// as they went in, and cost less where the protocol is known.
func TestMerge(t *testing.T) {
	known := merge(t, parsers.NewRegistry(Protocol()))
	unknown := merge(t, parsers.NewRegistry())
	t.Logf("1500 news of 52 bytes: %d bytes in frames, %d where the protocol is not known", known, unknown)
	if known > unknown/4 {
		t.Errorf("%d bytes, want a quarter of %d at most", known, unknown)
	}
}

func merge(t *testing.T, reg *parsers.Registry) (frames int) {
	near, err := aggregate.NewLane(aggregate.Config{Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	far, err := aggregate.NewLane(aggregate.Config{Registry: reg})
	if err != nil {
		t.Fatal(err)
	}
	var seq [50]uint32
	for round := range 30 {
		now := time.Duration(round) * 50 * time.Millisecond
		sent := map[string]bool{}
		for i := range seq {
			text := fmt.Sprintf(`{"symbol":"ABC","price":%d.%02d}`, 40+round%3, round*37%100)
			m := news(uint32(1000*i+round), "stocks", text) // each subscriber's serials are its own
			p := packet(t, i, seq[i], m)
			seq[i] += uint32(len(m))
			sent[string(p)] = true
			near.Merger.Add(now, p)
		}
		frame := near.Merger.Flush(nil, now, aggregate.FlushEnd)
		got, n, err := far.Expander.Expand(frame)
		if err != nil || n != len(frame) || len(got) != len(seq) {
			t.Fatalf("%d packets of %d bytes, error %v", len(got), n, err)
		}
		for _, p := range got {
			if !sent[string(p)] {
				t.Fatalf("%x was not sent", p)
			}
		}
		frames += len(frame)
	}
	return frames
}

// packet is what the broker sends to subscriber i.
func packet(t *testing.T, i int, seq uint32, payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 2, 0, 10}, DstIP: []byte{10, 1, 0, byte(i)}}
	tcp := &layers.TCP{SrcPort: 7411, DstPort: layers.TCPPort(40000 + i), Seq: seq, Ack: 1, ACK: true, PSH: true, Window: 512}
	if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
		t.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, opts, ip, tcp, gopacket.Payload(payload)); err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), b.Bytes()...)
}
