package seal_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/aggregate/seal/sealtest"
)

// told is an entry of secrets with a suite, of material that is all zeros.
func told(flags byte, suite seal.Suite) []byte {
	b := binary.BigEndian.AppendUint16([]byte{flags | withSuite}, uint16(suite))
	if flags&reverse != 0 {
		b = append(b, 0)
	}
	return append(b, make([]byte, suite.SecretLen())...)
}

// Flags of entries.
const (
	reverse   = 1
	withSuite = 32
)

// first are flags that tell of the client's direction, and void what was told before.
const first = 2 | 4 | 8

// most is what the payload of a packet may have, and a record behind it.
const most = 1<<16 + seal.HeadLen + seal.MaxFragment

// FuzzSeal holds that of whatever a peer says there come packets or ErrOpened, and no more
// bytes than a packet and a record have.
func FuzzSeal(f *testing.F) {
	for i, opened := range grammar {
		f.Add(uint16(seal.AES128GCM13), []byte(opened.payload), byte(i))
		f.Add(uint16(seal.RSAAES256GCM), []byte(opened.payload), byte(i))
	}
	f.Fuzz(func(t *testing.T, suite uint16, b []byte, cut byte) {
		s := seal.Suite(suite)
		g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
		key := sealtest.Key(0, sealtest.Client)
		err := g.Table.Tell(&key, told(first, s))
		if s.Known() != (err == nil) {
			t.Fatalf("keys of %v: %v", s, err)
		}
		if err != nil {
			return
		}
		n := min(int(cut), len(b)) // two payloads, that share a record
		var out []byte
		for _, opened := range [][]byte{b[:n], b[n:]} {
			if out, err = g.Table.Seal(out[:0], &key, opened); err != nil {
				if !errors.Is(err, seal.ErrOpened) {
					t.Fatal(err)
				}
				return
			}
			if len(out) > most {
				t.Fatalf("%d bytes of %d", len(out), len(opened))
			}
		}
	})
}

// FuzzTell holds that of whatever a peer says about secrets there are keys or ErrOpened.
func FuzzTell(f *testing.F) {
	for _, entries := range secrets {
		f.Add([]byte(entries.secrets))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
		key, own := sealtest.Key(0, sealtest.Client), sealtest.Key(0, sealtest.Server)
		g.Send(own, sealtest.Segment{Side: sealtest.Server, Seq: 1, Payload: []byte("plain")})
		if err := g.Table.Tell(&key, b); err != nil {
			if !errors.Is(err, seal.ErrOpened) {
				t.Fatal(err)
			}
			return
		}
		if _, err := g.Table.Seal(nil, &key, []byte{5, 0, 23}); err != nil && !errors.Is(err, seal.ErrOpened) {
			t.Fatal(err)
		}
		g.Send(own, sealtest.Segment{Side: sealtest.Server, Seq: 6, Payload: make([]byte, 100)})
		g.Begin()
		g.Send(own, sealtest.Segment{Side: sealtest.Server, Seq: 106, Payload: make([]byte, 100)})
	})
}

// FuzzOpener holds that whatever segments pass they come out as they were. Each is two
// bytes of length, a byte of what it does with what the connection has to say there, and
// bytes of its own.
func FuzzOpener(f *testing.F) {
	f.Add(uint16(seal.AES128GCM13), []byte{0, 200, 0, 0, 100, 0, 5, 3, 1, 20, 30, 40})
	f.Add(uint16(seal.RSAAES128GCM), []byte{1, 0, 0, 0, 7, 3, 255, 255, 0, 0, 9, 1, 1, 1})
	f.Fuzz(func(t *testing.T, suite uint16, b []byte) {
		if !seal.Suite(suite).Known() {
			return
		}
		next := func(n int) int {
			if len(b) == 0 {
				return 0
			}
			v := int(b[0])
			b = b[1:]
			return v % n
		}
		l := newLink(t, 4, 4)
		c := sealtest.New(seal.Suite(suite), 0, next)
		c.Odd = true
		for i := range l.logs {
			l.logs[i].Add(c.Random, c.Secrets, 0)
		}
		c.Handshake()
		c.Talk(4)
		for _, s := range c.Disturb(c.Segments(next(2) == 0, next(2) == 1), 4) {
			if n := next(64); n > 56 {
				s.Payload = b[:min(n, len(b))]
			}
			l.send(0, s)
			if next(4) > 0 {
				l.settle()
			}
		}
		l.settle()
	})
}

// A hostile peer's padding is two bytes for 16 kB, and 64 kB have many of them.
func TestSealIsBounded(t *testing.T) {
	g := sealtest.NewGateway(seal.Config{Served: sealtest.Served}, 2)
	key := sealtest.Key(0, sealtest.Client)
	if err := g.Table.Tell(&key, told(first, seal.AES128GCM13)); err != nil {
		t.Fatal(err)
	}
	opened := []byte{5, 0}
	for range 1 << 13 {
		opened = append(opened, 23|0x20|0x40, 0, 0, 0x40, 0)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := g.Table.Seal(nil, &key, opened)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, seal.ErrOpened) {
		t.Errorf("error %v", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}
