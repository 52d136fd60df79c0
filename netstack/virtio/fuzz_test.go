package virtio_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// A hostileLimit is far more than a program takes, and means that a step does not end.
const hostileLimit = time.Minute

// hostileSeeds are programs that get far, by what they are about.
var hostileSeeds = map[string][]byte{
	"taken, published, waited for": {
		0x12, 0x7f,
		stepDescriptor, 0, 0, 0, 40, next, 1,
		stepDescriptor, 1, 0, 100, 30, 0, 0,
		stepWrite, 0, 5, 77,
		stepAvail, 0xff, 0, stepIndex, 1,
		stepTake, 12, 60, stepTake, 12, 20, stepPublish, stepArm,
		stepEvent, 0, 0, stepAvail, 0, 1, stepIndex, 1,
		stepTake, 12, 1, stepPublish, stepDisarm,
	},
	"given, merged, too long": {
		0x03, 0x80,
		stepDescriptor, 0, 0, 0, 40, write | next, 2,
		stepDescriptor, 1, 11, 0, 90, write, 0,
		stepDescriptor, 2, 0, 100, 30, write, 0,
		stepAvail, 0, 0, stepAvail, 1, 1, stepAvail, 2, 1, stepIndex, 2,
		stepRoom, stepGive, 12, 28, stepGive, 12, 160, stepMerged, 60, stepMerged, 160,
		stepIndex, 1, stepMerged, 80, stepPublish, stepArm,
	},
	"indirect, across regions": {
		0x0b, 0x80,
		stepDescriptor, 0, 0, 0, 4, indirect, 0,
		stepTable, 5, 256 - 8, 40, 0, 0, 0, 0,
		stepTable, 0, 0, 5, 256 - 20, 40, next, 1,
		stepTable, 0, 16, 7, 0, 40, 0, 0,
		stepAvail, 0, 0, stepIndex, 1, stepTake, 4, 160, stepPublish,
	},
	"a loop, and once more": {
		0x0a, 0x80,
		stepDescriptor, 0, 0, 0, 40, next, 0,
		stepAvail, 0, 0, stepIndex, 1, stepTake, 4, 160, stepTake, 4, 160, stepArm,
		stepDescriptor, 0, 0, 0, 40, 0, 0, stepRestart, stepTake, 4, 160,
	},
	"a table that is the ring's own": {
		0x0b, 0x80,
		stepDescriptor, 0, 1, 16, 4, indirect, 0,
		stepDescriptor, 1, 3, 0, 16, write | next, 1,
		stepDescriptor, 2, 1, 0, 40, write, 0,
		stepAvail, 0, 0, stepIndex, 1, stepRoom, stepMerged, 4, stepPublish, stepRoom,
	},
	"past the end, in what is left out": {
		0x02, 0x80,
		stepOffer, 0, 1, 0, 0, 4, 8, 256 - 20, 20, stepTake, 4, 1, stepPublish,
		stepRestart, stepOffer, 0, 1, 0, 0, 4, 8, 256 - 20, 21, stepTake, 4, 1,
	},
	"of the wrong direction": {
		0x0a, 0x80,
		stepOffer, 1, 0, 0, 0, 4, stepTake, 4, 1,
		stepRestart, stepRoom, stepOffer, 2, 1, 0, 0, 4, 0, 8, 4, stepRestart, stepGive, 1, 1,
	},
	"given over its own descriptors": {
		0x0a, 0x80,
		stepOffer, 1, 1, 1, 24, 16, 0, 8, 30, stepGive, 12, 24, stepGive, 12, 24,
	},
	"rewritten meanwhile": {
		0x0b, 0x80,
		stepDescriptor, 0, 0, 0, 40, next, 1, stepDescriptor, 1, 5, 0, 20, 0, 0,
		stepAvail, 0, 0, stepAvail, 1, 0, stepAvail, 2, 0, stepIndex, 3,
		stepScribble, 1, 8, 1, 0, 0, 10, 0, 0, 1, 0, 0, 0, next, 1,
		stepTake, 12, 24, stepTake, 12, 24, stepTake, 12, 24, stepPublish, stepQuiet, stepRoom,
	},
}

// FuzzHostileRing runs a guest that breaks each rule there is, also at the very time that
// the device looks: nothing panics, nothing outside the guest's memory is touched, nothing
// in it is written that the guest has not lent, and each step ends.
func FuzzHostileRing(f *testing.F) {
	for _, program := range hostileSeeds {
		f.Add(program)
	}
	m := hostileMemory(f)
	f.Fuzz(func(t *testing.T, program []byte) {
		late := time.AfterFunc(hostileLimit, func() { panic("a step does not end") })
		defer late.Stop()
		runHostile(t, m, program)
	})
}

// The seeds reach what they are about.
func TestHostileSeeds(t *testing.T) {
	m := hostileMemory(t)
	for name, program := range hostileSeeds {
		t.Run(name, func(t *testing.T) { runHostile(t, m, program) })
	}
}

// Hostile guests leave nothing behind: a device of theirs is as large as any other.
func TestHostileRingsDoNotGrow(t *testing.T) {
	m := hostileMemory(t)
	random := rand.New(rand.NewPCG(1, 2))
	run := func(n int) (heap uint64) {
		for range n {
			program := make([]byte, 400)
			for i := range program {
				program[i] = byte(random.Uint32())
			}
			runHostile(t, m, program)
		}
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := run(100)
	if after := run(1000); after > before+1<<20 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}
