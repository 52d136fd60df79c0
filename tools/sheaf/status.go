package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sheaf/engine"
)

// watchInterval is how often --watch asks anew.
const watchInterval = time.Second

// statusOptions are the options of the subcommand.
type statusOptions struct {
	control     string
	json, watch bool
	events      int
}

// newStatus returns the subcommand that shows what a running gateway does.
func newStatus() *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show peers, lanes and savings of a running gateway",
		Long: `status asks a running gateway how it does: which peers are up and over what, what
its lanes did, what went in and what crossed the link each way, where the bytes
went, by protocol and by event, and why frames were sent when they were.

Bytes "in" are those of the IP packets, "on the link" those of frames with about
what the carrier adds. Where bytes went, messages and reasons are told of what
this gateway sent; ask the other one about the way back.`,
		Example: `  sheaf status
  sheaf status --watch
  sheaf status --json | jq '.peers[] | {name, up, rtt_ns}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.events < 0 {
				return usage(cmd, fmt.Errorf("--events %d: expected 0 or more rows", o.events))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return showStatus(ctx, &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.json, "json", false, "print a JSON object; with --watch one a second, each on a line")
	f.BoolVar(&o.watch, "watch", false, "show it anew every second, with what moved since, until interrupted")
	f.IntVar(&o.events, "events", 10, "rows of events in the table of a peer")
	f.StringVar(&o.control, "control", engine.DefaultControl, "control socket of the gateway, a `PATH`")
	return cmd
}

// showStatus shows the status once, or every second until ctx ends.
func showStatus(ctx context.Context, o *statusOptions, stdout, stderr io.Writer) error {
	client, to := engine.NewClient(o.control), newScreen(stdout)
	var before *engine.Status
	lost := false
	for tick := time.Tick(watchInterval); ; {
		s, err := client.Status(ctx)
		switch {
		case err == nil:
			if before != nil && !before.Since.Equal(s.Since) {
				before = nil
			}
			if err := o.show(to, &s, before); err != nil {
				return fmt.Errorf("writing the status on standard output: %w", err)
			}
			before, lost = &s, false
		case ctx.Err() != nil:
			return nil
		case before == nil:
			return asked(err, o.control)
		case !lost: // a gateway that is restarted comes back: the watch goes on
			complain(stderr, asked(err, o.control))
			lost = true
		}
		if !o.watch {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

// show writes one status.
func (o *statusOptions) show(to *screen, s, before *engine.Status) error {
	var b bytes.Buffer
	if o.json {
		enc := json.NewEncoder(&b)
		if !o.watch {
			enc.SetIndent("", "  ")
		}
		if err := enc.Encode(s); err != nil {
			return err
		}
		_, err := to.w.Write(b.Bytes())
		return err
	}
	writeStatus(&b, s, before, o.events)
	if !o.watch {
		_, err := to.w.Write(b.Bytes())
		return err
	}
	return to.redraw(b.String())
}

// asked adds to an error of the control socket what to do about it.
func asked(err error, control string) error {
	switch {
	case errors.Is(err, engine.ErrNotRunning):
		return fmt.Errorf("%w; start one with \"sheaf up\", or name its socket with --control PATH", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w; try sudo", err)
	}
	return fmt.Errorf("control socket %s: %w", control, err)
}

// A screen is where a watch is shown: a terminal is drawn over, anything else
// gets one report after the other.
type screen struct {
	w     io.Writer
	fd    int // of the terminal, or -1
	drawn bool
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w, fd: -1}
	if f, ok := w.(interface{ Fd() uintptr }); ok && term.IsTerminal(int(f.Fd())) {
		s.fd = int(f.Fd())
	}
	return s
}

// redraw shows a text in place of the one before.
func (s *screen) redraw(text string) error {
	if s.fd < 0 {
		if s.drawn {
			text = "\n" + text
		}
		s.drawn = true
		_, err := io.WriteString(s.w, text)
		return err
	}
	width, height, err := term.GetSize(s.fd)
	if err == nil {
		text = clip(text, width, height)
	}
	const home, eraseLine, eraseBelow = "\x1b[H", "\x1b[K", "\x1b[J"
	_, err = io.WriteString(s.w, home+strings.ReplaceAll(text, "\n", eraseLine+"\n")+eraseBelow)
	return err
}

// clip cuts a text to a screen of so many columns and lines.
func clip(text string, width, height int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if width <= 0 || height <= 1 {
		return text
	}
	if more := len(lines) - (height - 1); more > 0 {
		lines = append(lines[:height-2], fmt.Sprintf("(%s more; a taller window or no --watch shows them)", count(uint64(more+1), "line")))
	}
	for i, line := range lines {
		if columns(line) > width {
			lines[i] = head(line, width-1) + "…"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
