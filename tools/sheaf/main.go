// Sheaf binds alike pub-sub packets together at one end of a WAN link and hands
// the original packets out again at the other end.
//
//	sheaf up                       bring a gateway up
//	sheaf down                     remove the routes that a gateway leaves behind
//	sheaf status                   peers, lanes and savings of a running gateway
//	sheaf route list|add|del       pub-sub subnets of a running gateway
//	sheaf port list|add|del        virtual machines of a running gateway
//	sheaf doctor                   what keeps a gateway from working; how to mend it
//	sheaf keygen FILE              make a gateway's key
//	sheaf replay capture.pcap      what it would save on this traffic
//
// Each subcommand is a file of its own, named after it. All of them report
// errors on standard error, one a line, and exit with 2 where the command line
// or a file could not be used; 1 is for what a subcommand is asked to find out.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitOK        = 0
	exitDifferent = 1 // a packet came out different
	exitFailing   = 1 // doctor found what keeps the gateway from working
	exitUnusable  = 2 // the command line or a file
)

// A status is an exit code for which everything has been said.
type status int

// Error returns the code.
func (s status) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the command line and returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var code status
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	complain(stderr, err)
	return exitUnusable
}

// complain reports an error.
func complain(stderr io.Writer, err error) { fmt.Fprintf(stderr, "sheaf: %v\n", err) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "sheaf",
		Short: "Merges alike pub-sub packets across a WAN link, byte for byte",
		Long: `sheaf binds alike pub-sub packets together at one end of a WAN link and hands
the original packets out again at the other end, byte for byte.`,
		SilenceErrors: true, // run reports them
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(cmd, err) })
	root.AddCommand(newUp(), newDown(), newStatus(), newRoute(), newPort(), newDoctor(), newKeygen(), newReplay(), newDemo())
	return root
}

// usage adds to an error where to find help.
func usage(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
}
