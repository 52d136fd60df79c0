// Bench measures what sheaf saves, how fast it is and what it costs to remember
// many flows, and says which targets are met:
//
//	go run ./tools/bench
//	go run ./tools/bench -only speed -cpuprofile cpu.prof
//
// How it flows:
//
//	sizes   capture -> replay.Replay          -> bytes on the wire for a message, beside zstd's,
//	                                             and without the parsers
//	speed   trace   -> schedule -> pass       -> time and allocations for a packet, beside zstd's
//	sealing trace   -> TLS of it -> schedule -> pass -> what a TLS record costs beyond its content
//	guests  frames  -> rings, or a socket -> time and allocations for a frame, each way
//	flows   capgen  -> schedule -> pass       -> time for a packet and memory for a flow, by flows
//
// Times are taken once a frame and not once a packet. So a first pass finds out
// which packets go into which frame, and when: the schedule. A timed pass then
// puts the packets of a frame together, untimed, gives them to the Merger in one
// go, flushes, and gives the frame to the Expander at the other end. Since a
// Merger changes its memory only when it flushes, the frames are the same byte
// for byte, which is checked. The packets of a frame lie in the processor's
// cache when their time begins, as they do after a read. zstd gets the same
// packets with the same flushes.
//
// Every pass begins with new lanes, warms up, and counts only then. Several
// passes give a median and a minimum; the machine's other work is in the median. Sealing,
// whose result is a small difference, counts the processor's time instead.
// Speed, sealing, guests and flows run with GOMAXPROCS(1) on one locked thread, so the collection
// of garbage counts too.
//
// The sizes that README shows are those of the captures in testdata, which are the
// same everywhere; with -readme they are written there. Captures of real brokers
// have a table of their own, where there are any. What speed is measured with is
// simulated otherwise.
//
// # Limits
//
//   - It measures the core. Reading from devices and writing to lanes, which
//     cost more than the core does, are not in it.
//   - The targets of speed are for a fan-out to 100 subscribers. Other traffic
//     stands below it without targets: what is little alike takes longer.
//   - Each end of the lane does a gateway's work for one of the directions; the
//     times are sums over both ends, divided by the packets of both directions.
//   - The handshakes of sealing are no more than what the core looks at: nothing is
//     signed, and certificates are zeros.
//   - A stream leads to the guest's hypervisor, whose own rings to the guest are not in
//     its times; and what is sent to a guest is read by it in one go.
//   - The zstd of the speed table is klauspost's SpeedDefault, in Go like sheaf;
//     the reference in C is faster.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var (
	// errUsage is a mistake in the arguments that has been reported.
	errUsage = errors.New("wrong arguments")
	// errMissed is the end of a run with -check that missed a target.
	errMissed = errors.New("targets missed")
)

// defaultCaptures is where captures are looked for, from the top of the repository.
const defaultCaptures = "../shared/captures"

// defaultRecorded is where the repository's own are, from its top.
const defaultRecorded = "testdata/recorded"

// options are the arguments.
type options struct {
	captures   string // directory of captures of real brokers; empty for none
	recorded   string // directory of the repository's recorded captures
	readme     string // file to write the table of sizes to; empty for none
	short      bool
	check      bool
	only       []string
	passes     int // 0 for the default
	json       string
	cpuProfile string
	memProfile string
}

// sections are what can be measured, in order.
var sections = []string{"sizes", "speed", "sealing", "guests", "flows"}

func run(args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.cpuProfile != "" {
		f, err := os.Create(o.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return fmt.Errorf("profiling into %s: %w", o.cpuProfile, err)
		}
		defer pprof.StopCPUProfile()
	}
	r, err := measure(o, stdout)
	if err != nil {
		return err
	}
	if o.json != "" {
		b, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(b, '\n'), 0o644); err != nil {
			return err
		}
	}
	return conclude(r, o.check, stdout)
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: bench [flags]")
		flags.PrintDefaults()
	}
	only := ""
	captures := flags.String("captures", "", "measure captures of real brokers in `DIR` too (default "+defaultCaptures+" where that exists)")
	flags.StringVar(&o.recorded, "recorded", defaultRecorded, "`DIR` of the recorded captures")
	flags.StringVar(&o.readme, "readme", "", "write the table of sizes into `FILE`, README.md")
	flags.BoolVar(&o.short, "short", false, "take less time: leave out the largest captures and flow numbers, repeat less")
	flags.BoolVar(&o.check, "check", false, "exit with 1 when a size, the allocations or the memory miss their targets")
	flags.StringVar(&only, "only", "", "measure only `SECTIONS`, separated by commas: "+strings.Join(sections, ", "))
	flags.IntVar(&o.passes, "passes", 0, "take the times of speed from `N` passes, more for a profile (default 9 with targets, 3 without)")
	flags.StringVar(&o.json, "json", "", "write the results to `FILE` too")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "write a CPU profile to `FILE`")
	flags.StringVar(&o.memProfile, "memprofile", "", "write a heap profile to `FILE`, taken while the most flows are remembered")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "bench: unexpected argument %q: captures are named by -captures DIR\n", flags.Arg(0))
		return o, errUsage
	}
	o.only = sections
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	for _, s := range o.only {
		if !slices.Contains(sections, s) {
			fmt.Fprintf(stderr, "bench: -only %s: want some of %s\n", only, strings.Join(sections, ", "))
			return o, errUsage
		}
	}
	o.captures = *captures
	if o.captures == "" {
		if fi, err := os.Stat(defaultCaptures); err == nil && fi.IsDir() {
			o.captures = defaultCaptures
		}
	}
	return o, nil
}

// A Result is all that was measured.
type Result struct {
	Captures string    `json:"captures"` // of real brokers: where from
	Sizes    []Size    `json:"sizes,omitempty"`
	Real     []Size    `json:"real_sizes,omitempty"` // of real brokers' captures
	Speed    []Speed   `json:"speed,omitempty"`      // the first has targets
	Sealing  []Sealing `json:"sealing,omitempty"`
	Guests   []Guest   `json:"guests,omitempty"` // the first has targets
	Flows    []Flows   `json:"flows,omitempty"`
}

// measure measures the sections asked for and prints each when it is done.
func measure(o options, w io.Writer) (*Result, error) {
	r := &Result{Captures: o.captures}
	fmt.Fprintf(w, "machine: %s/%s, %s, %d processors, times are of one of them\n",
		runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU())
	var err error
	if slices.Contains(o.only, "sizes") {
		if r.Sizes, err = measureSizes(recorded(o.recorded)); err != nil {
			return nil, err
		}
		sizeTable("the captures in testdata", r.Sizes).write(w)
		if o.readme != "" {
			if err := writeReadme(o.readme, r.Sizes); err != nil {
				return nil, err
			}
		}
		if r.Real, err = measureSizes(realBrokers(o)); err != nil {
			return nil, err
		}
		if len(r.Real) > 0 {
			sizeTable("captures of real brokers in "+o.captures, r.Real).write(w)
		}
	}
	defer oneCore()()
	if slices.Contains(o.only, "speed") {
		if r.Speed, err = measureSpeed(o); err != nil {
			return nil, err
		}
		r.Speed[0].table().write(w)
		otherSpeeds(r.Speed[1:]).write(w)
	}
	if slices.Contains(o.only, "sealing") {
		if r.Sealing, err = measureSealing(o); err != nil {
			return nil, err
		}
		sealingTable(r.Sealing).write(w)
	}
	if slices.Contains(o.only, "guests") {
		if r.Guests, err = measureGuests(o); err != nil {
			return nil, err
		}
		guestTable(r.Guests).write(w)
	}
	var heap func() error
	if o.memProfile != "" {
		heap = func() error { return writeHeap(o.memProfile) }
	}
	if slices.Contains(o.only, "flows") {
		if r.Flows, err = measureFlows(flowNumbers(o.short), heap); err != nil {
			return nil, err
		}
		flowTable(r.Flows).write(w)
	} else if heap != nil {
		err = heap()
	}
	return r, err
}

// oneCore keeps the program to one core until the function that it returns is called.
func oneCore() (undo func()) {
	runtime.LockOSThread()
	n := runtime.GOMAXPROCS(1)
	return func() {
		runtime.GOMAXPROCS(n)
		runtime.UnlockOSThread()
	}
}

// writeHeap writes what is on the heap now.
func writeHeap(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	runtime.GC()
	err = pprof.Lookup("heap").WriteTo(f, 0)
	return errors.Join(err, f.Close())
}

// conclude prints which targets were missed. With check, those of size,
// allocations and memory are an error; times depend on the machine.
func conclude(r *Result, check bool, w io.Writer) error {
	var hard, soft []string
	for _, s := range r.Real {
		if s.Must > 0 && s.Sheaf > s.Must {
			hard = append(hard, fmt.Sprintf("size of %s: %.2f B, must %.4g B", s.Name, s.Sheaf, s.Must))
		}
	}
	sizes := slices.Concat(r.Sizes, r.Real)
	for i := range sizes {
		if s := &sizes[i]; s.Opaque > 0 && !s.Noise && s.Kept() < mustKeep {
			hard = append(hard, fmt.Sprintf("savings on %s without parsers: %.2f of those with them, must %.2g", s.Name, s.Kept(), mustKeep))
		}
	}
	if len(r.Speed) > 0 {
		h, s := r.Speed[0].missed()
		hard, soft = append(hard, h...), append(soft, s...)
	}
	h, s := missedSealing(r.Sealing)
	hard, soft = append(hard, h...), append(soft, s...)
	h, s = missedGuests(r.Guests)
	hard, soft = append(hard, h...), append(soft, s...)
	h, s = missedFlows(r.Flows)
	hard, soft = append(hard, h...), append(soft, s...)

	fmt.Fprintln(w)
	for _, m := range append(slices.Clone(hard), soft...) {
		fmt.Fprintln(w, "MISSED:", m)
	}
	switch {
	case len(hard)+len(soft) == 0:
		fmt.Fprintln(w, "all targets met")
	case check && len(hard) > 0:
		return errMissed
	}
	return nil
}
