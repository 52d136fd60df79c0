package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
)

func TestAllocProbe(t *testing.T) {
	name := os.Getenv("ALLOC")
	if name == "" {
		t.Skip()
	}
	tr, err := loadTrace("../../../shared/captures/full/" + name + ".pcap.gz")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSchedule(tr.packets)
	if err != nil {
		t.Fatal(err)
	}
	ends, _ := newLanes()
	started := false
	cl := func() uint64 { return 0 }
	n := 0
	src := func(yield func(packet) bool) {
		for p := range tr.packets {
			n++
			if !started && n > tr.warmUp() {
				started = true
				dump("/tmp/b/alloc0.prof")
			}
			if !yield(p) {
				return
			}
		}
	}
	if _, err := s.runLanes(ends, src, tr.warmUp(), cl); err != nil {
		t.Fatal(err)
	}
	dump("/tmp/b/alloc.prof")
}

func dump(name string) {
	runtime.GC()
	runtime.GC()
	f, _ := os.Create(name)
	pprof.Lookup("allocs").WriteTo(f, 0)
	f.Close()
}
