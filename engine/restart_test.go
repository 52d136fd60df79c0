package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/engine/wire"
	"sheaf/netstack"
	"sheaf/parsers"
)

func flowOf(n int) parsers.FlowKey {
	return parsers.FlowKey{Src: [16]byte{10, 2, 0, 10}, Dst: [16]byte{10, 1, byte(n >> 16), 1}, SrcPort: 1883, DstPort: uint16(n), Proto: 6, Version: 4}
}

// lists returns what gives count flows, from the first on, each expecting next.
func lists(first, count int, next uint32) func(func(parsers.FlowKey, uint32)) {
	return func(yield func(parsers.FlowKey, uint32)) {
		for n := range count {
			yield(flowOf(first+n), next)
		}
	}
}

func TestStreams(t *testing.T) {
	first, second := wire.Hello{Instance: [8]byte{1}, Ends: true}, wire.Hello{Instance: [8]byte{2}, Ends: true}
	device := wire.Hello{Instance: [8]byte{2}}
	type epoch struct {
		hello wire.Hello
		over  int // flows that ended with the peer's last run
		list  func(func(parsers.FlowKey, uint32))
	}
	for _, tt := range []struct {
		name   string
		epochs []epoch
	}{
		{"the first handshake", []epoch{{first, 0, lists(1, 3, 7)}}},
		{"the same run", []epoch{{first, 0, lists(1, 3, 7)}, {first, 0, lists(1, 3, 8)}}},
		{"another run", []epoch{{first, 0, lists(1, 3, 7)}, {second, 3, lists(9, 1, 7)}, {first, 1, lists(1, 0, 0)}}},
		{"flows of an epoch before the last", []epoch{{first, 0, lists(1, 3, 7)}, {first, 0, lists(3, 2, 7)}, {second, 4, lists(1, 0, 0)}}},
		{"the peer had a device", []epoch{{device, 0, lists(1, 3, 7)}, {first, 0, lists(1, 0, 0)}}},
		{"the peer has a device now", []epoch{{first, 0, lists(1, 3, 7)}, {device, 3, lists(1, 3, 7)}, {first, 0, lists(1, 0, 0)}}},
		{"as many as are kept", []epoch{{first, 0, lists(0, maxStreams, 7)}, {second, maxStreams, lists(1, 0, 0)}}},
		{"one more", []epoch{{first, 0, lists(0, maxStreams+1, 7)}, {second, maxStreams, lists(1, 0, 0)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s streams
			for i, e := range tt.epochs {
				if got := len(s.begin(e.hello)); got != e.over {
					t.Errorf("epoch %d: %d flows over, want %d", i, got, e.over)
				}
				s.keep(e.list)
			}
		})
	}
}

// Past the bound the flows of the newest epoch are the ones that stay, and a flow's
// number is that of its newest epoch.
func TestStreamsKeepTheNewest(t *testing.T) {
	var s streams
	s.begin(wire.Hello{Instance: [8]byte{1}, Ends: true})
	s.keep(lists(0, maxStreams, 7))
	s.keep(lists(maxStreams-1, 10, 8))
	over := s.begin(wire.Hello{Instance: [8]byte{2}, Ends: true})
	if len(over) != maxStreams {
		t.Errorf("%d flows", len(over))
	}
	for n := maxStreams - 1; n < maxStreams+9; n++ {
		if over[flowOf(n)] != 8 {
			t.Errorf("flow %d expects %d", n, over[flowOf(n)])
		}
	}
}

// A peer that began anew has the connections reset that ended with it: in the
// peer's name, with the number that the host expects next. One that has a device,
// and so did not end them, has none.
func TestPeerBeganAnew(t *testing.T) {
	for _, ends := range []bool{true, false} {
		t.Run(fmt.Sprint("ends ", ends), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				defer b.stop()
				got := make(chan []byte, 10)
				b.ends[0].accept = func(packets [][]byte) {
					for _, p := range packets {
						got <- slices.Clone(p)
					}
				}
				run := func(instance byte) [2]*wireEnd {
					synctest.Wait()
					b.ends[1].self = ownHello([8]byte{instance}, ends)
					w := wirePair(time.Millisecond, 1<<16)
					b.next[0] <- w[0]
					b.next[1] <- w[1]
					time.Sleep(time.Second)
					return w
				}
				w := run(1)
				segment := tcpSegment(4711, "hello")
				b.ends[1].queue.put(time.Since(b.begin), segment)
				if p := <-got; !bytes.Equal(p, segment) {
					t.Fatalf("% x", p)
				}
				w[0].Reset(nil)
				w = run(1)
				if len(got) != 0 {
					t.Fatalf("a reset for an epoch that ended: % x", <-got)
				}
				w[0].Reset(nil)
				run(2)
				if !ends {
					if len(got) != 0 {
						t.Fatalf("a connection that did not end is reset: % x", <-got)
					}
					return
				}
				want := netstack.AppendReset(nil, netip.MustParseAddrPort("10.2.0.10:1883"), netip.MustParseAddrPort("10.1.0.1:40000"), 4716)
				if p := <-got; !bytes.Equal(p, want) || len(got) != 0 {
					t.Errorf("% x, want the reset % x; %d more", p, want, len(got))
				}
			})
		})
	}
}

// tcpSegment returns a segment of 10.2.0.10:1883 to 10.1.0.1:40000.
func tcpSegment(seq uint32, payload string) []byte {
	p := make([]byte, 40, 40+len(payload))
	p[0], p[8], p[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(p[2:], uint16(40+len(payload)))
	copy(p[12:], []byte{10, 2, 0, 10, 10, 1, 0, 1})
	binary.BigEndian.PutUint16(p[20:], 1883)
	binary.BigEndian.PutUint16(p[22:], 40000)
	binary.BigEndian.PutUint32(p[24:], seq)
	p[32], p[33] = 5<<4, 0x18
	return slices.Concat(p, []byte(payload))
}
