package aggregate

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
)

// records returns n rounds of TLS records as 20 clients get them, each a packet.
func records(n int) (list [][]byte) {
	random := rand.NewChaCha8([32]byte{7})
	var clients [20]segment
	for round := range n {
		for i := range clients {
			s := &clients[i]
			s.Client, s.Port, s.Down, s.Flags, s.Window = i, 40000+i, true, 0x18, 500
			s.Payload = make([]byte, 5+60+(round*13+i)%90)
			random.Read(s.Payload)
			copy(s.Payload, "\x17\x03\x03")
			binary.BigEndian.PutUint16(s.Payload[3:], uint16(len(s.Payload)-5))
			list = append(list, s.Packet())
			s.Seq += uint32(len(s.Payload))
		}
	}
	return list
}

// Ciphertext costs what it is, and no more than the heads of its records beyond what it
// costs where nothing is known of it. Nothing is looked for in it, all of it has one
// template, and the counts of its messages come to what it cost.
func TestEncrypted(t *testing.T) {
	packets := records(60)
	opaque := builtin.Registry()
	if err := opaque.Bind(parsers.Binding{Name: "opaque", Port: 1883}); err != nil {
		t.Fatal(err)
	}
	run := func(reg *parsers.Registry) (*pair, *Stats) {
		p := newPair(t, Config{Registry: reg})
		for i, b := range packets {
			p.run(0, time.Duration(i)*time.Millisecond/20, b)
		}
		p.due(time.Hour)
		return p, p.ends[0].Merger.Stats()
	}
	known, stats := run(builtin.Registry())
	unknown, _ := run(opaque)
	if known.bytes[0] > unknown.bytes[0]+5*len(packets) {
		t.Errorf("%d bytes, %d where it is opaque", known.bytes[0], unknown.bytes[0])
	}
	payload := 0
	for _, b := range packets {
		payload += len(b) - 40
	}
	if most := payload + 2*len(packets); known.bytes[0] > most {
		t.Errorf("%d bytes in frames for %d of payload, want at most %d", known.bytes[0], payload, most)
	}
	if stats.Hits != ([NumHits]uint64{}) || stats.NoHits != uint64(len(packets)) {
		t.Errorf("hits %v, none %d, of %d packets", stats.Hits, stats.NoHits, len(packets))
	}
	if n := codectest.Size(known.ends[0].Merger.encoder) - 20; n != 1 { // beside the contexts
		t.Errorf("%d templates", n)
	}
	id, _ := builtin.Registry().Lookup("tls")
	sum := 0.0
	for k, e := range stats.Messages {
		if k.Protocol != id {
			t.Errorf("messages of %+v", k)
		}
		sum += e.BytesOut
	}
	if sum < float64(payload) || sum > float64(known.bytes[0]) {
		t.Errorf("%.0f bytes are counted as messages, of %d that hold %d", sum, known.bytes[0], payload)
	}
	t.Logf("%d packets, %d of payload: %d in frames, %d where it is opaque", len(packets), payload, known.bytes[0], unknown.bytes[0])
}

// An encrypted record that comes again at once costs no second copy.
func TestEncryptedAgain(t *testing.T) {
	p := newPair(t, Config{})
	packets := records(2)
	for _, b := range packets[:20] {
		p.add(0, 0, b)
		p.flush(0, 0)
	}
	p.add(0, 0, packets[20])
	p.flush(0, 0)
	before := p.bytes[0]
	p.add(0, 0, packets[20])
	p.flush(0, 0)
	if n := p.bytes[0] - before; n > len(packets[20])-40 {
		t.Errorf("%d bytes for a record that was sent before", n)
	}
}

func BenchmarkEncrypted(b *testing.B) {
	opaque := builtin.Registry()
	if err := opaque.Bind(parsers.Binding{Name: "opaque", Port: 1883}); err != nil {
		b.Fatal(err)
	}
	packets := records(400)
	for name, reg := range map[string]*parsers.Registry{"tls": builtin.Registry(), "opaque": opaque} {
		b.Run(name, func(b *testing.B) {
			l, err := NewLane(Config{Registry: reg})
			if err != nil {
				b.Fatal(err)
			}
			var frame []byte
			bytes := 0
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				l.Merger.Add(time.Duration(i)*time.Millisecond/20, packets[i%len(packets)])
				if i++; i%20 == 0 {
					frame = l.Merger.Flush(frame[:0], time.Duration(i)*time.Millisecond/20, FlushQuiet)
					bytes += len(frame)
				}
			}
			b.ReportMetric(float64(bytes)/float64(i), "bytes/packet")
		})
	}
}
