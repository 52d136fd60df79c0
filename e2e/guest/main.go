// Guest is the first and only program of a virtual machine that a test boots: it mounts
// what it needs, loads the kernel's modules in the order of /modules, and does what package
// order describes, told by the second serial port.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/e2e/order"
)

// orders are what a guest can be told.
var orders = map[string]func([]byte) (any, error){
	"net":        does(bringUp),
	"connect":    does(connect),
	"publish":    does(publish),
	"received":   does(received),
	"disconnect": does(disconnect),
	"ping":       does(ping),
	"flood":      does(flood),
	"frames":     does(sendFrames),
	"hear":       does(hear),
	"dial":       does(dial),
	"resolve":    does(resolve),
	"run":        does(run),
	"relay":      does(relay),
	"reboot":     does(reboot),
	"crash":      does(crash),
}

func does[A, R any](f func(A) (R, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) {
		var a A
		if err := json.Unmarshal(b, &a); err != nil {
			return nil, err
		}
		return f(a)
	}
}

func main() {
	if err := boot(); err != nil {
		fmt.Println("guest:", err)
	}
	console, err := openConsole()
	if err == nil {
		err = serve(console)
	}
	fmt.Println("guest:", err)
	halt(unix.LINUX_REBOOT_CMD_POWER_OFF) // or the kernel panics, as its first program has ended
}

// An answerer writes lines of orders that run beside one another.
type answerer struct {
	mu sync.Mutex
	w  io.Writer
}

func (a *answerer) answer(id int, result any, err error) {
	line := order.Line{ID: id}
	if err != nil {
		line.Error = err.Error()
	} else if line.Result, err = json.Marshal(result); err != nil {
		line.Error = err.Error()
	}
	b, _ := json.Marshal(line)
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.w.Write(append(b, '\n'))
}

// serve does what the lines say until there is no more.
func serve(console io.ReadWriter) error {
	a := &answerer{w: console}
	a.answer(0, booted(), nil)
	lines := bufio.NewScanner(console)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var l order.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			fmt.Printf("guest: %q: %v\n", lines.Bytes(), err)
			continue
		}
		f := orders[l.Do]
		if f == nil {
			a.answer(l.ID, nil, fmt.Errorf("no order %q", l.Do))
			continue
		}
		go func() {
			result, err := f(l.With)
			a.answer(l.ID, result, err)
		}()
	}
	return errors.Join(lines.Err(), io.EOF)
}

// booted tells of the guest.
func booted() order.Booted {
	b := order.Booted{NICs: map[string]string{}}
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) == nil {
		b.Uptime = time.Duration(t.Nano())
	}
	nics, _ := net.Interfaces()
	for _, n := range nics {
		if len(n.HardwareAddr) > 0 {
			b.NICs[n.HardwareAddr.String()] = n.Name
		}
	}
	return b
}

// reboot does not return if it succeeds.
func reboot(struct{}) (any, error) { return nil, halt(unix.LINUX_REBOOT_CMD_RESTART) }

func halt(how int) error { return unix.Reboot(how) }

// crash has the kernel fall over (admin-guide/sysrq.rst).
func crash(struct{}) (any, error) {
	return nil, os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
}
