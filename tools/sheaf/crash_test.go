package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/engine"
)

// commandLine is the environment variable whose lines are the arguments with which
// the test binary is the command: a process of its own, which can be killed.
const commandLine = "SHEAF_TEST_COMMAND_LINE"

func TestMain(m *testing.M) {
	if args := os.Getenv(commandLine); args != "" {
		os.Exit(run(strings.Split(args, "\n"), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// command returns the command as a process of its own, not started yet.
func command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), commandLine+"="+strings.Join(args, "\n"))
	return c
}

// process starts the command as a process of its own, which ends with the test.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := command(args...)
	log := &record{}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("sheaf %q:\n%s", args, log)
		}
	})
	return c
}

// A client that only listens learns of it when the gateway beside the broker has
// crashed and is back: its connection ended with that gateway.
func TestCrashIsToldToListeners(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "hello")
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	p := newPair(t, server.Addr().String())
	broker := process(t, "up", "-c", p.broker)
	started(t, p.clients)
	var listeners []net.Conn
	for range 10 {
		c := dial(t, p.local)
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, c)
	}

	if err := broker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = broker.Wait()
	process(t, "up", "-c", p.broker)
	eventually(t, "the lanes", func() bool {
		s, err := engine.NewClient(p.control).Status(t.Context())
		return err == nil && s.Peers[0].Lanes[0].Up && s.Peers[0].Lanes[0].Epochs > 1
	})
	for _, c := range listeners {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%d bytes, %v; want a reset", n, err)
		}
	}
}
