package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sheaf/pcap"
)

// A rebuiltFile is the capture that --out writes.
type rebuiltFile struct {
	path string
	file *os.File
	buf  *bufio.Writer
	zip  *gzip.Writer // nil where the file is plain
	pcap *pcap.Writer
}

// createRebuilt creates the file, unless it is the one being read.
func createRebuilt(path string, input io.Reader) (*rebuiltFile, error) {
	if in, ok := input.(*os.File); ok {
		was, err := in.Stat()
		is, missing := os.Stat(path)
		if err == nil && missing == nil && os.SameFile(was, is) {
			return nil, fmt.Errorf("--out %s would overwrite the capture being read; expected another file", printable(path))
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	o := &rebuiltFile{path: path, file: f, buf: bufio.NewWriter(f)}
	to := io.Writer(o.buf)
	if strings.HasSuffix(path, ".gz") {
		o.zip = gzip.NewWriter(o.buf)
		to = o.zip
	}
	if o.pcap, err = pcap.NewWriter(to); err != nil {
		o.discard()
		return nil, fmt.Errorf("--out %s: %w", printable(path), err)
	}
	return o, nil
}

// write adds a packet.
func (o *rebuiltFile) write(at time.Time, packet []byte) error {
	if err := o.pcap.Write(at, packet); err != nil {
		return fmt.Errorf("--out %s: %w", printable(o.path), err)
	}
	return nil
}

// close finishes the file.
func (o *rebuiltFile) close() error {
	var errs []error
	if o.zip != nil {
		errs = append(errs, o.zip.Close())
	}
	errs = append(errs, o.buf.Flush())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("--out %s: %w", printable(o.path), err) // discard removes it
	}
	err := o.file.Close()
	o.file = nil
	if err != nil {
		return fmt.Errorf("--out %s: %w", printable(o.path), err)
	}
	return nil
}

// discard removes a file that was not finished. After close it does nothing.
func (o *rebuiltFile) discard() {
	if o.file != nil {
		info, err := o.file.Stat()
		o.file.Close()
		if err == nil && info.Mode().IsRegular() { // and no device or pipe
			os.Remove(o.path)
		}
		o.file = nil
	}
}
