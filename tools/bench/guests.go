package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sheaf/netstack/link"
)

// The targets of the ways between a guest and the gateway.
const (
	targetRings  = 1500 // ns for a frame through the rings, driver's and device's work together
	targetStream = 3    // how many times as many frames as through a stream
)

const (
	guestFrame = 160 // bytes: a short publish with its headers
	guestBatch = 64  // frames at once, as many as each link reads
)

// A Guest is what frames take on one way between a guest and the gateway, in nanoseconds
// and allocations for each, where one core does the work of both ends.
type Guest struct {
	Name   string     `json:"name"`
	Frames int        `json:"frames"` // measured in a pass, each way
	Passes int        `json:"passes"`
	Time   [2]Spread  `json:"ns"` // up, from the guest, and down
	Allocs [2]float64 `json:"allocs"`
}

// A guestWay brings guestBatch frames from a guest to the gateway, up, or down.
type guestWay interface {
	carry(dir int) error
	close() error
}

// guestWays are the ways: the first has targets, one of them beside the last.
var guestWays = []struct {
	name string
	open func(path string) (guestWay, error)
}{
	{"rings", newRingWay},
	{"vhost-user, rings and eventfds", newVhostWay},
	{"stream", newStreamWay},
}

// measureGuests measures the ways in turn, so that the machine's other work is in all.
func measureGuests(o options) ([]Guest, error) {
	passes, batches := 9, 500
	if o.short {
		passes, batches = 3, 100
	}
	if o.passes > 0 {
		passes = o.passes
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	all := make([]Guest, len(guestWays))
	ways := make([]guestWay, len(guestWays))
	times := make([][2][]float64, len(guestWays))
	for i, w := range guestWays {
		if ways[i], err = w.open(filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		defer ways[i].close()
		all[i] = Guest{Name: w.name, Frames: batches * guestBatch, Passes: passes}
	}
	for pass := range passes + 1 { // the first is a warm-up
		for i := range all {
			for d := range 2 {
				each, err := all[i].pass(ways[i], d, batches, clock())
				if err != nil {
					return nil, fmt.Errorf("%s: %w", all[i].Name, err)
				}
				if pass > 0 {
					times[i][d] = append(times[i][d], each)
				}
			}
		}
	}
	for i := range all {
		for d := range 2 {
			all[i].Time[d] = spread(times[i][d])
			if all[i].Allocs[d], err = all[i].pass(ways[i], d, batches, mallocs()); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// pass returns what a gauge shows for each frame.
func (g *Guest) pass(w guestWay, dir, batches int, gauge gauge) (float64, error) {
	start := gauge()
	for range batches {
		if err := w.carry(dir); err != nil {
			return 0, err
		}
	}
	return float64(gauge()-start) / float64(batches*guestBatch), nil
}

// A hypervisor is a guest's end of a link, for a batch of frames.
type hypervisor interface {
	send() error
	receive() error
	close()
}

// A linkWay leads over a Link.
type linkWay struct {
	link   link.Link
	guest  hypervisor
	frames [][]byte
	bufs   [][]byte
	sizes  []int
}

func newLinkWay(l link.Link, guest hypervisor) *linkWay {
	w := &linkWay{link: l, guest: guest, sizes: make([]int, l.BatchSize())}
	for range w.sizes {
		w.bufs = append(w.bufs, make([]byte, link.MaxFrame))
	}
	for range guestBatch {
		w.frames = append(w.frames, make([]byte, guestFrame))
	}
	return w
}

func (w *linkWay) carry(dir int) error {
	if dir == down {
		return errors.Join(w.link.Write(w.frames), w.guest.receive())
	}
	if err := w.guest.send(); err != nil {
		return err
	}
	for got := 0; got < guestBatch; {
		n, err := w.link.Read(w.bufs, w.sizes)
		if err != nil {
			return err
		}
		got += n
	}
	return nil
}

func (w *linkWay) close() error {
	w.guest.close()
	return w.link.Close()
}

func guestTable(all []Guest) *table {
	first, last := &all[0], &all[len(all)-1]
	t := &table{
		title: fmt.Sprintf("guests: frames of %d bytes, %d at once, one core for both ends, %s each way, %d passes",
			guestFrame, guestBatch, grouped(first.Frames), first.Passes),
		heading: []string{"", "up ns/frame", "min", "allocs", "down ns/frame", "min", "allocs", "target", ""},
	}
	for i := range all {
		g := &all[i]
		target, met := "", ""
		if i == 0 {
			target, met = fmt.Sprintf("%d ns, 0 allocs", targetRings), verdict(g.fast() && g.allocates() == "")
		}
		t.add(g.Name, fmt.Sprintf("%.0f", g.Time[up].Median), fmt.Sprintf("%.0f", g.Time[up].Min), fmt.Sprintf("%.4f", g.Allocs[up]),
			fmt.Sprintf("%.0f", g.Time[down].Median), fmt.Sprintf("%.0f", g.Time[down].Min), fmt.Sprintf("%.4f", g.Allocs[down]), target, met)
	}
	times := func(d int) string { return fmt.Sprintf("%.1f", last.Time[d].Median/first.Time[d].Median) }
	t.add(last.Name+" / "+first.Name, times(up), "", "", times(down), "", "", fmt.Sprintf("%.1f both ways, from %d", first.times(last), targetStream), verdict(first.ahead(last)))
	return t
}

func (g *Guest) fast() bool {
	return g.Time[up].Median <= targetRings && g.Time[down].Median <= targetRings
}

// allocates says where there are allocations.
func (g *Guest) allocates() string {
	for d, n := range g.Allocs {
		if n >= targetAllocs {
			return fmt.Sprintf("%s allocate %.4f objects a frame %s, target 0", g.Name, n, [...]string{up: "up", down: "down"}[d])
		}
	}
	return ""
}

// times returns how many times as long frames both ways together take by other.
func (g *Guest) times(other *Guest) float64 {
	return (other.Time[up].Median + other.Time[down].Median) / (g.Time[up].Median + g.Time[down].Median)
}

func (g *Guest) ahead(other *Guest) bool { return g.times(other) >= targetStream }

// missedGuests returns the targets missed, as Speed's missed.
func missedGuests(all []Guest) (hard, soft []string) {
	if len(all) == 0 {
		return nil, nil
	}
	first, last := &all[0], &all[len(all)-1]
	if s := first.allocates(); s != "" {
		hard = append(hard, s)
	}
	if !first.fast() {
		soft = append(soft, fmt.Sprintf("%s take %.0f ns a frame up and %.0f down, target %d ns", first.Name, first.Time[up].Median, first.Time[down].Median, targetRings))
	}
	if !first.ahead(last) {
		soft = append(soft, fmt.Sprintf("%s carry %.1f times as many frames as a %s, target %d", first.Name, first.times(last), last.Name, targetStream))
	}
	return hard, soft
}
