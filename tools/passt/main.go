// Passt stands in for the program of that name where QEMU (10.1 or later) starts it:
//
//	-netdev passt,id=n0,path=/usr/lib/sheaf/passt,param=--port,param=/run/sheaf/meter-1.sock
//
// It hands the socket that it was started with to the gateway whose port passt:PATH
// listens there, and stays as long as that serves it; link.OpenPasst has the rest. Where
// the gateway is not there, or goes away, it waits for it. Other options of passt's are
// taken and mean nothing: what they set is the gateway's to say.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// inherited is the descriptor that the one who stays has the guest's socket as.
	inherited = 3

	// again is the pause before the gateway is called again.
	again = 200 * time.Millisecond
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "passt of sheaf:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	port := value(args, "--port")
	if port == "" {
		return errors.New("needs --port PATH, a passt: port of the gateway: in QEMU param=--port,param=PATH")
	}
	if slices.Contains(args, "--stay") {
		return stay(port)
	}
	if slices.Contains(args, "--vhost-user") {
		return errors.New("vhost-user=on: use -netdev vhost-user with a vhost-user: port instead")
	}
	fd, err := strconv.Atoi(value(args, "--fd"))
	if err != nil {
		return errors.New("needs --fd N, as QEMU's -netdev passt gives it")
	}
	return leave(fd, value(args, "--pid"), port)
}

// value returns what stands behind an option, or "".
func value(args []string, option string) string {
	if i := slices.Index(args, option); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// leave starts the one who stays and writes down its process. QEMU does nothing else
// until this one has ended.
func leave(fd int, pid, port string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	socket := os.NewFile(uintptr(fd), "guest")
	if socket == nil {
		return fmt.Errorf("--fd %d: no descriptor", fd)
	}
	cmd := exec.Command(self, "--stay", "--port", port)
	cmd.ExtraFiles = []*os.File{socket} // the first one is inherited
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	if pid == "" {
		return nil
	}
	return os.WriteFile(pid, fmt.Appendln(nil, cmd.Process.Pid), 0o600)
}

// stay hands the guest's socket over, and returns when gateway or guest have gone.
func stay(port string) error {
	for {
		gateway, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: port, Net: "unix"})
		if err == nil {
			defer gateway.Close()
			return hand(gateway)
		}
		// No events are asked for: what comes is that QEMU has closed its end.
		guest := []unix.PollFd{{Fd: inherited}}
		if n, _ := unix.Poll(guest, int(again.Milliseconds())); n > 0 {
			return nil
		}
	}
}

// hand gives the socket to gateway and waits until it is served no more.
func hand(gateway *net.UnixConn) error {
	if _, _, err := gateway.WriteMsgUnix([]byte{0}, unix.UnixRights(inherited), nil); err != nil {
		return err
	}
	if err := unix.Close(inherited); err != nil { // QEMU is to see when the gateway's is closed
		return err
	}
	_, _ = io.Copy(io.Discard, gateway)
	return nil
}
