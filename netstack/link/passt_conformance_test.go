package link_test

import (
	"bufio"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
	"sheaf/netstack/link/linktest"
)

// A handedGuest is QEMU with -netdev passt, and the program that it has started.
type handedGuest struct {
	*streamGuest
	helper *net.UnixConn
}

func (g *handedGuest) Kill() {
	g.streamGuest.Kill()
	g.helper.Close()
}

// handStream does what QEMU and tools/passt do.
func handStream(path string) (linktest.Guest, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	own, other := os.NewFile(uintptr(pair[0]), "own"), os.NewFile(uintptr(pair[1]), "other")
	defer own.Close()
	defer other.Close()
	c, err := net.FileConn(own)
	if err != nil {
		return nil, err
	}
	g := &handedGuest{streamGuest: &streamGuest{conn: c.(*net.UnixConn), in: bufio.NewReaderSize(c, 1<<16)}}
	g.helper, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		c.Close()
		return nil, err
	}
	_, _, err = g.helper.WriteMsgUnix([]byte{0}, unix.UnixRights(int(other.Fd())), nil)
	return g, err
}

func TestPasst(t *testing.T) {
	k := stream(false)
	k.Open = func(path string) (link.Link, error) { return link.OpenPasst(link.Config{Path: path}) }
	k.Start = handStream
	k.Rubbish, k.Torn = nil, nil
	linktest.Run(t, k)
}

// Who hands over nothing, or something else than a guest's socket, is let go, and the
// next one is served.
func TestPasstHandsOver(t *testing.T) {
	path := t.TempDir() + "/port"
	l, err := link.OpenPasst(link.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	file, err := udp.File()
	udp.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var callers []*net.UnixConn
	for name, rights := range map[string][]byte{
		"nothing":                  nil,
		"a socket of another kind": unix.UnixRights(int(file.Fd())),
		"two":                      unix.UnixRights(int(file.Fd()), int(file.Fd())),
	} {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		callers = append(callers, c)
		if _, _, err := c.WriteMsgUnix([]byte{0}, rights, nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	before := descriptors(t)
	silent, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	g, err := handStream(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Kill()
	if err := g.Send(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	bufs, sizes := [][]byte{make([]byte, link.MaxFrame)}, []int{0}
	if n, err := l.Read(bufs, sizes); n != 1 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	if s := l.Status(); s.Connects != 1 {
		t.Errorf("%+v", s)
	}
	for _, c := range callers {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("who handed over nothing read %d, %v", n, err)
		}
	}
	// New are the silent one's, and of the guest four: its own end and its program's, and
	// the gateway's of both.
	if now := descriptors(t); now != before+5 {
		t.Errorf("%d descriptors before, %d now", before, now)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
