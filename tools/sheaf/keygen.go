package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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
fingerprint is printed and nothing is written.

The fingerprint alone is written on standard output, what to do with it on
standard error. The key never has to leave the host.`,
		Example: `  sudo sheaf keygen /etc/sheaf/key`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, fmt.Errorf("%d files given: expected one, such as /etc/sheaf/key", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := args[0]
			done := "was there already; nothing was written"
			key, err := tunnel.LoadKey(path)
			if errors.Is(err, fs.ErrNotExist) {
				done = "is written, readable by its owner only"
				if key, err = tunnel.GenerateKey(); err == nil {
					err = key.Save(path)
				}
			}
			if err != nil {
				return keyTrouble(err, path)
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), key.Fingerprint()); err != nil {
				return fmt.Errorf("writing the fingerprint on standard output: %w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), `The key %s %s.
In the configuration of this gateway:

    key = %q

In the configuration of each gateway that it talks to:

    [[peer]]
    fingerprint = "%v"
`, path, done, absolute(path), key.Fingerprint())
			return nil
		},
	}
}

// keyTrouble adds to an error about a key what to do about it.
func keyTrouble(err error, path string) error {
	folder := filepath.Dir(path)
	switch {
	case errors.Is(err, tunnel.ErrPermissions): // says it
	case errors.Is(err, tunnel.ErrKey):
		return fmt.Errorf("%w; name another file, or move this one away", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; make the folder first: mkdir -p -m 700 %s", err, folder)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; run as root, or name a file in a folder of your own", err)
	}
	return err
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
