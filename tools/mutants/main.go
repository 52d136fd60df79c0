// Mutants puts small bugs into the code, one at a time, and says whether the tests
// of the package that each is in notice:
//
//	go run ./tools/mutants                     those of tools/mutants/core.txt
//	go run ./tools/mutants -only 'model: '     of them, those of such a package or rule
//	go run ./tools/mutants LIST
//
//	caught     0.4s  engine/wire: a length at the limit is allowed (TestParseFrame/longest)
//	MISSED    31.0s  engine/aggregate: an urgent segment goes at once
//	...
//	33 of 34 caught
//
// How it flows:
//
//	LIST -> mutants     a rule of the code, and the text that breaks it
//	     -> overlay     the file with the bug in it; no file of the tree changes
//	     -> go test -c  a bug that does not compile is a fault of the list
//	     -> the tests   first with -short, then all; the first failure ends them
//
// The exit code is 1 if more than -allow bugs were missed, and if one of the list
// has no place in the code any more or does not compile: the list is to be kept.
// What hangs or takes all memory counts as caught.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// defaultList is the list of bugs in the core, from the top of the repository.
const defaultList = "tools/mutants/core.txt"

// defaultAllow is how many bugs may be missed. Of 30, 28 are to be caught.
const defaultAllow = 2

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "leave out those whose package and rule do not match the `regexp`")
	allow := flags.Int("allow", defaultAllow, "how many may be missed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	name := defaultList
	switch flags.NArg() {
	case 0:
	case 1:
		name = flags.Arg(0)
	default:
		return fmt.Errorf("%d lists given, expected one", flags.NArg())
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	list, err := parse(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	t, err := newTester()
	if err != nil {
		return err
	}
	defer t.close()
	return hunt(t, list, chosen, *allow, stdout)
}

// hunt tests the chosen mutants of a list.
func hunt(t *tester, list []mutant, chosen *regexp.Regexp, allow int, out io.Writer) error {
	tested, missed, faults := 0, 0, 0
	for i := range list {
		m := &list[i]
		if !chosen.MatchString(m.String()) {
			continue
		}
		v, err := t.test(m)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		tested++
		word, note := "caught", " ("+v.by+")"
		switch {
		case v.fault != nil:
			faults++
			word, note = "FAULT", ": "+v.fault.Error()
		case v.by == "":
			missed++
			word, note = "MISSED", ""
		}
		if _, err := fmt.Fprintf(out, "%-8s%6.1fs  %s%s\n", word, v.took.Seconds(), m, note); err != nil {
			return err
		}
	}
	caught := tested - missed - faults
	if _, err := fmt.Fprintf(out, "%d of %d caught\n", caught, tested); err != nil {
		return err
	}
	switch {
	case tested == 0:
		return errors.New("there is none to test")
	case faults > 0:
		return fmt.Errorf("%d of the list are not bugs that this code can have", faults)
	case missed > allow:
		return fmt.Errorf("%d were missed, where %d may be", missed, allow)
	}
	return nil
}
