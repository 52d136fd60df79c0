package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sheaf/tools/mkcapture/record"
)

// A recording is what -record asks for.
type recording struct {
	record.Config
	dir  string
	only string
}

// asked tells whether there are arguments for a recording.
func (r *recording) asked() bool { return r.only != "" || r.Config != record.Config{} }

// run records into files, one after the other: time is real.
func (r *recording) run(stdout io.Writer) error {
	all := record.Workloads()
	if r.only != "" {
		names := strings.Split(r.only, ",")
		some := slices.DeleteFunc(all, func(w record.Workload) bool { return !slices.Contains(names, w.Name) })
		if len(some) != len(names) {
			return fmt.Errorf("-only %s: mkcapture -h lists the workloads to record", r.only)
		}
		all = some
	}
	for _, w := range all {
		err := writeFile(filepath.Join(r.dir, w.File()), func(out io.Writer) (int, error) { return r.write(w, out) }, stdout)
		if errors.Is(err, record.ErrNoBroker) && r.only == "" {
			mend := "name one: -only " + w.Name + " -broker ADDRESS"
			if w.TLS() {
				mend = "apt-get install mosquitto openssl"
			}
			fmt.Fprintf(stdout, "not recorded: %v; %s\n", err, mend)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write records a workload, gzipped.
func (r *recording) write(w record.Workload, out io.Writer) (packets int, err error) {
	zip, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	buffer := bufio.NewWriterSize(zip, 1<<20) // a packet is recorded while it waits
	if packets, err = w.Record(r.Config, buffer); err != nil {
		return packets, err
	}
	return packets, errors.Join(buffer.Flush(), zip.Close())
}
