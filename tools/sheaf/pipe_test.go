package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/engine"
)

// piped starts a command whose standard output, or both outputs, are read through a
// pipe, and returns its reading end. It ends with the test.
func piped(t *testing.T, c *exec.Cmd, both bool) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout = w
	if both {
		c.Stderr = w
	}
	err = c.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return r
}

// line reads a line of an output and then goes.
func line(t *testing.T, r *os.File) string {
	t.Helper()
	s, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Errorf("read %q: %v", s, err)
	}
	r.Close()
	return s
}

// wait waits for the end of a command.
func wait(t *testing.T, c *exec.Cmd) *os.ProcessState {
	t.Helper()
	done := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		_ = c.Process.Kill()
		<-done
		t.Fatal("it does not end")
	}
	return c.ProcessState
}

// A gateway lives on when the reader of its log goes, and ends as ever.
func TestUpWithoutReader(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	c := command("up", "-c", p.clients)
	if s := line(t, piped(t, c, true)); !strings.HasPrefix(s, "sheaf is up") {
		t.Fatalf("it says %q", s)
	}
	routes := func() (all []string) {
		r, err := engine.NewClient(p.control).Routes(t.Context())
		if err != nil {
			t.Fatalf("%v; %v", err, wait(t, c))
		}
		for _, r := range r {
			all = append(all, r.Prefix.String())
		}
		return all
	}
	text, err := os.ReadFile(p.clients)
	if err != nil {
		t.Fatal(err)
	}
	// Each time it is told to read its routes anew it logs that it has. What is logged
	// after the first is written before the second is read.
	for _, prefix := range []string{"10.3.0.0/24", "10.4.0.0/24", "10.5.0.0/24"} {
		more := strings.Replace(string(text), `"10.2.0.0/24"`, `"10.2.0.0/24", "`+prefix+`"`, 1)
		if err := os.WriteFile(p.clients, []byte(more), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, prefix, func() bool { return strings.Contains(strings.Join(routes(), " "), prefix) })
	}
	if err := c.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if s := wait(t, c); s.ExitCode() != exitOK {
		t.Errorf("it ends with %v", s)
	}
	if _, err := os.Stat(p.control); err == nil {
		t.Error("the control socket is still there")
	}
}

// Commands whose output is for a reader end with it, without a word.
func TestReaderGoes(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	started(t, p.clients)
	capture := captured("fanout-10-ipv6.pcap.gz")
	files := []string{"replay"}
	for range 20 {
		files = append(files, capture)
	}
	killed := func(s *os.ProcessState) bool {
		w, ok := s.Sys().(syscall.WaitStatus)
		return ok && w.Signal() == unix.SIGPIPE
	}
	for name, test := range map[string]struct {
		args []string
		ends func(*os.ProcessState) bool
	}{
		"replay":         {files, killed},
		"status --watch": {[]string{"status", "--watch", "--control", p.control}, killed},
		// It has a folder of its own, and takes it away.
		"demo": {[]string{"demo", "--subscribers", "3", "--publishers", "1"}, func(s *os.ProcessState) bool { return s.ExitCode() == exitOK }},
	} {
		t.Run(name, func(t *testing.T) {
			c := command(test.args...)
			var said strings.Builder
			c.Stderr = &said
			dir := t.TempDir()
			c.Env = append(c.Env, "TMPDIR="+dir)
			line(t, piped(t, c, false))
			if s := wait(t, c); !test.ends(s) {
				t.Errorf("it ends with %v", s)
			}
			if said.Len() > 0 {
				t.Errorf("it says %q", said.String())
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("it leaves %q behind", left)
			}
		})
	}
}
