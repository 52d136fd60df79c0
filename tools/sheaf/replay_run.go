package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sheaf/pcap"
	"sheaf/tools/replay"
)

// stdinName is the file name that stands for standard input.
const stdinName = "-"

// A replayRun is one run of `sheaf replay`.
type replayRun struct {
	opts           *replayOptions
	cfg            replay.Config
	keyLogs        keyLogs
	stdin          io.Reader
	stdout, stderr io.Writer
}

func newReplayRun(o *replayOptions, files []string) (*replayRun, error) {
	cfg, err := o.config()
	if err != nil {
		return nil, err
	}
	piped := 0
	for _, name := range files {
		if name == stdinName {
			piped++
		}
	}
	switch {
	case piped > 1:
		return nil, errors.New("standard input was given twice")
	case o.out == stdinName:
		return nil, errors.New("--out -: expected the name of a file, since the report goes to standard output")
	case o.out != "" && len(files) > 1:
		return nil, fmt.Errorf("--out takes the packets of one capture, not of %d", len(files))
	}
	secrets, err := readKeyLogs(o.keyLogs)
	if err != nil {
		return nil, err
	}
	if cfg.Names, err = readGuests(o.guests); err != nil {
		return nil, err
	}
	return &replayRun{opts: o, cfg: cfg, keyLogs: secrets}, nil
}

// run replays the files in turn. Where one cannot be used it goes on with the
// next.
func (r *replayRun) run(files []string) error {
	defer r.keyLogs.clear()
	out := bufio.NewWriter(r.stdout)
	var total summary
	for i, name := range files {
		report := r.replay(name)
		r.warn(report)
		total.add(report)
		switch {
		case r.opts.json:
			line, err := json.Marshal(report)
			if err != nil {
				return fmt.Errorf("writing the report on %s: %w", printable(name), err)
			}
			out.Write(append(line, '\n')) // Flush returns the error
		case report.Error == "" || report.Packets > 0:
			if i > 0 {
				out.WriteByte('\n')
			}
			writeReport(out, report, r.opts.events)
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("writing the report on %s: %w", printable(name), err)
		}
	}
	if !r.opts.json && len(files) > 1 {
		total.write(out)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the summary: %w", err)
	}
	return total.status()
}

// warn says on standard error what a user has to know of a report.
func (r *replayRun) warn(p *replay.Report) {
	say := func(format string, args ...any) {
		complain(r.stderr, fmt.Errorf(printable(p.File)+": "+format, args...))
	}
	if p.Error != "" {
		say("%s", p.Error)
	}
	if p.Damage != "" {
		say("%s; what is before it was replayed", p.Damage)
	}
	if p.Fault != "" {
		say("%s", p.Fault)
	}
	if p.Difference != "" {
		say("%s", p.Difference)
	}
	if p.NoBroker && p.Packets > p.Skipped {
		say("no packet is from or to the broker %v; check --broker", r.cfg.Broker)
	}
}

// replay replays a file. What went wrong is in the report.
func (r *replayRun) replay(name string) *replay.Report {
	report, err := r.try(name)
	if report == nil {
		report = replay.NewReport(name)
	}
	if err != nil {
		report.Error = err.Error()
	}
	return report
}

// try replays a file. The report is nil where nothing of it was replayed. Should
// the program fail on what is in it, which is a fault of the program's, that is an
// error of this file's like any other, and the next file has its turn.
func (r *replayRun) try(name string) (report *replay.Report, err error) {
	var in *pcap.Reader
	defer func() {
		if v := recover(); v != nil {
			report, err = nil, failed(in, v)
		}
	}()
	file, size, err := r.open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	noted := &notingReader{r: file}
	if in, err = pcap.NewReader(noted); err != nil {
		return nil, expected(err, noted.err)
	}
	secrets := r.keyLogs.store(in)
	defer secrets.Close()
	cfg := r.cfg
	cfg.Secrets = secrets
	bar := newProgress(r.stderr, name, size)
	defer bar.end()
	cfg.Progress = func() { bar.at(in.InputOffset()) }
	var out *rebuiltFile
	if r.opts.out != "" {
		if out, err = createRebuilt(r.opts.out, file); err != nil {
			return nil, err
		}
		defer out.discard()
		cfg.Rebuilt = out.write
	}
	replayed, err := replay.New(cfg)
	if err != nil {
		return nil, err
	}
	_, _, err = replayed.Run(in)
	report = replayed.Report(name, err)
	report.Secrets = secretsOf(secrets)
	if noted.err != nil {
		report.Damage = ""
		return report, fmt.Errorf("reading stopped after packet %d: %w", in.Records(), noted.err)
	}
	if report.Error == "" && out != nil {
		if err := out.close(); err != nil {
			return report, err
		}
	}
	return report, nil
}

// failed is the error for what was recovered from while in, which is nil before
// the capture's header was read, was replayed.
func failed(in *pcap.Reader, recovered any) error {
	at := "the file header"
	if in != nil {
		at = fmt.Sprintf("packet %d", in.Records())
	}
	return fmt.Errorf("sheaf itself failed at %s: %s; please report it, with this capture", at, oneLine(fmt.Sprint(recovered)))
}

// open opens a file and returns its size, -1 where it is not known.
func (r *replayRun) open(name string) (io.ReadCloser, int64, error) {
	if name == stdinName {
		return io.NopCloser(r.stdin), -1, nil
	}
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the name is said elsewhere
		}
		return nil, 0, fmt.Errorf("cannot be opened: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	switch {
	case info.IsDir():
		f.Close()
		return nil, 0, fmt.Errorf("is a directory; expected %s", captureFile)
	case info.Mode().IsRegular():
		return f, info.Size(), nil
	}
	return f, -1, nil
}

const captureFile = "a pcap or pcapng capture, plain, gzipped or zstd"

// expected says what a file should have been that could not be read.
func expected(err, reading error) error {
	var link *pcap.LinkTypeError
	switch {
	case reading != nil:
		return fmt.Errorf("cannot be read: %w", reading)
	case errors.As(err, &link):
		return err
	case errors.Is(err, pcap.ErrFormat):
		return fmt.Errorf("%w; expected %s", err, captureFile)
	}
	return fmt.Errorf("%w; expected a whole capture", err)
}

// A notingReader notes what reading failed with, which a damaged capture has
// nothing to do with.
type notingReader struct {
	r   io.Reader
	err error
}

// Read reads.
func (n *notingReader) Read(p []byte) (int, error) {
	c, err := n.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return c, err
}

// A summary sums several reports up.
type summary struct {
	files, unusable, different int
	replayed, identical        uint64
	bytesIn, bytesWire         uint64
}

func (s *summary) add(p *replay.Report) {
	s.files++
	if p.Error != "" {
		s.unusable++
	}
	if !p.Exact() {
		s.different++
	}
	s.replayed += p.Packets - p.Skipped
	s.identical += p.Identical
	s.bytesIn += p.BytesIn
	s.bytesWire += p.BytesWire
}

// status returns what the command exits with: a difference weighs most.
func (s *summary) status() error {
	switch {
	case s.different > 0:
		return status(exitDifferent)
	case s.unusable > 0:
		return status(exitUnusable)
	}
	return nil
}

func (s *summary) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s of %s packets came out identical; %s in, %s on the link, %s\n",
		count(uint64(s.files), "file"), number(s.identical), number(s.replayed),
		size(float64(s.bytesIn)), size(float64(s.bytesWire)), ratio(float64(s.bytesIn), float64(s.bytesWire)))
	if s.unusable > 0 {
		fmt.Fprintf(w, "%s could not be used\n", count(uint64(s.unusable), "file"))
	}
	if s.different > 0 {
		fmt.Fprintf(w, "in %s packets came out DIFFERENT\n", count(uint64(s.different), "file"))
	}
}
