package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// An event is one of test2json's (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A test is one of a package.
type test struct{ pkg, name string }

// A report shows events as go test does without -json, and counts skips.
type report struct {
	out     io.Writer
	verbose bool
	said    map[test][]string // lines of tests that have not ended
	skipped map[string]int    // by reason
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{out: out, verbose: verbose, said: map[test][]string{}, skipped: map[string]int{}}
}

// read takes events until their end. A line that is none is shown as it is.
func (r *report) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				r.take(e)
			} else {
				fmt.Fprint(r.out, line)
			}
		}
		switch err {
		case nil:
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("reading what go test says: %w", err)
		}
	}
}

// take shows an event. Without -v, what a test says is shown if it fails.
func (r *report) take(e event) {
	t := test{e.Package, e.Test}
	if e.Test == "" {
		switch e.Action {
		case "output", "build-output":
			if r.verbose || e.Output != "PASS\n" {
				fmt.Fprint(r.out, e.Output)
			}
		case "fail":
			r.showUnended(e.Package)
		}
		return
	}
	switch e.Action {
	case "output":
		r.said[t] = append(r.said[t], e.Output)
		if r.verbose {
			fmt.Fprint(r.out, e.Output)
		}
		return
	case "skip":
		r.skipped[reason(r.said[t])]++
	case "fail":
		r.show(t)
	case "pass":
	default:
		return
	}
	delete(r.said, t)
}

// showUnended shows what the tests of a package said that a panic or the end of
// the time ended.
func (r *report) showUnended(pkg string) {
	var unended []test
	for t := range r.said {
		if t.pkg == pkg {
			unended = append(unended, t)
		}
	}
	slices.SortFunc(unended, func(a, b test) int { return strings.Compare(a.name, b.name) })
	for _, t := range unended {
		r.show(t)
		delete(r.said, t)
	}
}

// show shows what a test said, unless it was shown already.
func (r *report) show(t test) {
	if r.verbose {
		return
	}
	for _, line := range r.said[t] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(r.out, line)
		}
	}
}

// logged is a line that a test logged: where, and what.
var logged = regexp.MustCompile(`^ *[\w.-]+\.go:\d+: (.*)`)

// noReason stands for that of a test that gave none.
const noReason = "for no reason given"

// reason returns what a test said last, in one line.
func reason(said []string) string {
	last := ""
	for _, line := range said {
		switch m := logged.FindStringSubmatch(strings.TrimRight(line, "\n")); {
		case m != nil:
			last = m[1]
		case last != "" && strings.HasPrefix(line, "        "): // of the same
			last += " " + strings.TrimSpace(line)
		}
	}
	if strings.TrimSpace(last) == "" {
		return noReason
	}
	return last
}

// conclude shows how many tests were skipped, and why: the most frequent reason
// first.
func (r *report) conclude() {
	type count struct {
		reason string
		n      int
	}
	var all []count
	sum := 0
	for reason, n := range r.skipped {
		all = append(all, count{reason, n})
		sum += n
	}
	slices.SortFunc(all, func(a, b count) int {
		if a.n != b.n {
			return b.n - a.n
		}
		return strings.Compare(a.reason, b.reason)
	})
	switch sum {
	case 0:
		fmt.Fprintln(r.out, "no test skipped")
		return
	case 1:
		fmt.Fprintln(r.out, "1 test skipped:")
	default:
		fmt.Fprintf(r.out, "%d tests skipped:\n", sum)
	}
	for _, c := range all {
		fmt.Fprintf(r.out, "  %*d  %s\n", len(fmt.Sprint(sum)), c.n, c.reason)
	}
}
