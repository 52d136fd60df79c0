package seal_test

import (
	"testing"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// After a gap of many records the number of the next one is found.
func TestNumberIsFoundBehindAGap(t *testing.T) {
	const lost = 90
	for _, suite := range seal.Suites() {
		l, c := newLink(t, 8, 8), sealtest.New(suite, 1, plainest)
		l.logs[1].Add(c.Random, c.Secrets, 0)
		c.Handshake()
		for range lost {
			c.Data(sealtest.Server, []byte("lost"))
			c.Data(sealtest.Client, []byte("not lost"))
		}
		c.Data(sealtest.Server, []byte("behind"))
		all, seen, opened := c.Segments(true, false), 0, false
		for _, s := range all {
			if s.Side == sealtest.Server && len(s.Payload) < 60 {
				if seen++; seen > 3 && seen < lost {
					continue
				}
			}
			l.send(0, s)
			if s.Side == sealtest.Server {
				opened = l.way[1][0].Opened
			}
			l.settle()
		}
		if !opened {
			t.Errorf("%v: what is behind the gap is not opened", suite)
		}
	}
}

// BenchmarkSearch is what a segment costs in which a record's number is looked for in vain:
// with secrets of another connection, and records as short and as long as they are.
func BenchmarkSearch(b *testing.B) {
	for _, suite := range []seal.Suite{seal.AES128GCM13, seal.ChaCha20Poly130513, seal.RSAAES128GCM, seal.RSAChaCha20Poly1305} {
		for name, size := range map[string]int{"150 B": 150, "16 kB": 16000} {
			b.Run(suite.String()+"/"+name, func(b *testing.B) {
				c, other := sealtest.New(suite, 1, plainest), sealtest.New(suite, 2, plainest)
				log := new(sealtest.Log)
				log.Add(c.Random, other.Secrets, 0)
				g := sealtest.NewGateway(seal.Config{Served: sealtest.Served, Secrets: log}, 4)
				c.Handshake()
				key := sealtest.Key(0, sealtest.Server)
				for _, s := range c.Segments(true, false) {
					if s.Side == sealtest.Server {
						g.Send(key, s)
					} else if len(s.Payload) > 0 {
						if _, err := g.Receive(sealtest.Message{Key: sealtest.Key(0, 0), Payload: s.Payload}); err != nil {
							b.Fatal(err)
						}
					}
				}
				seq := uint32(0)
				record := append([]byte{23, 3, 3, byte(size >> 8), byte(size)}, make([]byte, size)...)
				for b.Loop() {
					if g.Send(key, sealtest.Segment{Side: sealtest.Server, Seq: seq, Payload: record}).Opened {
						b.Fatal("opened")
					}
					seq += uint32(len(record))
				}
			})
		}
	}
}
