package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sheaf/e2e/order"
)

// A nic is one of a virtual machine, and where it ends.
type nic struct {
	kind string // of the gateway's ports, or tap or user of QEMU
	path string // of the socket; the name of the TAP
	mac  string
	dial bool // the gateway calls, and so the emulator listens

	// What QEMU 7.2 has not.
	msix  bool // interrupts by messages; it crashes of them under emulation where the port is vhost-user
	again bool // a stream that calls a gateway again which was gone
}

// The emulator's own network, of the kind user (QEMU's documentation, net).
var (
	userRouter  = netip.MustParseAddr("10.0.2.2") // the host
	userAddress = netip.MustParseAddr("10.0.2.15")
)

// A machine is what a guest is to be.
type machine struct {
	name   string
	nics   []nic
	broker bool     // with mosquitto in it
	args   []string // further ones of the emulator

	emulator newerEmulator // instead of the one that is installed
}

// A guest is a virtual machine that runs, and its second serial port.
type guest struct {
	*process
	machine
	node    *node
	stdin   io.WriteCloser
	console string // path of what its kernel says

	boots  chan order.Booted // one of each boot
	booted order.Booted      // the last that was awaited

	mu      sync.Mutex
	next    int
	waiting map[int]chan order.Line
}

// emulator is the program that runs guests. Where the tests are to try another one
// E2E_QEMU names it.
func emulator() string {
	if path := os.Getenv("E2E_QEMU"); path != "" {
		return path
	}
	return "qemu-system-x86_64"
}

// bootLimit is how long a guest may take until it answers: 3 s where the machine does
// nothing else, and 40 times that with a share of a core.
const bootLimit = 120 * time.Second

// boot starts a guest on a node and waits until it answers.
func (n *node) boot(m machine) *guest {
	n.lab.t.Helper()
	g := n.powerOn(m)
	g.awaitBoot()
	return g
}

// powerOn is boot without the wait.
func (n *node) powerOn(m machine) *guest {
	t := n.lab.t
	t.Helper()
	program := m.emulator.program
	if program == nil {
		program = []string{emulator()}
	}
	if _, err := exec.LookPath(program[0]); err != nil {
		t.Fatalf("end to end: %v; the Debian package is qemu-system-x86", err)
	}
	g := &guest{machine: m, node: n, boots: make(chan order.Booted, 16), waiting: map[int]chan order.Line{}}
	g.console = filepath.Join(n.lab.dir, m.name+".console")
	args := slices.Concat([]string{"-c", `umask 0; exec "$@"`, "sh"}, program, m.arguments(guestImage(t), g.console))
	cmd := n.command("sh", args...) // what it listens on is for a gateway that is not root
	cmd.Env = append(os.Environ(), m.emulator.env...)
	out, w := io.Pipe()
	cmd.Stdout = w
	var err error
	if g.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	g.process = launch(t, "guest "+m.name, cmd)
	t.Cleanup(func() {
		if b, err := os.ReadFile(g.console); t.Failed() && err == nil {
			t.Logf("---- console of %s ----\n%s", m.name, tail(string(b), 30))
		}
	})
	go func() {
		<-g.done
		w.Close()
	}()
	go g.listen(out)
	return g
}

// arguments are the emulator's. KVM is used where it is usable. The guest's memory is
// shared, as vhost-user needs; 64 MB are too few for the kernel. Without the instruction
// RDRAND it has no random numbers for a minute. The first serial port is the kernel's, the
// second takes orders. Under load the kernel finds its timer not to work unless it is told
// not to look.
func (m machine) arguments(i image, console string) []string {
	accel, cpu, memory, initramfs := "tcg,tb-size=32", "qemu64,+rdrand", "96M", i.initramfs
	if f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err == nil {
		f.Close()
		accel, cpu = "kvm", "host"
	}
	if m.broker {
		memory, initramfs = "160M", i.broker
	}
	args := []string{
		"-M", "q35,memory-backend=ram", "-accel", accel, "-cpu", cpu, "-m", memory,
		"-object", "memory-backend-memfd,id=ram,share=on,size=" + memory,
		"-nodefaults", "-no-user-config", "-display", "none",
		"-kernel", i.kernel, "-initrd", initramfs,
		"-append", "console=ttyS0 quiet panic=-1 no_timer_check",
		"-serial", "file:" + console,
		"-chardev", "stdio,id=orders,signal=off", "-serial", "chardev:orders",
	}
	for n, c := range m.nics {
		args = append(args, c.arguments(n)...)
	}
	return append(args, m.args...)
}

// arguments are the emulator's for the NIC with a number. The stream is served by QEMU
// where the gateway calls, since as a client QEMU 7.2 does not call again.
func (c nic) arguments(number int) []string {
	id := fmt.Sprintf("net%d", number)
	var args []string
	switch c.kind {
	case "vhost-user":
		way := ",reconnect=1"
		if c.dial {
			way = ",server=on,wait=off"
		}
		args = []string{"-chardev", "socket,id=char" + id + ",path=" + c.path + way, "-netdev", "vhost-user,id=" + id + ",chardev=char" + id}
	case "stream":
		server := "off"
		if c.dial {
			server = "on"
		}
		if c.again {
			server += ",reconnect-ms=200"
		}
		args = []string{"-netdev", "stream,id=" + id + ",server=" + server + ",addr.type=unix,addr.path=" + c.path}
	case "dgram":
		args = []string{"-netdev", "dgram,id=" + id + ",local.type=unix,local.path=" + c.path + ".guest,remote.type=unix,remote.path=" + c.path}
	case "tap":
		args = []string{"-netdev", "tap,id=" + id + ",ifname=" + c.path + ",script=no,downscript=no,vnet_hdr=off"}
	case "user":
		args = []string{"-netdev", "user,id=" + id}
	}
	device := "virtio-net-pci,netdev=" + id + ",mac=" + c.mac + ",romfile="
	if !c.msix {
		device += ",vectors=0"
	}
	return append(args, "-device", device)
}

// listen takes the guest's lines until it ends.
func (g *guest) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var l order.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			fmt.Fprintf(&g.log, "not an answer: %q: %v\n", lines.Bytes(), err)
			continue
		}
		if l.ID == 0 {
			var b order.Booted
			_ = json.Unmarshal(l.Result, &b)
			g.forget("the guest has booted anew")
			g.boots <- b
			continue
		}
		g.mu.Lock()
		c := g.waiting[l.ID]
		delete(g.waiting, l.ID)
		g.mu.Unlock()
		if c != nil {
			c <- l
		}
	}
	g.forget("the guest has ended")
	close(g.boots)
}

// forget has all that wait for answers go on with an error.
func (g *guest) forget(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, c := range g.waiting {
		c <- order.Line{Error: why}
		delete(g.waiting, id)
	}
}

// awaitBoot waits for the first answer after a boot.
func (g *guest) awaitBoot() {
	g.t.Helper()
	select {
	case b, ok := <-g.boots:
		if !ok {
			g.t.Fatalf("%s ended before it had booted: %v\n%s", g.machine.name, g.err, g.log.String())
		}
		g.booted = b
	case <-time.After(bootLimit):
		g.t.Fatalf("%s has not booted after %v", g.machine.name, bootLimit)
	}
}

// askLimit is how long an order may take.
const askLimit = 120 * time.Second

// try gives an order and returns the guest's error, or nil and its result.
func (g *guest) try(do string, with, result any) error {
	b, err := json.Marshal(with)
	if err != nil {
		return err
	}
	answer := make(chan order.Line, 1)
	g.mu.Lock()
	g.next++
	line, _ := json.Marshal(order.Line{ID: g.next, Do: do, With: b})
	g.waiting[g.next] = answer
	_, err = g.stdin.Write(append(line, '\n'))
	g.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %s: %w", g.machine.name, do, err)
	}
	select {
	case l := <-answer:
		if l.Error != "" {
			return fmt.Errorf("%s: %s: %s", g.machine.name, do, l.Error)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(l.Result, result)
	case <-time.After(askLimit):
		return fmt.Errorf("%s: %s: no answer in %v", g.machine.name, do, askLimit)
	}
}

// ask is try for what has to succeed.
func (g *guest) ask(do string, with, result any) {
	g.t.Helper()
	if err := g.try(do, with, result); err != nil {
		g.t.Fatal(err)
	}
}

// What all tests with guests stand on: a kernel that boots and runs our program, again after
// a reset, and a NIC that works on the emulator's own network.
func TestGuest(t *testing.T) {
	l := newLab(t, 2)
	begin := time.Now()
	guestImage(t)
	t.Logf("the image took %v", time.Since(begin).Round(time.Millisecond))
	const mac = "52:54:00:00:01:01"
	begin = time.Now()
	g := l.clients().gw.boot(machine{name: "alone", nics: []nic{{kind: "user", mac: mac}}})
	for boot := range 2 {
		if boot > 0 {
			begin = time.Now()
			if err := g.try("reboot", struct{}{}, nil); err == nil || !strings.Contains(err.Error(), "anew") {
				t.Errorf("reboot: %v", err)
			}
			g.awaitBoot()
		}
		t.Logf("booted after %v, %v of its clock; QEMU took %v of a processor, %d MB", time.Since(begin).Round(time.Millisecond), g.booted.Uptime.Round(time.Millisecond), g.processor(), g.memory()>>20)
		if g.booted.NICs[mac] == "" {
			t.Fatalf("the NIC is not there: %v", g.booted.NICs)
		}
		var up order.Up
		g.ask("net", order.Net{MAC: mac, DHCP: true}, &up)
		if len(up.Addresses) != 1 || up.Addresses[0].Addr() != userAddress {
			t.Errorf("DHCP gave %+v", up)
		}
		var p order.Pinged
		g.ask("ping", order.Ping{To: userRouter, Count: 10, Every: 10 * time.Millisecond, Wait: 5 * time.Second}, &p)
		t.Logf("%+v", p)
		if p.Got != 10 {
			t.Errorf("%d of 10 echoes", p.Got)
		}
		if err := g.try("dial", order.Dial{To: netip.AddrPortFrom(userRouter, 9), Wait: time.Second}, nil); err == nil {
			t.Error("a dial to where nobody listens succeeded")
		}
	}
}
