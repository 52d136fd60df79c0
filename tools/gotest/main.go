// Gotest runs go test, shows what go test shows, and says at the end how many
// tests were skipped and why:
//
//	go run ./tools/gotest [arguments of go test, such as -race ./engine]
//
//	ok  	sheaf/pcap	0.213s
//	...
//	31 tests skipped:
//	  28  takes minutes, root and real brokers: make e2e
//	   3  needs root for a network namespace: operation not permitted
//
// A reason is what the test said last. The exit code is that of go test.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	code, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
	}
	os.Exit(code)
}

// run runs go test and returns its exit code, or 1 and what kept it from running.
func run(args []string, stdout, stderr io.Writer) (code int, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, err
	}
	r := newReport(stdout, slices.ContainsFunc(args, isVerbose))
	readErr := r.read(events)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, events) // or go test waits for a reader
	}
	err = cmd.Wait()
	r.conclude()
	var exit *exec.ExitError
	switch {
	case readErr != nil:
		return 1, readErr
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil
	case err != nil:
		return 1, err
	}
	return 0, nil
}

// isVerbose tells whether an argument asks go test for all that tests say.
func isVerbose(arg string) bool {
	name, value, valued := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return strings.HasPrefix(arg, "-") && (name == "v" || name == "test.v") && (!valued || value == "true" || value == "1")
}
