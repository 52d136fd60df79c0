package virtio_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// Of a model: bytes of a descriptor's slot, the most of a frame, which may need a few, and
// the most buffers at once, for the sake of time: TestLaps fills the greatest ring.
const (
	modelSlot  = 64
	modelFrame = 300
	modelFill  = 300
)

// What the driver puts in comes out of the device, and the other way, in order and byte
// for byte, whatever is called when; nothing else in the guest's memory changes; who
// may sleep is woken, and who need not be is not.
func TestModel(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8, 256, virtio.MaxSize} {
		t.Run(fmt.Sprint("size ", size), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := newModel(t, size)
				if rapid.Bool().Draw(t, "to the guest") {
					t.Repeat(m.with(map[string]func(*rapid.T){"post": m.post, "fill": m.postAll, "give": m.give, "give all": m.giveAll, "reap": m.reapFrame, "reap all": m.reapFrames}))
				} else {
					t.Repeat(m.with(map[string]func(*rapid.T){"send": m.send, "fill": m.sendAll, "take": m.take, "take all": m.takeAll, "reap": m.reap, "reap all": m.reapAll}))
				}
			})
		})
	}
}

// A model is what is to be expected of a driver and a device.
type model struct {
	memory *virtiotest.Memory
	d      *virtiotest.Driver
	q      *virtio.Queue
	random *rand.Rand
	events bool // FeatureEventIndex
	merge  bool // FeatureMergeable
	before snapshot

	// Buffers from the oldest on: what is in them, or zeros for their room.
	hidden [][]byte // not shown to the device
	shown  [][]byte // shown and not taken or given
	done   [][]byte // taken or given, and not published
	used   int      // published and not reaped
	given  []frame  // of done
	frames []frame  // published and not reaped

	told           bool // the device has published something
	dry            int  // how many were shown when the device last had too few of them, or -1
	device, driver sleeper
}

// A frame is one for the guest, in so many buffers.
type frame struct {
	bytes   []byte
	buffers int
}

// A sleeper is one side as the other's notifications find it.
type sleeper struct {
	asleep   bool // it waits, and the other side has done nothing yet
	disarmed bool // it has said that it need not be notified, without FeatureEventIndex
	armed    bool // it has asked once, and nothing has passed since
	known    bool // it has asked at all: what is in fresh memory says nothing
	passed   int  // buffers since it asked
}

func (s *sleeper) arm(more bool) { *s = sleeper{asleep: !more, armed: true, known: true} }

func (s *sleeper) disarm() { s.asleep, s.disarmed = false, true }

// progress checks whether the other side, which has made progress, was right to notify.
// An index that the other side has long passed comes round again after 65,536 buffers.
func (s *sleeper) progress(t *rapid.T, n int, events, notified bool) {
	s.passed += n
	switch {
	case s.asleep && !notified:
		t.Fatal("a wakeup is lost")
	case s.known && events && notified && !s.armed && s.passed < 65536:
		t.Fatal("notified twice")
	case s.known && !events && notified && s.disarmed:
		t.Fatal("notified though disarmed")
	}
	s.asleep, s.armed = false, false
}

func newModel(t *rapid.T, size int) *model {
	features := uint64(virtio.FeatureVersion1)
	for _, bit := range []uint64{virtio.FeatureEventIndex, virtio.FeatureIndirect, virtio.FeatureMergeable} {
		if rapid.Bool().Draw(t, fmt.Sprintf("feature %#x", bit)) {
			features |= bit
		}
	}
	pages := func(n int) int { return (n/page + 1) * page }
	memory, err := virtiotest.NewMemory(pages(26*size+64), pages(0), pages(size*(modelSlot+virtiotest.MaxParts*virtiotest.DescLen)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	// An available ring need not be aligned to the words that its fields are loaded with.
	ring, err := virtiotest.NewRing(memory, size, features)
	if err != nil {
		t.Fatal(err)
	}
	ring.Config.Avail += uint64(rapid.SampledFrom([]int{0, 2}).Draw(t, "skew"))
	ring.Config.Used += 4
	if _, err := memory.Alloc(8, 1); err != nil {
		t.Fatal(err)
	}
	d, err := ring.NewDriver(modelSlot)
	if err != nil {
		t.Fatal(err)
	}
	d.StartAt(rapid.SampledFrom([]uint16{0, 65535, 65530, 32767, 65280}).Draw(t, "start"))
	device, err := memory.Device()
	if err != nil {
		t.Fatal(err)
	}
	q, err := virtio.NewQueue(device, d.Config)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{memory: memory, d: d, q: q, dry: -1, random: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "bytes"), 0))}
	m.events, m.merge = features&virtio.FeatureEventIndex != 0, features&virtio.FeatureMergeable != 0
	q.Disarm() // one who sleeps must have said so
	return m
}

// with adds what is done in either direction.
func (m *model) with(actions map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	for name, f := range map[string]func(*rapid.T){
		"kick": m.kick, "publish": m.publish,
		"device waits": m.deviceWaits, "driver waits": m.driverWaits,
		"device works": func(*rapid.T) { m.q.Disarm(); m.device.disarm() },
		"driver works": func(*rapid.T) { m.d.Disarm(); m.driver.disarm() },
		"restart":      m.restart,
	} {
		actions[name] = f
	}
	return actions
}

func (m *model) kick(t *rapid.T) {
	notified := m.d.Kick()
	if len(m.hidden) == 0 {
		if notified {
			t.Fatal("a kick for nothing")
		}
		return
	}
	n := len(m.hidden)
	m.shown, m.hidden = append(m.shown, m.hidden...), nil
	m.device.progress(t, n, m.events, notified)
}

func (m *model) publish(t *rapid.T) {
	m.watch()
	notified := m.q.Publish()
	m.confined(t, nil)
	n := len(m.done)
	if n > 0 && !m.told { // the first interrupt may be more than the driver asked for
		m.told, m.driver.known = true, false
	}
	if n == 0 {
		if notified {
			t.Fatal("an interrupt for nothing")
		}
		return
	}
	m.used, m.done = m.used+n, nil
	m.frames, m.given = append(m.frames, m.given...), nil
	m.driver.progress(t, n, m.events, notified)
}

func (m *model) deviceWaits(t *rapid.T) {
	m.watch()
	more := m.q.Arm()
	m.confined(t, nil)
	if more != (m.dry != len(m.shown)) {
		t.Fatalf("there is more: %v; %d shown, %d at the last look", more, len(m.shown), m.dry)
	}
	m.device.arm(more)
}

func (m *model) driverWaits(t *rapid.T) {
	more := m.d.Arm()
	if more != (m.used > 0) {
		t.Fatal("the driver waits though there is something")
	}
	m.driver.arm(more)
}

// restart is the device's, which dies without having published what it has finished. The
// next one finishes that again.
func (m *model) restart(t *rapid.T) {
	device, err := m.memory.Device()
	if err != nil {
		t.Fatal(err)
	}
	if m.q, err = virtio.NewQueue(device, m.d.Config); err != nil {
		t.Fatal(err)
	}
	m.shown, m.done, m.given, m.dry = append(m.done, m.shown...), nil, nil, -1
	m.q.Disarm()
	m.device = sleeper{disarmed: true}
	m.told = false
}

// watch and confined are around what the device does: it has written to nothing but its own
// part of the ring and these segments. In large rings that takes too long to tell.
func (m *model) watch() {
	if m.d.Config.Size <= 8 {
		m.before.take(m.d.Ring)
	}
}

func (m *model) confined(t *rapid.T, segments []segment) {
	if m.d.Config.Size > 8 {
		return
	}
	if addr, ok := m.before.strayed(segments); ok {
		t.Fatalf("the device wrote at %#x", addr)
	}
}
