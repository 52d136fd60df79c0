package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sheaf/engine"
	"sheaf/tunnel"
)

// newDoctor returns the subcommand that looks for what keeps a gateway from
// working.
func newDoctor() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check devices, forwarding, routes, keys and peers; how to mend",
		Long: `doctor looks for what keeps a gateway from working on this host, or makes it work
badly, and says for each finding how to mend it. It changes nothing. While no
gateway is running it calls the peers with the gateway's own key, for a few
seconds; otherwise it asks the gateway that is running how they are.

Each line begins with ok, warn or FAIL. Exit codes: 0, there is no FAIL; 1, there
is one; 2, the command line could not be used.`,
		Example: `  sudo sheaf doctor
  sheaf doctor -c userspace-clients.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			d := &doctor{host: thisHost(), path: path, out: cmd.OutOrStdout()}
			return d.run(ctx)
		},
	}
	configFlag(cmd, &path)
	return cmd
}

// A doctor examines a host and a configuration. Its checks are methods in the
// files doctor_*.go, which say what they find with ok, warn and fail.
type doctor struct {
	host *host
	path string // of the configuration
	out  io.Writer

	cfg     *engine.Config // nil if it cannot be used
	key     *tunnel.Key    // nil if it cannot be used
	net     *network       // nil if the kernel does not tell
	running *engine.Status // of the gateway that is running; nil if none, or not known
	unknown bool           // whether one is running cannot be told

	warnings, failures uint64
	err                error // the first in writing to out
}

// run makes all checks. The error is exit code 1 if something fails.
func (d *doctor) run(ctx context.Context) error {
	d.checkConfig()
	d.checkControl(ctx)
	d.checkKey()
	d.checkClock()
	if d.cfg == nil || d.cfg.TUN != nil {
		d.checkDriver()
		d.checkCapability()
	}
	if d.cfg != nil && d.cfg.TUN != nil {
		d.checkNetwork()
	}
	if d.cfg != nil {
		d.checkBuffers()
		d.checkListen()
		d.checkTLS()
		d.checkEnds(ctx)
		d.checkTLSServers(ctx)
		d.checkGuests()
		d.checkPeers(ctx)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: %w", ctx.Err())
	}
	switch {
	case d.failures > 0:
		d.printf("\n%s and %s\n", count(d.failures, "failure"), count(d.warnings, "warning"))
	case d.warnings > 0:
		d.printf("\nno failure, %s\n", count(d.warnings, "warning"))
	default:
		d.printf("\nall is well\n")
	}
	if d.err != nil {
		return fmt.Errorf("writing the findings on standard output: %w", d.err)
	}
	if d.failures > 0 {
		return status(exitFailing)
	}
	return nil
}

func (d *doctor) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(d.out, format, args...); err != nil && d.err == nil {
		d.err = err
	}
}

// finding writes a line, and the mend under it.
func (d *doctor) finding(severity, about, what, mend string) {
	d.printf("%-4s  %-13s  %s\n", severity, about, oneLine(what))
	if mend != "" {
		d.printf("%21smend: %s\n", "", oneLine(mend))
	}
}

// ok tells of what is right.
func (d *doctor) ok(about, format string, args ...any) {
	d.finding("ok", about, fmt.Sprintf(format, args...), "")
}

// warn tells of what may be right for some.
func (d *doctor) warn(about, mend, format string, args ...any) {
	d.warnings++
	d.finding("warn", about, fmt.Sprintf(format, args...), mend)
}

// fail tells of what keeps the gateway from working.
func (d *doctor) fail(about, mend, format string, args ...any) {
	d.failures++
	d.finding("FAIL", about, fmt.Sprintf(format, args...), mend)
}

// isRunning tells whether a gateway with this configuration is running, as far
// as is known.
func (d *doctor) isRunning() bool { return d.running != nil }
