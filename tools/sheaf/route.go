package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

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
		Example: `  sheaf route list
  sheaf route add 10.3.0.0/16 plant-7 --save /etc/sheaf/sheaf.toml
  sheaf route del 10.3.0.0/16 --save /etc/sheaf/sheaf.toml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, errors.New("expected list, add or del"))
			}
			return usage(cmd, fmt.Errorf("unknown command %q: expected list, add or del", args[0]))
		},
	}
	cmd.PersistentFlags().StringVar(&control, "control", engine.DefaultControl, "control socket of the gateway, a `PATH`")
	cmd.AddCommand(newRouteList(&control), newRouteAdd(&control), newRouteDel(&control))
	return cmd
}

func newRouteList(control *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the routes",
		Long: `list lists the subnets behind peers, and what this host's own routes do otherwise:
a route that is missing, or another one that takes the subnet or a part of it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			routes, err := engine.NewClient(*control).Routes(cmd.Context())
			if err != nil {
				return asked(err, *control)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(routes)
			}
			width := len("subnet")
			for _, r := range routes {
				width = max(width, len(r.Prefix.String()))
			}
			out := cmd.OutOrStdout()
			_, err = fmt.Fprintf(out, "%-*s  behind\n", width, "subnet")
			for _, r := range routes {
				line := fmt.Sprintf("%-*s  %s", width, r.Prefix, printable(r.Peer))
				if r.Fault != "" {
					line += ", but " + printable(r.Fault)
				}
				if err == nil {
					_, err = fmt.Fprintln(out, line)
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of prefix, peer and fault")
	return cmd
}

func newRouteAdd(control *string) *cobra.Command {
	var save string
	cmd := &cobra.Command{
		Use: "add SUBNET PEER", Short: "Route a subnet to a peer",
		Long: `add routes a subnet to a peer, until the gateway ends or reads its configuration
anew; with --save beyond that.`,
		Args:              subnetArgs(2, 2, "SUBNET PEER, such as 10.3.0.0/16 plant-7"),
		ValidArgsFunction: completePeers(control),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parseSubnet(args[0])
			if err != nil {
				return err
			}
			r := engine.Route{Prefix: p, Peer: args[1]}
			if err := engine.NewClient(*control).AddRoute(cmd.Context(), r); err != nil {
				return routeTrouble(err, *control)
			}
			if save != "" {
				if err := saveRoute(save, r); err != nil {
					return fmt.Errorf("the route is in use, but was not saved: %w", err)
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%v is behind %s\n", r.Prefix, printable(r.Peer))
			return err
		},
	}
	cmd.Flags().StringVar(&save, "save", "", "also add the subnet to the peer in this configuration `FILE`")
	_ = cmd.MarkFlagFilename("save", "toml") // fails only for a flag that is not there
	return cmd
}

func newRouteDel(control *string) *cobra.Command {
	var save string
	cmd := &cobra.Command{
		Use: "del SUBNET [PEER]", Short: "End the route of a subnet",
		Long: `del ends the route of a subnet, to PEER if that is given, until the gateway ends
or reads its configuration anew; with --save beyond that.`,
		Args:              subnetArgs(1, 2, "SUBNET [PEER], such as 10.3.0.0/16"),
		ValidArgsFunction: completePeers(control),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := parseSubnet(args[0])
			if err != nil {
				return err
			}
			client := engine.NewClient(*control)
			routes, err := client.Routes(cmd.Context())
			if err != nil {
				return asked(err, *control)
			}
			r := engine.Route{Prefix: p}
			for _, have := range routes {
				if have.Prefix == p {
					r.Peer = have.Peer
				}
			}
			switch {
			case r.Peer == "":
				return fmt.Errorf("%v is no route; see \"sheaf route list\"", p)
			case len(args) == 2 && args[1] != r.Peer:
				return fmt.Errorf("%v is behind %s, not behind %s", p, printable(r.Peer), printable(args[1]))
			}
			if err := client.DelRoute(cmd.Context(), r); err != nil {
				return routeTrouble(err, *control)
			}
			if save != "" {
				if err := forgetRoute(save, r); err != nil {
					return fmt.Errorf("the route has ended, but that was not saved: %w", err)
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%v is no longer behind %s\n", r.Prefix, printable(r.Peer))
			return err
		},
	}
	cmd.Flags().StringVar(&save, "save", "", "also remove the subnet from the peer in this configuration `FILE`")
	_ = cmd.MarkFlagFilename("save", "toml") // fails only for a flag that is not there
	return cmd
}

// subnetArgs checks the number of arguments.
func subnetArgs(least, most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage(cmd, fmt.Errorf("%s given: expected %s", count(uint64(len(args)), "argument"), want))
		}
		return nil
	}
}

// parseSubnet parses a prefix, or an address, which is a prefix of its own.
func parseSubnet(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, fmt.Errorf("%q is no subnet like 10.2.0.0/24", s)
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits past its length: did you mean %v?", s, p.Masked())
	}
	return p, nil
}

// routeTrouble tells what a gateway answered from that it did not.
func routeTrouble(err error, control string) error {
	if errors.Is(err, engine.ErrNotRunning) {
		return asked(err, control)
	}
	return err
}

// completePeers completes the second argument with the peers of the gateway.
func completePeers(control *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s, err := engine.NewClient(*control).Status(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, p := range s.Peers {
			names = append(names, p.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
