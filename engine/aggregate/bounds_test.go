package aggregate

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

// narrow makes the reader of what end 0 writes hold to other limits of a frame than
// the writer does.
func (p *pair) narrow(packets, bytes int) *Expander {
	x := &p.ends[1].Expander
	x.limits.Packets, x.limits.Bytes = uint32(packets), uint32(bytes)
	return x
}

// A reader takes a frame of as many packets and bytes as its limits allow and
// none of more, whether they are a group, groups of one or go as they are. It
// stops at the first that is too much.
func TestExpanderBoundsFrames(t *testing.T) {
	const n = 20
	for name, packet := range map[string]func(client int) []byte{
		"a group":     func(client int) []byte { return data(client, "alike").packet() },
		"alone":       func(client int) []byte { return data(client, fmt.Sprintf("unlike %02d", client)).packet() },
		"as they are": func(client int) []byte { return broken(data(client, "alike")) },
	} {
		size := len(packet(0))
		for _, tt := range []struct {
			what           string
			packets, bytes int
			stop           int // after how many packets; 0 for not at all
		}{
			{"at both limits", n, n * size, 0},
			{"a packet too many", n - 1, n * size, n},
			{"one packet", 1, n * size, 2},
			{"a byte too many", n, n*size - 1, n},
			{"room for less than one", n, size - 1, 1},
		} {
			t.Run(name+", "+tt.what, func(t *testing.T) {
				p := newPair(t, Config{})
				x := p.narrow(tt.packets, tt.bytes)
				for client := range n {
					p.add(0, 0, packet(client))
				}
				packets, _, err := x.Expand(p.ends[0].Merger.Flush(nil, 0, FlushEnd))
				if tt.stop == 0 {
					if err != nil || len(packets) != n {
						t.Fatalf("%d packets, %v", len(packets), err)
					}
					return
				}
				if !errors.Is(err, ErrFrame) || len(packets) != 0 {
					t.Errorf("%d packets, %v", len(packets), err)
				}
				if len(x.ends) > tt.stop {
					t.Errorf("%d packets were built, %d are too many", len(x.ends), tt.stop)
				}
			})
		}
	}
}

// A frame with anything behind its decisions, or with less, is none.
func TestFramesEndWithTheirDecisions(t *testing.T) {
	noise := string(bytes.Repeat([]byte{0x9c, 0x13, 0xe7, 0x4a, 0xd1}, 30)) // goes beside the control field
	frames := func(p *pair) (out [][]byte) {
		for _, text := range []string{"one", "two", noise, noise + "more", "three"} {
			p.ends[0].Merger.Add(0, data(1, text).packet())
			out = append(out, p.ends[0].Merger.Flush(nil, 0, FlushEnd))
		}
		return out
	}
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
			if len(f.Literals) < 2 {
				return false
			}
			f.Literals = f.Literals[:len(f.Literals)-1]
			return true
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for at := range 5 {
				p := newPair(t, Config{Compression: -1})
				for i, frame := range frames(p)[:at+1] {
					edited := false
					if i == at {
						f, _, err := wire.ParseFrame(frame)
						if err != nil {
							t.Fatal(err)
						}
						beside += len(f.Literals)
						f.Control, f.Literals = bytes.Clone(f.Control), bytes.Clone(f.Literals)
						if edited = tt.edit(&f); edited {
							frame = wire.AppendFrame(nil, f)
						}
					}
					_, _, err := p.ends[1].Expander.Expand(frame)
					if want := edited && !tt.ok; (err != nil) != want || want && !errors.Is(err, ErrFrame) {
						t.Errorf("frame %d: %v", i+1, err)
					}
				}
			}
		})
	}
	if beside == 0 {
		t.Error("no frame has literals")
	}
}

// rebuild makes a layout of a header as a peer may send it, and builds the header
// of a packet from it. It reports whether the layout is valid.
func rebuild(h []byte, ip int, proto uint8) (*layout, bool) {
	l, ok := newLayout(h, ip, proto)
	if !ok {
		return nil, false
	}
	key := parsers.FlowKey{Version: h[0] >> 4, Proto: proto, SrcPort: 1, DstPort: 2}
	f := fields{layout: l, sack: &sack{n: l.blocks}, opaque: make([]byte, l.opaque), tsval: 0x01020304, tsecr: 0x05060708}
	appendHeader(nil, &key, &f, flagACK, 9, checksum.Checksum(make([]byte, 9), 0))
	return l, true
}

// Whatever lengths a peer's layout gives to TCP options, what it makes of them
// stays inside the header.
func TestOptionLengthsOfAPeer(t *testing.T) {
	for _, kind := range []byte{2, 3, optionSACK, optionStamp, 19, 254} {
		for n := range 256 {
			for room := 2; room <= 60; room++ { // from the option to the end of the header
				for _, before := range []int{0, 1, 3} {
					h := append(segment{}.packet()[:40], bytes.Repeat([]byte{optionNop}, before)...)
					h = append(h, kind, byte(n))
					h = append(h, make([]byte, room-2)...)
					l, ok := rebuild(h, 20, protoTCP)
					if !ok {
						t.Fatalf("option %d of %d bytes in %d: no layout", kind, n, room)
					}
					if stamped := kind == optionStamp && n == 10 && room >= n; stamped != (l.stamp == 42+before) {
						t.Fatalf("option %d of %d bytes in %d: timestamps at %d", kind, n, room, l.stamp)
					}
					if sacked := kind == optionSACK && n >= 10 && n <= 34 && n%8 == 2 && room >= n; sacked != (l.sack == 42+before) {
						t.Fatalf("option %d of %d bytes in %d: SACK blocks at %d", kind, n, room, l.sack)
					}
					if r := l.runs; len(r) > 0 && int(r[0].to) > len(h) {
						t.Fatalf("option %d of %d bytes in %d: bytes to %d of %d", kind, n, room, r[0].to, len(h))
					}
				}
			}
		}
	}
}

// A peer's layout has the headers that its kind has.
func TestLayoutsOfAPeer(t *testing.T) {
	for proto, valid := range map[uint8]func(transport int) bool{
		protoTCP:  func(n int) bool { return n == 0 || n >= 20 },
		protoUDP:  func(n int) bool { return n == 0 || n == 8 },
		protoICMP: func(n int) bool { return n == 0 },
	} {
		for version, fixed := range map[byte]int{4: 20, 6: 40, 5: 256} {
			for n := 20; n <= maxHeader; n++ {
				for ip := range n + 2 {
					h := make([]byte, n)
					h[0] = version << 4
					want := ip >= fixed && ip <= n && valid(n-ip)
					if _, ok := rebuild(h, ip, proto); ok != want {
						t.Fatalf("IPv%d, protocol %d, %d bytes, %d of them IP: valid %v", version, proto, n, ip, ok)
					}
				}
			}
		}
	}
}

// FuzzLayout: a layout of a peer is invalid, or a header can be built from it.
func FuzzLayout(f *testing.F) {
	for _, b := range bases() {
		ip := 20
		if b[0]>>4 == 6 {
			ip = 40
		}
		for _, n := range []int{20, 28, 40, 52, 60, 72} {
			f.Add(b[:min(n, len(b))], ip, b[9])
		}
	}
	f.Add(append(segment{}.packet()[:40], 1, 1, 8, 200, 0, 0, 0, 0), 20, uint8(protoTCP))
	f.Fuzz(func(t *testing.T, h []byte, ip int, proto uint8) {
		if len(h) < 20 || len(h) > maxHeader { // codeLayout refuses these
			return
		}
		l, ok := rebuild(h, ip, proto)
		if !ok {
			return
		}
		if l.stamp != 0 && (l.stamp < l.ip+20 || l.stamp+8 > len(h)) || l.opaque > len(h)-20 {
			t.Fatalf("timestamps at %d, %d bytes in runs, of %d with %d of IP", l.stamp, l.opaque, len(h), l.ip)
		}
	})
}
