package virtio_test

import (
	"testing"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// A small publish with its headers, as the guests of this gateway send them.
const benchFrame = 160

// A batch of frames between two looks at the ring, as many as a NIC's port takes at once.
const benchBatch = 64

// newPair returns both sides of a ring in memory of its own.
func newPair(t testing.TB, size, slot int, features uint64) (*virtiotest.Driver, *virtio.Queue) {
	t.Helper()
	m := newMemory(t, 8<<20)
	d, err := virtiotest.NewDriver(m, size, slot, features)
	if err != nil {
		t.Fatal(err)
	}
	return d, newQueue(t, d.Ring)
}

// newMemory returns memory that lasts as long as the test.
func newMemory(t testing.TB, sizes ...int) *virtiotest.Memory {
	t.Helper()
	m, err := virtiotest.NewMemory(sizes...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// newQueue returns the device's side of a ring.
func newQueue(t testing.TB, r virtiotest.Ring) *virtio.Queue {
	t.Helper()
	m, err := r.Memory.Device()
	if err != nil {
		t.Fatal(err)
	}
	q, err := virtio.NewQueue(m, r.Config)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// send brings n frames from the driver to the device, in one batch.
func send(t testing.TB, d *virtiotest.Driver, q *virtio.Queue, n int) {
	var header [virtio.NetHeaderLen]byte
	var frame, got [benchFrame]byte
	parts := [2][]byte{header[:], frame[:]}
	for range n {
		if !d.Send(parts[:]...) {
			t.Fatal("no room in the ring")
		}
	}
	d.Kick()
	for range n {
		if size, ok, err := q.Take(header[:], got[:]); err != nil || !ok || size != len(header)+len(got) {
			t.Fatal(size, ok, err)
		}
	}
	q.Publish()
	q.Arm()
	for range n {
		if _, ok, err := d.Reap(); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
}

// receive brings n frames from the device to the driver, in one batch.
func receive(t testing.TB, d *virtiotest.Driver, q *virtio.Queue, n int) {
	var header [virtio.NetHeaderLen]byte
	var frame [benchFrame]byte
	for range n {
		if !d.Post(2048) {
			t.Fatal("no room in the ring")
		}
	}
	d.Kick()
	for range n {
		if ok, err := q.GiveMerged(&header, frame[:]); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	q.Publish()
	q.Arm()
	for range n {
		if p, ok, err := d.ReapFrame(); !ok || err != nil || len(p) != benchFrame {
			t.Fatal(len(p), ok, err)
		}
	}
}

// BenchmarkRings is a frame through driver and device, both of them on one core.
func BenchmarkRings(b *testing.B) {
	features := uint64(virtio.FeaturesOfRings | virtio.FeatureMergeable)
	for name, way := range map[string]func(testing.TB, *virtiotest.Driver, *virtio.Queue, int){"take": send, "give": receive} {
		for kind, features := range map[string]uint64{"direct": features &^ virtio.FeatureIndirect, "indirect": features} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				d, q := newPair(b, 256, 2048, features)
				b.SetBytes(benchFrame)
				b.ReportAllocs()
				for left := b.N; left > 0; left -= benchBatch {
					way(b, d, q, min(left, benchBatch))
				}
			})
		}
	}
}

// No frame allocates, in neither direction.
func TestFramesDoNotAllocate(t *testing.T) {
	features := uint64(virtio.FeaturesOfRings | virtio.FeatureMergeable)
	for name, way := range map[string]func(testing.TB, *virtiotest.Driver, *virtio.Queue, int){"take": send, "give": receive} {
		d, q := newPair(t, 256, 2048, features)
		if n := testing.AllocsPerRun(100, func() { way(t, d, q, benchBatch) }); n != 0 {
			t.Errorf("%s: %v allocations in %d frames", name, n, benchBatch)
		}
	}
}
