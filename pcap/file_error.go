package pcap

import (
	"errors"
	"fmt"
)

// ErrFormat is wrapped by the FileError for input that is not a capture at all.
var ErrFormat = errors.New("neither a pcap nor a pcapng capture")

// A FileError is damage to the capture file: from its place on nothing can be
// read. The records before it are good and have been handed out.
type FileError struct {
	Packet int    // number of the record being read, from 1; 0 in the file header
	Offset int64  // bytes into the (uncompressed) capture where that record or block begins
	What   string // what is wrong; names the packet where it is about one
	Err    error  // the cause, nil where What says it all; io.ErrUnexpectedEOF for an early end
}

// Error returns what is wrong, with its place in the file.
func (e *FileError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s (at byte %d): %v", e.What, e.Offset, e.Err)
	}
	return fmt.Sprintf("%s (at byte %d)", e.What, e.Offset)
}

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// A LinkTypeError tells that a capture has a link type that this package does
// not take apart.
type LinkTypeError struct {
	LinkType LinkType
}

// Error names the link type by number and name.
func (e *LinkTypeError) Error() string {
	return fmt.Sprintf("link type %s is not supported; supported are %s", e.LinkType, supportedLinkTypes())
}
