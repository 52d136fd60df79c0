package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// program stands in for go in a repository made for the test: it says what is in a
// file there, if the program has been put beside it and is told where to look.
const program = `#!/bin/sh
test -f tools/frames/main.go && test "$1 $2" = "run ./tools/frames" || exit 9
while [ $# -gt 1 ]; do shift; done
test -d "$1" || exit 9
cat lines
`

// TestScript compares commits of a repository.
func TestScript(t *testing.T) {
	script, err := filepath.Abs("../frames.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("CAPTURES", dir)
	stub := filepath.Join(t.TempDir(), "go")
	if err := os.WriteFile(stub, []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GO", stub)
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=x", "-c", "user.email=x@example.net"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	commit := func(name, lines string) {
		write(t, dir, "lines", []byte(lines))
		git("add", ".")
		git("commit", "-q", "-m", name)
		git("tag", name)
	}
	const (
		vector  = "vector\tv\t00\n"
		capture = "a.pcap\tfew\tup 3/90\tdown 4/80\tpackets 9\tbytes 12\ttimes 34\n"
	)
	git("init", "-q")
	commit("nothing", vector)
	commit("first", vector+capture)
	write(t, dir, "tools/frames/main.go", nil) // which the commits before do not have
	commit("more", "vector\tu\t01\n"+vector+capture)
	commit("another", strings.Replace(vector+capture, "bytes 12", "bytes 13", 1))
	commit("fewer", capture)

	for _, tt := range []struct {
		args string
		code int
		says string // in its output
	}{
		{"first first", 0, "1 captures, 7 frames, 1 vectors, all the same\n"},
		{"-quick first more", 0, "1 captures, 7 frames, 1 vectors, all the same\n"},
		{"first another", 1, "> a.pcap\tfew\tup 3/90\tdown 4/80\tpackets 9\tbytes 13"},
		{"first fewer", 1, "< vector\tv\t00\n"},
		{"fewer", 0, "1 captures, 7 frames, 0 vectors, all the same\n"}, // as the working tree
		{"nothing nothing", 1, "0 captures"},
		{"first unknown", 128, "unknown"},
		{"", 2, "usage"},
	} {
		cmd := exec.Command(script, strings.Fields(tt.args)...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != tt.code || !strings.Contains(string(out), tt.says) {
			t.Errorf("frames.sh %s: %v, want exit code %d and %q:\n%s", tt.args, err, tt.code, tt.says, out)
		}
	}
	if out, err := exec.Command("git", "worktree", "list").Output(); err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("worktrees are left, %v:\n%s", err, out)
	}
}
