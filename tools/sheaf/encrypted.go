package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// encrypted sums up the traffic whose messages nobody can see.
type encrypted struct {
	protocols  []string
	bytes, all uint64 // of IP packets
}

// add counts the bytes of a protocol.
func (e *encrypted) add(protocol string, hidden bool, bytes uint64) {
	e.all += bytes
	if !hidden {
		return
	}
	e.bytes += bytes
	if !slices.Contains(e.protocols, protocol) {
		e.protocols = append(e.protocols, protocol)
	}
}

// hides says whether messages of a kind hide what they carry, of a protocol that can: of
// TLS it is the records that nobody opened.
func hides(encrypted bool, message string) bool { return encrypted && message == "application_data" }

// writeEncrypted writes how much of the traffic is hidden, and what opens it.
func writeEncrypted(w io.Writer, e encrypted) {
	if e.bytes == 0 {
		return
	}
	slices.Sort(e.protocols)
	fmt.Fprintf(w, "\n  encrypted: headers and acknowledgements only, for %.0f%% of the traffic (%s). What opens\n",
		100*float64(e.bytes)/float64(e.all), printable(strings.Join(e.protocols, ", ")))
	fmt.Fprintln(w, "  it: [[tls]] in a gateway's file, --keylog FILE in replay; docs/manual.md, \"TLS inside\n  the flow\".")
}

// marked returns the name of a protocol with what a table has to say about it.
func marked(protocol string, hidden bool) string {
	if hidden {
		return protocol + " (encrypted)"
	}
	return protocol
}
