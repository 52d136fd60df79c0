package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sheaf/engine"
)

// newPort returns the subcommand that changes the guests' ports of a running gateway.
func newPort() *cobra.Command {
	var control string
	cmd := &cobra.Command{
		Use:   "port",
		Short: "List, add or remove virtual machines' ports of a running gateway",
		Long: `port asks a running gateway with a [vm] which guests' ports it has, and plugs others
in or takes them out, without touching any other. A port may also be a [[vm.port]] of
the configuration, or a file in [vm]'s directory.`,
		Example: `  sheaf port list
  sheaf port add meter-1 vhost-user:/run/sheaf/meter-1.sock --address 10.1.0.11
  sheaf port add meter-2 stream:/run/sheaf/meter-2.sock --save /etc/sheaf/ports
  sheaf port del meter-1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, errors.New("expected list, add or del"))
			}
			return usage(cmd, fmt.Errorf("unknown command %q: expected list, add or del", args[0]))
		},
	}
	cmd.PersistentFlags().StringVar(&control, "control", engine.DefaultControl, "control socket of the gateway, a `PATH`")
	cmd.AddCommand(newPortList(&control), newPortAdd(&control), newPortDel(&control))
	return cmd
}

func newPortList(control *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the guests' ports",
		Long: `list lists the guests' ports by name: whether a guest is there, what it may send from,
where its hypervisor connects, and where the port comes from. "sheaf status" has
what they counted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ports, err := engine.NewClient(*control).Ports(cmd.Context())
			if err != nil {
				return routeTrouble(err, *control)
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(ports)
			}
			return listPorts(cmd.OutOrStdout(), ports)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, as guests.ports of \"sheaf status --json\"")
	return cmd
}

// listPorts writes a row for each port.
func listPorts(w io.Writer, ports []engine.PortStatus) error {
	t := newTable("port", "", "MAC", "addresses", "at", "by")
	for i := range ports {
		p := &ports[i]
		t.add(printable(p.Name), portState(p), orDash(p.MAC), orDash(addresses(p.Addresses)), printable(p.At), printable(p.From))
	}
	var b bytes.Buffer
	t.write(&b)
	_, err := w.Write(bytes.TrimPrefix(b.Bytes(), []byte("\n")))
	return err
}

// portState says in a word how it is with a port's guest.
func portState(p *engine.PortStatus) string {
	switch {
	case p.Link.Up:
		return "up"
	case p.Link.Fault != "":
		return "fault"
	}
	return "waits"
}

// addresses lists them.
func addresses(all []netip.Addr) string {
	var text []string
	for _, a := range all {
		text = append(text, a.String())
	}
	return strings.Join(text, ", ")
}

// orDash returns what is not empty.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// portOptions are the options of "sheaf port add".
type portOptions struct {
	dial      bool
	mac       string
	addresses []string
	cid       uint32
	save      string
}

// port returns the port that is asked for.
func (o *portOptions) port(name, at string) (p engine.VMPort, err error) {
	p = engine.VMPort{Name: name, At: at, Dial: o.dial, MAC: o.mac, CID: o.cid}
	for _, s := range o.addresses {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return p, fmt.Errorf("--address %q: expected an address like 10.1.0.11", s)
		}
		p.Address = append(p.Address, engine.Prefix{Prefix: netip.PrefixFrom(a, a.BitLen())})
	}
	if p.Kind() == "" {
		return p, fmt.Errorf("%q: expected KIND:PATH, where KIND is one of %s", at, strings.Join(engine.PortKinds, ", "))
	}
	path, err := filepath.Abs(p.Path()) // the gateway may run elsewhere
	if err != nil {
		return p, err
	}
	if p.Path() != "" {
		p.At = p.Kind() + ":" + path
	}
	return p, nil
}

func newPortAdd(control *string) *cobra.Command {
	var o portOptions
	cmd := &cobra.Command{
		Use: "add NAME KIND:PATH", Short: "Plug a guest's port in",
		Long: `add plugs a port in, until the gateway ends or reads its configuration anew; with
--save beyond that. When it returns the socket is there. KIND is one of
` + strings.Join(engine.PortKinds, ", ") + `; PATH is that of a unix socket, which the gateway
makes, for its own user only.

The name of a port that was there before goes on with its counters.`,
		Args: portArgs(2, "NAME KIND:PATH, such as meter-1 vhost-user:/run/sheaf/meter-1.sock"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.port(args[0], args[1])
			if err != nil {
				return usage(cmd, err)
			}
			if err := engine.NewClient(*control).AddPort(cmd.Context(), p); err != nil {
				return routeTrouble(err, *control)
			}
			if o.save != "" {
				if err := savePort(o.save, &p); err != nil {
					return fmt.Errorf("the port is in use, but was not saved: %w", err)
				}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is at %s\n", printable(p.Name), printable(p.At))
			return err
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.dial, "dial", false, "the hypervisor listens at PATH, and the gateway calls it")
	f.StringVar(&o.mac, "mac", "", "all that the guest may send from, a `MAC` (default: that of its first frame)")
	f.StringSliceVar(&o.addresses, "address", nil, "of the guest, an `ADDR`; can be given again for IPv6 (default: leased)")
	f.Uint32Var(&o.cid, "cid", 0, "the guest's `NUMBER`, of "+engine.KindVsock)
	f.StringVar(&o.save, "save", "", "also write the port to `PATH`: a configuration file, or a folder of ports")
	return cmd
}

func newPortDel(control *string) *cobra.Command {
	var save string
	cmd := &cobra.Command{
		Use: "del NAME", Short: "Take a guest's port out",
		Long: `del takes a port out and removes its socket, until the gateway ends or reads its
configuration anew; with --save beyond that. Its counters are kept.`,
		Args:              portArgs(1, "NAME, such as meter-1"),
		ValidArgsFunction: completePorts(control),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := engine.NewClient(*control).DelPort(cmd.Context(), name); err != nil {
				return routeTrouble(err, *control)
			}
			if save != "" {
				if err := forgetPort(save, name); err != nil {
					return fmt.Errorf("the port is gone, but that was not saved: %w", err)
				}
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is gone\n", printable(name))
			return err
		},
	}
	cmd.Flags().StringVar(&save, "save", "", "also remove the port from `PATH`: a configuration file, or a folder of ports")
	return cmd
}

// portArgs checks the number of arguments.
func portArgs(want int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != want {
			return usage(cmd, fmt.Errorf("%s given: expected %s", count(uint64(len(args)), "argument"), what))
		}
		return nil
	}
}

// completePorts completes the argument with the ports of the gateway.
func completePorts(control *string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ports, err := engine.NewClient(*control).Ports(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for i := range ports {
			names = append(names, ports[i].Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
