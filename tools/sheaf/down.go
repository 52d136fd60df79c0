package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sheaf/engine"
)

// newDown returns the subcommand that removes what a gateway leaves behind.
func newDown() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Remove the routes that refuse packets while no gateway runs",
		Long: `down removes what a gateway leaves on the host when it ends: the routes that refuse
packets to what lies behind its peers, so that these do not leave in the clear. It
is for when the host is not to be a gateway any more. A gateway that runs is ended
first, with systemctl stop sheaf or an interrupt.`,
		Example: `  sudo systemctl disable --now sheaf && sudo sheaf down`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			if cfg.TUN == nil {
				return fmt.Errorf("%s has no [tun]: such a gateway makes no routes", path)
			}
			control := cmp.Or(cfg.Control, engine.DefaultControl)
			if _, err := engine.NewClient(control).Status(cmd.Context()); !errors.Is(err, engine.ErrNotRunning) {
				return fmt.Errorf("a gateway is running, and answers at %s: end it first, or it puts them back", control)
			}
			dropped, err := engine.Down(cfg)
			for _, p := range dropped {
				fmt.Fprintf(cmd.OutOrStdout(), "%v is refused no longer\n", p)
			}
			switch {
			case err != nil:
				return fmt.Errorf("%w; run as root", err)
			case len(dropped) == 0:
				fmt.Fprintln(cmd.OutOrStdout(), "nothing was left behind")
			}
			return nil
		},
	}
	configFlag(cmd, &path)
	return cmd
}
