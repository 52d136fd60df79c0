package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"sheaf/tunnel"
)

// newKeygen returns the subcommand that makes a gateway's key.
func newKeygen() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a gateway's key and print its fingerprint",
		Long: `keygen makes a new private key, writes it to FILE, readable by its owner only,
and prints the fingerprint by which other gateways know this one: it goes into
their configuration, as fingerprint of the [[peer]]. Where FILE exists, its
fingerprint is printed and nothing is written.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := tunnel.LoadKey(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				if key, err = tunnel.GenerateKey(); err == nil {
					err = key.Save(args[0])
				}
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), key.Fingerprint())
			return nil
		},
	}
}
