package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sheaf/engine"
)

// defaultConfig is where a gateway's configuration is looked for.
const defaultConfig = "/etc/sheaf/sheaf.toml"

// newUp returns the subcommand that runs a gateway.
func newUp() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a gateway up",
		Long: `up runs a gateway until it is interrupted: it makes the device, its addresses
and routes, calls its peers or waits for them, and carries what lies behind them.
All of it is gone again when it ends. SIGHUP reads the routes of the configuration
anew, without touching a lane.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return up(ctx, path, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVarP(&path, "config", "c", defaultConfig, "configuration `FILE`")
	return cmd
}

func up(ctx context.Context, path string, stdout, stderr io.Writer) error {
	cfg, err := engine.LoadConfig(path)
	if err != nil {
		return err
	}
	log, err := newLogger(stderr, cfg.Log)
	if err != nil {
		return err
	}
	g, err := engine.New(cfg, log)
	if err != nil {
		return err
	}
	defer func() { _ = g.Close() }()
	fmt.Fprintf(stdout, "sheaf is up: %s\n", g.Describe())

	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				again, err := engine.LoadConfig(path)
				if err == nil {
					err = g.Reload(again)
				}
				if err != nil {
					log.Error("reload", "err", err)
				} else {
					log.Info("reloaded", "routes", len(g.Routes()))
				}
			}
		}
	}()
	return errors.Join(g.Run(ctx), g.Close())
}

// newLogger returns a logger for a level's name.
func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if level != "" {
		if err := l.UnmarshalText([]byte(level)); err != nil {
			return nil, fmt.Errorf("log = %q: expected debug, info, warn or error", level)
		}
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
