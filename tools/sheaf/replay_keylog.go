package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sheaf/engine/keylog"
	"sheaf/pcap"
	"sheaf/tools/replay"
)

// maxKeyLog bounds a key log that is read as a whole, in bytes: about the secrets of as
// many connections as a store takes.
const maxKeyLog = keylog.DefaultConnections << 10

// A keyLogs is the text of the files that --keylog names, in their order.
type keyLogs [][]byte

// readKeyLogs reads the files. What is in them is not said in any error.
func readKeyLogs(files []string) (all keyLogs, err error) {
	defer func() {
		if err != nil {
			all.clear()
		}
	}()
	for _, name := range files {
		text, err := readKeyLog(name)
		if err != nil {
			return all, fmt.Errorf("--keylog %s: %w", printable(name), err)
		}
		all = append(all, text)
	}
	return all, nil
}

func readKeyLog(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the name is said elsewhere
		}
		return nil, fmt.Errorf("cannot be opened: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxKeyLog+1))
	switch {
	case err != nil:
		clear(text)
		return nil, fmt.Errorf("cannot be read: %w", errors.Unwrap(err))
	case len(text) > maxKeyLog:
		clear(text)
		return nil, fmt.Errorf("is longer than %s; the lines of other days can go", size(maxKeyLog))
	}
	return text, nil
}

// clear clears the secrets.
func (k keyLogs) clear() {
	for _, text := range k {
		clear(text)
	}
}

// store returns a store with the secrets of the key logs, which also gets those that the
// capture brings.
func (k keyLogs) store(in *pcap.Reader) *keylog.Store {
	s := keylog.NewStore(0)
	for _, text := range k {
		s.Add(text)
	}
	in.KeyLog(s.Add)
	return s
}

// secretsOf returns what a report has to say of a store.
func secretsOf(s *keylog.Store) *replay.SecretsReport {
	n := s.Stats()
	if n.Connections+n.Bad == 0 {
		return nil
	}
	return &replay.SecretsReport{Connections: n.Connections, Met: n.Asked, Evicted: n.Evicted, BadLines: n.Bad}
}

// writeSecrets writes what is odd about the secrets that there were.
func writeSecrets(w io.Writer, s *replay.SecretsReport) {
	if s == nil {
		return
	}
	if s.BadLines > 0 {
		fmt.Fprintf(w, "\n  hint: %s of key logs could not be read.\n", count(s.BadLines, "line"))
	}
	if s.Evicted > 0 {
		fmt.Fprintf(w, "\n  hint: the secrets of %s gave way to others: more are not kept at once.\n", count(s.Evicted, "connection"))
	}
	if s.Met == 0 && s.Connections > 0 {
		fmt.Fprintf(w, "\n  hint: there are secrets of %s, and none of them is in this capture with its\n  beginning: a connection is known by its ClientHello.\n", count(s.Connections, "connection"))
	}
}
