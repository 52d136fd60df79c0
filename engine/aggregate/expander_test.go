package aggregate

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

func TestBrokenFramesEndTheEpoch(t *testing.T) {
	frames := func(p *pair, n int) (out [][]byte) {
		f := codectest.NewFanout(3)
		for range n {
			f.Send(func(i int) []byte { return codectest.Publish("a/b", body(f.Round), 0) }, func(d int, now time.Duration, b []byte) {
				if d == 1 {
					p.ends[1].Merger.Add(now, b)
				}
			})
			out = append(out, p.ends[1].Merger.Flush(nil, f.Now, FlushEnd))
		}
		return out
	}
	expand := func(p *pair, frame []byte) ([][]byte, error) {
		got, _, err := p.ends[0].Expander.Expand(frame)
		return got, err
	}
	tests := []struct {
		name   string
		damage func([][]byte) [][]byte
	}{
		{"lost", func(f [][]byte) [][]byte { return append(f[:2:2], f[3:]...) }},
		{"twice", func(f [][]byte) [][]byte { return append(f[:3:3], f[2:]...) }},
		{"digest", func(f [][]byte) [][]byte { f[2][1] ^= 1; return f }},
		{"control field", func(f [][]byte) [][]byte { f[2][len(f[2])-2] ^= 0x10; return f }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, Config{})
			var failed error
			for _, frame := range tt.damage(frames(p, 6)) {
				got, err := expand(p, frame)
				if failed != nil && !errors.Is(err, failed) {
					t.Fatalf("after %v: %v", failed, err)
				}
				if err != nil {
					failed = err
					if len(got) != 0 {
						t.Error("packets delivered with an error")
					}
				}
			}
			if !errors.Is(failed, ErrFrame) {
				t.Errorf("error %v, expected ErrFrame", failed)
			}
		})
	}
	t.Run("short", func(t *testing.T) {
		p := newPair(t, Config{})
		all := frames(p, 2)
		for n := range all[0] {
			packets, taken, err := p.ends[0].Expander.Expand(all[0][:n])
			if !errors.Is(err, wire.ErrShort) || taken != 0 || len(packets) != 0 {
				t.Fatalf("%d of %d bytes: %d packets, %d bytes taken, %v", n, len(all[0]), len(packets), taken, err)
			}
		}
		for _, frame := range all {
			if _, err := expand(p, frame); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A frame with anything behind its decisions, or with less, is none.
func TestFramesEndWithTheirDecisions(t *testing.T) {
	noise := string(bytes.Repeat([]byte{0x9c, 0x13, 0xe7, 0x4a, 0xd1}, 30)) // goes beside the control field
	beside := 0
	for _, tt := range []struct {
		name string
		edit func(*wire.Frame) bool // whether there is something to edit
		ok   bool
	}{
		{"as it was", func(*wire.Frame) bool { return true }, true},
		{"control and a zero", func(f *wire.Frame) bool { f.Control = append(f.Control, 0); return true }, false},
		{"control and a byte", func(f *wire.Frame) bool { f.Control = append(f.Control, 0xff); return true }, false},
		{"control and more than is read ahead", func(f *wire.Frame) bool { f.Control = append(f.Control, make([]byte, 40)...); return true }, false},
		{"control less a byte", func(f *wire.Frame) bool { f.Control = f.Control[:len(f.Control)-1]; return true }, false},
		{"the last bit of control", func(f *wire.Frame) bool { f.Control[len(f.Control)-1] ^= 1; return true }, false},
		{"literals and a byte", func(f *wire.Frame) bool { f.Literals = append(f.Literals, 0); return f.Coding == 0 }, false},
		{"literals less a byte", func(f *wire.Frame) bool {
			n := len(f.Literals)
			f.Literals = f.Literals[:max(n-1, 0)]
			return n > 1
		}, false},
	} {
		for at := range 5 {
			p := newPair(t, Config{Compression: -1})
			for i, text := range []string{"one", "two", noise, noise + "more", "three"}[:at+1] {
				add(t, &p.ends[0].Merger, 0, data(1, text).Packet())
				f, _, err := wire.ParseFrame(p.ends[0].Merger.Flush(nil, 0, FlushEnd))
				if err != nil {
					t.Fatal(err)
				}
				beside += len(f.Literals)
				fails := i == at && tt.edit(&f) && !tt.ok
				if _, _, err = p.ends[1].Expander.Expand(wire.AppendFrame(nil, f)); (err != nil) != fails || fails && !errors.Is(err, ErrFrame) {
					t.Errorf("%s: frame %d: %v", tt.name, i+1, err)
				}
			}
		}
	}
	if beside == 0 {
		t.Error("no frame has literals")
	}
}

// Frames come one behind the other, and the packets of each are kept until the next.
func TestExpanderTakesOneFrameAtATime(t *testing.T) {
	p := newPair(t, Config{})
	m, x := &p.ends[0].Merger, &p.ends[1].Expander
	sent := [][]byte{ack(1, 5).Packet(), data(1, "alike").Packet(), broken(ack(3, 5))}
	var stream []byte
	for range 2 {
		for _, b := range sent {
			add(t, m, 0, b)
		}
		stream = m.Flush(stream, 0, FlushEnd)
	}
	for range 2 {
		packets, n, err := x.Expand(stream)
		if err != nil || !slices.EqualFunc(packets, sent, bytes.Equal) {
			t.Fatalf("%d packets, %v", len(packets), err)
		}
		for _, b := range packets {
			if cap(b) != len(b) {
				t.Errorf("a packet of %d bytes has room for %d", len(b), cap(b))
			}
		}
		stream = stream[n:]
	}
	if len(stream) != 0 {
		t.Errorf("%d bytes are left", len(stream))
	}
}

// A digest that is not that of the packets is told as what it is.
func TestDigestIsOfThePackets(t *testing.T) {
	p := newPair(t, Config{})
	add(t, &p.ends[0].Merger, 0, ack(1, 5).Packet())
	f, _, err := wire.ParseFrame(p.ends[0].Merger.Flush(nil, 0, FlushEnd))
	if err != nil {
		t.Fatal(err)
	}
	f.Digest ^= 1 << 31
	packets, n, err := p.ends[1].Expander.Expand(wire.AppendFrame(nil, f))
	if !errors.Is(err, ErrDigest) || !errors.Is(err, ErrFrame) || len(packets)+n != 0 {
		t.Errorf("%d packets, %d bytes, %v", len(packets), n, err)
	}
}

// The streams of the peer are told with where they are, those of TCP only.
func TestStreamsOfThePeer(t *testing.T) {
	p := newPair(t, Config{})
	s := data(1, "alike")
	other := ack(2, 5)
	for _, b := range [][]byte{s.Packet(), codectest.UDP(), other.Packet()} {
		p.add(0, 0, b)
		p.flush(0, 0)
	}
	type stream struct {
		key  parsers.FlowKey
		next uint32
	}
	var got []stream
	p.ends[1].Expander.Streams(func(key parsers.FlowKey, next uint32) { got = append(got, stream{key, next}) })
	want := []stream{{keyOf(t, s), s.Seq + uint32(len(s.Payload))}, {keyOf(t, other), other.Seq}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}
