package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"sheaf/engine"
	"sheaf/netstack"
	"sheaf/tunnel"
)

// defaultConfig is where a gateway's configuration is looked for.
const defaultConfig = "/etc/sheaf/sheaf.toml"

// configFlag adds the flag that names the configuration.
func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVarP(path, "config", "c", defaultConfig, "configuration `FILE`")
	_ = cmd.MarkFlagFilename("config", "toml") // fails only for a flag that is not there
}

// newUp returns the subcommand that runs a gateway.
func newUp() *cobra.Command {
	var path string
	var check, refuse bool
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring a gateway up",
		Long: `up runs a gateway until it is interrupted: it makes the device, its addresses
and routes, calls its peers or waits for them, and carries what lies behind them.
What others take from the device it puts back. All of it is gone again when it
ends, but for routes that refuse packets to what lies behind peers, so that they do
not leave in the clear: "sheaf down" removes those, and fallback = "route" in the
configuration does without. A peer that cannot be reached is called
again and again, and the log says why it could not be.

SIGHUP reads the routes of the configuration anew, and the guests' ports, without
touching a lane or a port that stays. It
does not matter whether anybody reads the log.

Exit codes: 0, it was interrupted, or the configuration is in order; 2, it could
not be brought up, or had to end.`,
		Example: `  sudo sheaf up
  sheaf up -c userspace-clients.toml
  sheaf up --check -c /etc/sheaf/sheaf.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return checkOnly(path, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			if refuse {
				return refuseOnly(path, cmd.OutOrStdout())
			}
			signal.Ignore(syscall.SIGPIPE) // whoever reads the log may go; the gateway stays
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return up(ctx, path, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	configFlag(cmd, &path)
	cmd.Flags().BoolVar(&check, "check", false, "only read the configuration and say whether it is in order")
	cmd.Flags().BoolVar(&refuse, "refuse", false, "only refuse packets to what lies behind peers, as while no gateway runs; for boot")
	cmd.MarkFlagsMutuallyExclusive("check", "refuse")
	return cmd
}

// checkOnly reads the configuration, and the files of guests' ports that it names. What is
// wrong with one of those is told, and keeps no gateway from starting.
func checkOnly(path string, stdout, stderr io.Writer) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	what := count(uint64(len(cfg.Peers)), "peer")
	if cfg.VM != nil {
		ports, faults := engine.InspectPorts(cfg)
		for _, f := range faults {
			if !f.Tolerated {
				return f
			}
			complain(stderr, f)
		}
		what += ", " + count(uint64(len(ports)), "guest")
	}
	_, err = fmt.Fprintf(stdout, "%s is in order: %s\n", path, what)
	return err
}

// refuseOnly adds the routes that refuse packets, and nothing else.
func refuseOnly(path string, stdout io.Writer) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	refused, err := engine.Refuse(cfg)
	if err != nil {
		return upTrouble(err, cfg)
	}
	_, err = fmt.Fprintf(stdout, "%s behind peers refused until a gateway runs\n", count(uint64(len(refused)), "subnet"))
	return err
}

// up runs the gateway of a configuration file until ctx ends.
func up(ctx context.Context, path string, stdout, stderr io.Writer) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	log, err := newLogger(stderr, cfg.Log)
	if err != nil {
		return err
	}
	g, err := engine.New(cfg, log)
	if err != nil {
		return upTrouble(err, cfg)
	}
	defer func() { _ = g.Close() }()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	fmt.Fprintf(stdout, "sheaf is up: %s\n", g.Describe())

	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				again, err := loadConfig(path)
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

// loadConfig reads a configuration. The error says what to do about it.
func loadConfig(path string) (*engine.Config, error) {
	cfg, err := engine.LoadConfig(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; write one, as examples/ has them, or name another with -c FILE", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w; run as root, or as its owner", err)
	case err != nil:
		return nil, err
	}
	if _, err := newLogger(io.Discard, cfg.Log); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, engine.ErrConfig, err)
	}
	return cfg, nil
}

// upTrouble adds to an error of a gateway that could not be set up what to do
// about it, where the error does not say so itself.
func upTrouble(err error, cfg *engine.Config) error {
	var overlap *netstack.OverlapError
	switch {
	case errors.As(err, &overlap), errors.Is(err, netstack.ErrPermission), errors.Is(err, netstack.ErrNoTUN),
		errors.Is(err, netstack.ErrInUse), errors.Is(err, tunnel.ErrPermissions):
		return err // each says what to do
	case errors.Is(err, tunnel.ErrInUse):
		return fmt.Errorf("%w; see who with: ss -lptun 'sport = :%s', or set listen to another port", err, splitPort(cfg.Listen))
	case errors.Is(err, tunnel.ErrKey):
		return fmt.Errorf("%w; set key to a file that \"sheaf keygen\" made", err)
	case errors.Is(err, fs.ErrNotExist) && errors.Is(err, tunnel.ErrLoadKey):
		return fmt.Errorf("%w; make one with: sheaf keygen %s", err, cfg.Key)
	case errors.Is(err, fs.ErrPermission) && errors.Is(err, tunnel.ErrLoadKey):
		return fmt.Errorf("%w; run as root, or as the owner of the key", err)
	case errors.Is(err, fs.ErrPermission) && errors.Is(err, tunnel.ErrListen):
		return fmt.Errorf("%w; run as root, or set listen to a port from 1024 on", err)
	case (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)) && errors.Is(err, engine.ErrControl):
		return fmt.Errorf("%w; run as root, or set control to a path in a folder that exists and is yours", err)
	}
	return err
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
