package main

import (
	"fmt"
	"net/netip"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sheaf/engine"
)

// newRoute returns the subcommand that changes the routes of a running gateway.
func newRoute() *cobra.Command {
	var control string
	cmd := &cobra.Command{
		Use:   "route",
		Short: "List, add or remove pub-sub subnets of a running gateway",
		Long: `route asks a running gateway which subnets lie behind which peer, and changes
that. The peer may then send from the subnet, and packets to it go through the
tunnel. The gateway at the other end must allow the way back.`,
	}
	cmd.PersistentFlags().StringVar(&control, "control", engine.DefaultControl, "control socket of the gateway")
	client := func() *engine.Client { return engine.NewClient(control) }

	list := &cobra.Command{
		Use: "list", Short: "List the routes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			routes, err := client().Routes(cmd.Context())
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "subnet\tbehind")
			for _, r := range routes {
				fmt.Fprintf(w, "%v\t%s\n", r.Prefix, r.Peer)
			}
			return w.Flush()
		},
	}
	add := &cobra.Command{
		Use: "add SUBNET PEER", Short: "Route a subnet to a peer", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := parseRoute(args)
			if err != nil {
				return err
			}
			save, _ := cmd.Flags().GetString("save")
			if err := client().AddRoute(cmd.Context(), r); err != nil || save == "" {
				return err
			}
			return engine.SaveRoute(save, r)
		},
	}
	add.Flags().String("save", "", "also add the subnet to the peer in this configuration `FILE`")
	del := &cobra.Command{
		Use: "del SUBNET PEER", Short: "End the route of a subnet", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := parseRoute(args)
			if err != nil {
				return err
			}
			return client().DelRoute(cmd.Context(), r)
		},
	}
	cmd.AddCommand(list, add, del)
	return cmd
}

func parseRoute(args []string) (engine.Route, error) {
	p, err := netip.ParsePrefix(args[0])
	if err != nil {
		return engine.Route{}, fmt.Errorf("%q is no subnet like 10.2.0.0/24", args[0])
	}
	return engine.Route{Prefix: p, Peer: args[1]}, nil
}
