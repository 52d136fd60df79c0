// Mkcapture writes captures of pub-sub traffic: simulated ones, of which the same
// arguments give the same bytes, and recordings of real clients and brokers.
//
//	go run ./tools/mkcapture -dir testdata
//	go run ./tools/mkcapture -workload fanout -clients 500 -messages 100 -o fanout.pcap.gz
//	go run ./tools/mkcapture -record testdata/recorded
//	go run ./tools/mkcapture -record . -only amqp-fanout-100 -broker 127.0.0.1:5672
//
// The first writes the standard captures, the second one of any size: what a
// workload is, package capgen says. The others record, in minutes, what package
// record says; the last with a broker of this machine's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"sheaf/tools/mkcapture/capgen"
	"sheaf/tools/mkcapture/record"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "mkcapture:", err)
		os.Exit(1)
	}
}

// errUsage is a mistake in the arguments that has been reported.
var errUsage = errors.New("wrong arguments")

func run(args []string, stdout, stderr io.Writer) error {
	var (
		dir  string
		file capgen.File
		rec  recording
	)
	cfg := &file.Config
	flags := flag.NewFlagSet("mkcapture", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { usage(flags) }
	flags.StringVar(&dir, "dir", "", "write all standard captures into `DIR`, which must exist")
	flags.StringVar(&file.Name, "o", "", "write one capture to `FILE`, gzipped if it ends in .gz; - for standard output")
	flags.Func("workload", "`NAME` of the workload of that capture", func(s string) error {
		file.Workload = capgen.Workload(s)
		return nil
	})
	flags.IntVar(&cfg.Clients, "clients", 0, "client connections; for flows the flows (0: as the workload has it)")
	flags.IntVar(&cfg.Hosts, "hosts", 0, "client hosts (0: one for each client)")
	flags.IntVar(&cfg.Messages, "messages", 0, "messages per publisher; for mixed over all topics, for flows rounds (0: as the workload has it)")
	flags.Float64Var(&cfg.Rate, "rate", 0, "messages a second per publisher; for mixed of the fastest topic (0: as the workload has it)")
	flags.IntVar(&cfg.QoS, "qos", 0, "1, or -1 for QoS 0 (0: as the workload has it)")
	flags.DurationVar(&cfg.RTT, "rtt", 0, "round-trip time between clients and broker (0: some microseconds)")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of all randomness")
	flags.BoolVar(&cfg.IPv6, "ipv6", false, "IPv6 instead of IPv4")
	flags.BoolVar(&cfg.WebSocket, "websocket", false, "MQTT over WebSocket instead of over TCP alone")
	flags.StringVar(&rec.dir, "record", "", "record real clients and brokers into `DIR`, which must exist")
	flags.StringVar(&rec.only, "only", "", "with -record: `NAMES` of workloads, separated by commas (default all)")
	flags.StringVar(&rec.Broker, "broker", "", "with -record: `ADDRESS` of a broker of this machine's in the place of an embedded one")
	flags.DurationVar(&rec.Length, "length", 0, "with -record: how long the steady part is (0: as the workload has it)")
	flags.BoolVar(&file.Nanos, "nanos", false, "times in nanoseconds instead of microseconds")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage // the flag package has said what is wrong
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; mkcapture -h lists what there is", flags.Arg(0))
	case rec.dir != "" && (dir != "" || file.Workload != "" || file.Name != ""):
		return errors.New("-record records and goes with none of -dir, -workload and -o")
	case rec.dir == "" && rec.asked():
		return errors.New("-only, -broker and -length are for recording: give -record DIR as well")
	case rec.dir != "":
		return rec.run(stdout)
	case dir == "" && file.Workload == "":
		return errors.New("nothing to do: give -dir DIR, -record DIR, or -workload NAME and -o FILE; mkcapture -h explains")
	case dir != "" && (file.Workload != "" || file.Name != ""):
		return errors.New("-dir writes the standard captures and goes with neither -workload nor -o")
	case dir != "":
		return writeStandard(dir, stdout)
	case file.Name == "":
		return errors.New("no file to write: give -o FILE, or -o - for standard output")
	case file.Name == "-":
		_, err := file.Write(stdout)
		return err
	}
	return writeFile(file.Name, file.Write, stdout)
}

func usage(flags *flag.FlagSet) {
	w := flags.Output()
	fmt.Fprint(w, `Mkcapture writes captures of pub-sub traffic, by simulation or by recording
real clients and brokers.

  mkcapture -dir DIR
  mkcapture -workload NAME [-clients N] ... -o FILE
  mkcapture -record DIR [-only NAMES] [-broker ADDRESS] [-length TIME]

Workloads to simulate:
`)
	for _, name := range capgen.Workloads() {
		fmt.Fprintf(w, "  %-11s %s\n", name, name.About())
	}
	fmt.Fprint(w, "\nWorkloads to record:\n")
	for _, r := range record.Workloads() {
		fmt.Fprintf(w, "  %-24s %s\n", r.Name, r.About)
	}
	fmt.Fprint(w, "\nFlags:\n")
	flags.PrintDefaults()
}

func writeStandard(dir string, stdout io.Writer) error {
	for _, f := range capgen.Standard() {
		if err := writeFile(filepath.Join(dir, f.Name), f.Write, stdout); err != nil {
			return err
		}
	}
	return nil
}

// writeFile leaves either the whole file or none of it. What write returns is the
// number of packets.
func writeFile(path string, write func(io.Writer) (int, error), stdout io.Writer) (err error) {
	out, err := os.CreateTemp(filepath.Dir(path), "."+strings.TrimPrefix(filepath.Base(path), ".")+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			out.Close()
			os.Remove(out.Name())
		}
	}()
	packets, err := write(out)
	if err != nil {
		return err
	}
	info, err := out.Stat()
	if err != nil {
		return err
	}
	if err := out.Chmod(0o644); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), path); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s: %d packets, %d bytes\n", path, packets, info.Size())
	return nil
}
