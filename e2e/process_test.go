package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// A process runs for the length of a test or less.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  output
	done chan struct{}
	err  error // of Wait, once done is closed
}

// output collects what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch starts cmd. It is killed when the test ends, or the test's process
// does; its output is shown if the test fails.
func launch(t *testing.T, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: cmd, done: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.log
	}
	cmd.Stderr = &p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("---- %s ----\n%s", name, tail(p.log.String(), 60))
		}
	})
	return p
}

// end sends a signal and waits until the process is gone.
func (p *process) end(sig syscall.Signal) {
	select {
	case <-p.done:
		return
	default:
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.t.Errorf("%s: still there 10 s after %v", p.name, sig)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// running tells whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("(%d lines before)", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}

// A helper is this test binary in a role, in a namespace.
type helper struct {
	*process
	stdin  io.WriteCloser
	lines  chan string
	result []byte // its last line, once lines is closed
}

const (
	roleEnv = "SHEAF_E2E_ROLE"
	argsEnv = "SHEAF_E2E_ARGS"
	ready   = "ready" // the line by which a helper says so
)

// help starts a role and waits until it is ready.
func (n *node) help(role string, args any) *helper {
	t := n.lab.t
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := n.command(self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, argsEnv+"="+string(b))
	h := &helper{lines: make(chan string, 16)}
	out, w := io.Pipe()
	cmd.Stdout = w
	if h.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	h.process = launch(t, role+" in "+n.name, cmd)
	go func() {
		<-h.done
		w.Close()
	}()
	go func() {
		defer close(h.lines)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if s := lines.Text(); s == ready {
				h.lines <- s
			} else {
				h.result = []byte(s)
			}
		}
	}()
	select {
	case s := <-h.lines:
		if s != ready {
			t.Fatalf("%s ended before it was ready", h.name)
		}
	case <-time.After(60 * time.Second):
		t.Fatalf("%s is not ready after 60 s", h.name)
	}
	return h
}

// finish tells the helper to come to an end, and waits for its result.
func (h *helper) finish(result any) {
	h.t.Helper()
	h.stdin.Close()
	h.wait(result)
}

// wait waits until the helper ends by itself, and reads its result.
func (h *helper) wait(result any) {
	h.t.Helper()
	select {
	case <-h.lines: // closed
	case <-time.After(90 * time.Second):
		h.t.Fatalf("%s does not end", h.name)
	}
	<-h.done
	if h.err != nil {
		h.t.Fatalf("%s: %v", h.name, h.err)
	}
	if result != nil {
		if err := json.Unmarshal(h.result, result); err != nil {
			h.t.Fatalf("%s: %q: %v", h.name, h.result, err)
		}
	}
}

// roles are what this binary can be besides a test.
var roles = map[string]func(args []byte) (result any, err error){
	"subscribe": role(subscribe),
	"publish":   role(publish),
	"report":    role(reportTelemetry),
	"fetch":     role(fetch),
	"resume":    role(resumeMany),
	"relay":     role(relay),
	"proxied":   role(plainServer),
	"odd":       role(sendOdd),
	"connect":   role(connectMany),
	"refused":   role(dialRefused),
	"inject":    role(inject),
	"reach":     role(reach),
	"stranger":  role(beStrange),
	"storm":     role(storm),
	"sink":      role(countDatagrams),
	"name":      role(name),

	"time-connects": role(timeConnects),
}

func role[A, R any](f func(A) (R, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) {
		var args A
		if err := json.Unmarshal(b, &args); err != nil {
			return nil, err
		}
		return f(args)
	}
}

func TestMain(m *testing.M) {
	name := os.Getenv(roleEnv)
	if name == "" {
		code := m.Run()
		removeProgram()
		removeImages()
		os.Exit(code)
	}
	f := roles[name]
	if f == nil {
		fmt.Fprintf(os.Stderr, "no role %q\n", name)
		os.Exit(2)
	}
	mqtt.ERROR = log.New(os.Stderr, "", 0)
	result, err := f([]byte(os.Getenv(argsEnv)))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
}

// sayReady is called by a role when others may go on.
func sayReady() { fmt.Println(ready) }

// untilTold waits until the test says that it is time.
func untilTold() { _, _ = io.Copy(io.Discard, os.Stdin) }
