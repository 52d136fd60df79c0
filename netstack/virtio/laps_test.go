package virtio_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// Rings of each size go round more than once, full each time and over the index's end at
// 65,535, with each combination of features, in both directions.
func TestLaps(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8, 256, virtio.MaxSize} {
		for combination := range uint64(8) {
			features := uint64(virtio.FeatureVersion1)
			for i, bit := range []uint64{virtio.FeatureEventIndex, virtio.FeatureIndirect, virtio.FeatureMergeable} {
				features |= bit * (combination >> i & 1)
			}
			t.Run(fmt.Sprintf("size %d, features %#x", size, features), func(t *testing.T) {
				for _, way := range []func(*testing.T, *virtiotest.Driver, *virtio.Queue){sendLaps, receiveLaps} {
					m := newMemory(t, 32<<20)
					d, err := virtiotest.NewDriver(m, size, 32, features)
					if err != nil {
						t.Fatal(err)
					}
					d.StartAt(uint16(-2 * size))
					way(t, d, newQueue(t, d.Ring))
				}
			})
		}
	}
}

// laps is how often a ring goes round.
const laps = 3

func sendLaps(t *testing.T, d *virtiotest.Driver, q *virtio.Queue) {
	var in, header, payload [8]byte
	sent := uint64(0)
	for lap, taken := 0, uint64(0); lap < laps; lap++ {
		for ; d.Free() > 0; sent++ {
			binary.LittleEndian.PutUint64(in[:], sent)
			d.Send(in[:])
		}
		d.Kick()
		for ; ; taken++ {
			n, ok, err := q.Take(header[:4], payload[:4])
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			copy(header[4:], payload[:4])
			if got := binary.LittleEndian.Uint64(header[:]); n != 8 || got != taken {
				t.Fatalf("%d bytes, message %d instead of %d", n, got, taken)
			}
		}
		if !q.Publish() && lap == 0 {
			t.Fatal("no interrupt")
		}
		if taken != sent {
			t.Fatalf("%d messages of %d", taken, sent)
		}
		reapAll(t, d)
	}
}

func receiveLaps(t *testing.T, d *virtiotest.Driver, q *virtio.Queue) {
	var header [virtio.NetHeaderLen]byte
	var in [8]byte
	given := uint64(0)
	for range laps {
		for d.Post(12, 20) || d.Post(32) {
		}
		d.Kick()
		from := given
		for ; ; given++ {
			binary.LittleEndian.PutUint64(in[:], given)
			ok, err := q.GiveMerged(&header, in[:])
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
		}
		q.Publish()
		for ; from < given; from++ {
			binary.LittleEndian.PutUint64(in[:], from)
			if p, ok, err := d.ReapFrame(); !ok || err != nil || !bytes.Equal(p, in[:]) {
				t.Fatalf("% x, %v instead of frame %d", p, err, from)
			}
		}
		reapAll(t, d)
	}
}

// reapAll takes back what there is, after which all descriptors are free.
func reapAll(t *testing.T, d *virtiotest.Driver) {
	for {
		_, ok, err := d.Reap()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
	}
	if d.Free() != d.Config.Size {
		t.Fatalf("%d descriptors of %d are free", d.Free(), d.Config.Size)
	}
}
