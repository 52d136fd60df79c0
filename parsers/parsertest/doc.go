// Package parsertest is what the tests of the protocol packages share: what Parse
// says of messages that are whole, cut and malformed, what every span has to keep
// to, the properties of scanners whose input is cut, lost or repeated, the tables of
// probes and streams, the walk through capture files, and the packets to feed them
// with. A protocol's tests bring their tables, generators and what is special to it.
//
// Only tests import it.
package parsertest
