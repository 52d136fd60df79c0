package main

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
)

// A process of this test is the program where a test asks for that.
const posing = "SHEAF_TEST_PASST"

func TestMain(m *testing.M) {
	if os.Getenv(posing) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A qemu does what net/passt.c of QEMU 10.1 does with the program.
type qemu struct {
	t    *testing.T
	port string
	end  *net.UnixConn // its own of the pair
	pid  int
}

// start is net_passt_stream_start.
func (q *qemu) start() {
	q.t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		q.t.Fatal(err)
	}
	own, other := os.NewFile(uintptr(pair[0]), "own"), os.NewFile(uintptr(pair[1]), "other")
	defer own.Close()
	defer other.Close()
	c, err := net.FileConn(own)
	if err != nil {
		q.t.Fatal(err)
	}
	q.end = c.(*net.UnixConn)
	pidfile := filepath.Join(q.t.TempDir(), "pid")
	out, err := q.command([]*os.File{other}, "--quiet", "--mtu", "1500", "--port", q.port, "--pid", pidfile, "--fd", "3")
	if err != nil {
		q.t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(pidfile)
	if err != nil {
		q.t.Fatal(err)
	}
	if q.pid, err = strconv.Atoi(strings.TrimSpace(string(b))); err != nil || q.pid <= 0 {
		q.t.Fatalf("pid file %q", b)
	}
}

func (q *qemu) command(files []*os.File, args ...string) ([]byte, error) {
	self, err := os.Executable()
	if err != nil {
		q.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), posing+"=1")
	cmd.ExtraFiles = files
	errors, err := os.CreateTemp(q.t.TempDir(), "stderr") // no pipe: who stays would hold it
	if err != nil {
		q.t.Fatal(err)
	}
	defer errors.Close()
	cmd.Stderr = errors
	err = cmd.Run()
	b, _ := os.ReadFile(errors.Name())
	return b, err
}

// exchange sends a frame each way.
func (q *qemu) exchange(l *link.Stream) {
	q.t.Helper()
	frame := binary.BigEndian.AppendUint32(nil, 60)
	frame = append(frame, make([]byte, 60)...)
	if _, err := q.end.Write(frame); err != nil {
		q.t.Fatal(err)
	}
	bufs, sizes := make([][]byte, l.BatchSize()), make([]int, l.BatchSize())
	for i := range bufs {
		bufs[i] = make([]byte, link.MaxFrame)
	}
	if n, err := l.Read(bufs, sizes); n != 1 || err != nil || sizes[0] != 60 {
		q.t.Fatalf("the gateway received %d, %v", n, err)
	}
	if err := l.Write([][]byte{make([]byte, 60)}); err != nil {
		q.t.Fatal(err)
	}
	q.end.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(q.end, frame); err != nil || binary.BigEndian.Uint32(frame) != 60 {
		q.t.Fatalf("the guest received %x, %v", frame[:4], err)
	}
}

// gone waits until the program has ended: nobody waits for it but init, or the test's
// process where that adopts it.
func (q *qemu) gone() {
	q.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(q.pid) + "/stat")
		if err != nil || strings.Contains(string(b), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			q.t.Fatalf("process %d is still there: %s", q.pid, b)
		}
	}
}

func open(t *testing.T, path string) *link.Stream {
	t.Helper()
	l, err := link.OpenPasst(link.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestAsQEMUStartsIt(t *testing.T) {
	q := &qemu{t: t, port: filepath.Join(t.TempDir(), "port")}
	q.start() // before the gateway
	l := open(t, q.port)
	q.exchange(l)

	// The gateway goes away: QEMU sees the end of its socket, and starts the program anew.
	l.Close()
	q.end.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := q.end.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("after the gateway's end: %v", err)
	}
	q.gone()
	q.end.Close()
	q.start()
	l = open(t, q.port)
	q.exchange(l)

	// QEMU ends well: it kills the program.
	if err := syscall.Kill(q.pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	q.end.Close()
	q.gone()
	q.start()
	q.exchange(l)

	// QEMU is killed: the gateway sees the end, and lets the program go.
	q.end.Close()
	go l.Read([][]byte{make([]byte, link.MaxFrame)}, []int{0})
	q.gone()
}

// Without a gateway the program does not outlive QEMU.
func TestWithoutGateway(t *testing.T) {
	q := &qemu{t: t, port: filepath.Join(t.TempDir(), "port")}
	q.start()
	q.end.Close()
	q.gone()
}

func TestArguments(t *testing.T) {
	q := &qemu{t: t}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--quiet", "--fd", "3"}, "--port"},
		{[]string{"--port", "/p", "--pid", "/q"}, "--fd"},
		{[]string{"--port", "/p", "--vhost-user", "--fd", "3"}, "-netdev vhost-user"},
		{[]string{"--port"}, "--port"},
	} {
		out, err := q.command(nil, c.args...)
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
	}
}
