// Frames says what two gateways in memory write for every capture, so that two
// commits can be compared:
//
//	go run ./tools/frames            all captures, 1 minute
//	go run ./tools/frames -quick     those of at most 256 kB, 7 seconds
//	go run ./tools/frames DIR...     those below the directories
//
//	vector	least	736865616600...                    a golden vector of any package
//	captures/stomp-ndpi-queue.pcapng	few	...        one line a capture and configuration:
//	    up 20/713	down 28/933	packets 69	bytes 4e07...	times 77a5...
//
// Up and down are frames and their bytes towards the broker and back; packets are
// those that the far ends rebuilt. The sum of bytes is the SHA-256 of all frames
// with their direction and length, that of times covers the moments at which they
// go. tools/frames.sh runs the program in two commits and compares the lines.
//
// It goes through as few names of the core as possible, so that one source
// compiles in both.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "frames:", err)
		os.Exit(1)
	}
}

// quickSize is the size of the largest file that -quick looks at: 120 of the 160
// captures, and among them a fan-out with and without acknowledgements, telemetry
// and every protocol, in a tenth of the time.
const quickSize = 256 << 10

// directories are where captures lie, from the top of the repository. One that is
// not there has none.
var directories = []string{"testdata", "../shared/captures"}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("frames", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "leave out files of more than 256 kB")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dirs := flags.Args()
	if len(dirs) == 0 {
		dirs = directories
	}
	out := bufio.NewWriter(stdout)
	if err := vectors(out, "."); err != nil {
		return err
	}
	for _, dir := range dirs {
		largest := int64(1) << 62
		if *quick {
			largest = quickSize
		}
		if err := captures(out, dir, largest); err != nil {
			return err
		}
	}
	return out.Flush()
}

// capture matches the names of captures.
var capture = regexp.MustCompile(`\.pcap(ng)?(\.gz|\.zst)?$`)

// captures writes the lines of the captures below a directory, in the order of
// their names.
func captures(out *bufio.Writer, dir string, largest int64) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == dir:
			return nil
		case err != nil || e.IsDir() || !capture.MatchString(path):
			return err
		}
		if info, err := e.Info(); err != nil || info.Size() > largest {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := replay(out, path, filepath.Join(filepath.Base(dir), below)); err != nil {
			return fmt.Errorf("replaying %s: %w", path, err)
		}
		return out.Flush()
	})
}
