package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sheaf/tools/demo"
)

// newDemo returns the subcommand that shows the main job on one machine.
func newDemo() *cobra.Command {
	var cfg demo.Config
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "A broker, subscribers and two gateways in one process, no root",
		Long: `demo runs an MQTT broker, subscribers and publishers, and between them two
gateways joined over QUIC on loopback, each with an end in userspace. It shows
what a plain link would have carried and what crossed this one, checks every
message that a subscriber gets, and exits 1 if one was lost, doubled or changed.
Ctrl-C ends it early, and so does a reader of its output that goes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(syscall.SIGPIPE) // there is something to tidy up before the end
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return runDemo(ctx, cfg, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Subscribers, "subscribers", 100, "subscribers, each gets every message")
	f.IntVar(&cfg.Publishers, "publishers", 20, "publishers")
	f.DurationVar(&cfg.Interval, "interval", time.Second, "between two messages of a publisher")
	f.DurationVar(&cfg.For, "for", 15*time.Second, "how long to publish")
	return cmd
}

func runDemo(ctx context.Context, cfg demo.Config, stdout, stderr io.Writer) error {
	if cfg.Subscribers < 1 || cfg.Subscribers > 5000 || cfg.Publishers < 1 || cfg.Publishers > 1000 ||
		cfg.Interval < time.Millisecond || cfg.For < time.Second || cfg.For > time.Hour {
		return errors.New("demo: 1 to 5000 subscribers, 1 to 1000 publishers, an interval of 1ms at least, for 1s to 1h")
	}
	fmt.Fprintf(stdout, "%d subscribers, %d publishers -- gateway ~~ QUIC on loopback ~~ gateway -- broker\n\n",
		cfg.Subscribers, cfg.Publishers)
	fmt.Fprintf(stdout, "  time  published  delivered  wrong  a plain link carries  this one carried    less\n")
	ctx, end := context.WithCancel(ctx)
	defer end()
	var last demo.Figures
	cfg.Progress = func(f demo.Figures) {
		_, err := fmt.Fprintf(stdout, "%5.0fs  %9d  %9d  %5d  %18s/s  %14s/s  %5.1fx\n", f.Elapsed.Seconds(), f.Published, f.Delivered, f.Wrong,
			size(float64(f.Plain-last.Plain)), size(float64(f.Crossed-last.Crossed)), quotient(f.Plain-last.Plain, f.Crossed-last.Crossed))
		last = f
		if err != nil { // nobody looks at it any more
			end()
		}
	}
	f, err := demo.Run(ctx, cfg)
	if f.Published > 0 {
		fmt.Fprintf(stdout, "\n%d messages published, %d delivered, %d wrong, in %.1f s\n", f.Published, f.Delivered, f.Wrong, f.Elapsed.Seconds())
		fmt.Fprintf(stdout, "a plain link: %s in %d packets; this one: %s in %d, carrier and connection set-up included: %.1fx less\n",
			size(float64(f.Plain)), f.InPackets, size(float64(f.Crossed)), f.Packets, quotient(f.Plain, f.Crossed))
		if f.Delivered > 0 {
			fmt.Fprintf(stdout, "for each message delivered: %.1f bytes, %.1f on a plain link\n",
				float64(f.Crossed)/float64(f.Delivered), float64(f.Plain)/float64(f.Delivered))
		}
	}
	if err != nil {
		complain(stderr, fmt.Errorf("demo: %w", err))
		return status(exitDifferent)
	}
	return nil
}

func quotient(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
