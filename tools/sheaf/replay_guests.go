package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"

	"sheaf/engine"
	"sheaf/tools/replay"
)

// readGuests returns the names of guests by their addresses, as the files say: a gateway's
// configuration, with its ports' addresses and those of its directory, or what "sheaf port
// list --json" printed, with the addresses that were leased.
func readGuests(paths []string) (map[netip.Addr]string, error) {
	names := make(map[netip.Addr]string)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("--guests: %w", err)
		}
		before := len(names)
		if bytes.HasPrefix(bytes.TrimSpace(b), []byte("[{")) || bytes.Equal(bytes.TrimSpace(b), []byte("[]")) {
			err = addListed(names, b)
		} else {
			err = addConfigured(names, path)
		}
		if err != nil {
			return nil, fmt.Errorf("--guests %s: %w", path, err)
		}
		if len(names) == before {
			return nil, fmt.Errorf("--guests %s: no guest in it has an address; leases are in what \"sheaf port list --json\" prints", path)
		}
	}
	return names, nil
}

// addListed adds the guests of a list of ports.
func addListed(names map[netip.Addr]string, b []byte) error {
	var ports []engine.PortStatus
	if err := json.Unmarshal(b, &ports); err != nil {
		return fmt.Errorf("expected a configuration, or what \"sheaf port list --json\" prints: %w", err)
	}
	for i := range ports {
		for _, a := range ports[i].Addresses {
			names[a] = ports[i].Name
		}
	}
	return nil
}

// addConfigured adds the guests of a configuration.
func addConfigured(names map[netip.Addr]string, path string) error {
	cfg, err := engine.LoadConfig(path)
	if err != nil {
		return err
	}
	ports, _ := engine.InspectPorts(cfg) // what is wrong with sockets does not matter here
	for i := range ports {
		for _, a := range ports[i].Addresses() {
			names[a] = ports[i].Name
		}
	}
	return nil
}

// writeReplayedGuests writes a row for each guest, at most so many.
func writeReplayedGuests(w io.Writer, p *replay.Report, limit int) {
	if len(p.Guests) == 0 {
		return
	}
	t := newTable("by guest", "\tpackets", "\tin frames with others'", "\tin", "\tin frames", "\ton the link", "\t")
	for i := range p.Guests {
		g := &p.Guests[i]
		if i == limit {
			t.add(fmt.Sprintf("(%s more)", number(uint64(len(p.Guests)-limit))))
			break
		}
		t.add(printable(g.Name), number(g.Packets), number(g.Together), size(float64(g.BytesIn)), size(g.BytesFrames), size(g.BytesWire), ratio(float64(g.BytesIn), g.BytesWire))
	}
	t.write(w)
}
