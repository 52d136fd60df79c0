package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.pcap")
	var out bytes.Buffer
	args := []string{"-workload", "control", "-clients", "3", "-messages", "2", "-seed", "9"}
	if err := run(append(args, "-o", path), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "out.pcap: ") {
		t.Errorf("it says %q", out.String())
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := run(append(args, "-o", "-"), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, out.Bytes()) || len(file) < 1000 {
		t.Errorf("%d bytes to the file, %d different ones to standard output", len(file), out.Len())
	}
}

func TestFailureLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	err := run([]string{"-workload", "fanout", "-qos", "3", "-o", filepath.Join(dir, "out.pcap")}, io.Discard, io.Discard)
	if err == nil {
		t.Error("QoS 3 was accepted")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "-dir DIR"},
		{[]string{"-dir", "x", "-o", "y"}, "neither"},
		{[]string{"-workload", "fanout"}, "-o FILE"},
		{[]string{"-workload", "nothing", "-o", "-"}, "want one of"},
		{[]string{"fanout"}, "unexpected argument"},
		{[]string{"-record", "x", "-dir", "y"}, "none of"},
		{[]string{"-only", "bulk"}, "-record DIR"},
		{[]string{"-record", t.TempDir(), "-only", "nothing"}, "lists the workloads"},
		{[]string{"-record", t.TempDir(), "-only", "amqp-fanout-100"}, "no broker to embed"},
		{[]string{"-dir", filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		err := run(tt.args, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want something with %q", tt.args, err, tt.want)
		}
	}
	if err := run([]string{"-nonsense"}, io.Discard, io.Discard); !errors.Is(err, errUsage) {
		t.Errorf("unknown flag: %v", err)
	}
	var help bytes.Buffer
	if err := run([]string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "fanoutskew") {
		t.Errorf("-h: %v, %q", err, help.String())
	}
}

func TestRecording(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run([]string{"-record", dir, "-only", "bulk"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "bulk.pcap.gz"))
	if err != nil || info.Size() < 300_000 || !strings.Contains(out.String(), "bulk.pcap.gz: ") {
		t.Errorf("%v, %v: %s", info, err, out.String())
	}
}
