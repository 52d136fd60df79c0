package link

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// openDgram returns a Dgram that is read, and the paths of its socket and of a guest's.
func openDgram(t *testing.T, guest bool) (d *Dgram, path, own string, frames chan []byte) {
	t.Helper()
	path, own = filepath.Join(t.TempDir(), "gw"), filepath.Join(t.TempDir(), "vm")
	c := Config{Path: path}
	if guest {
		own = path + ".guest"
	}
	d, err := OpenDgram(c)
	if err != nil {
		t.Fatal(err)
	}
	frames = make(chan []byte, 100)
	go func() {
		defer close(frames)
		bufs, sizes := make([][]byte, batchSize), make([]int, batchSize)
		for i := range bufs {
			bufs[i] = make([]byte, MaxFrame)
		}
		for {
			n, err := d.Read(bufs, sizes)
			if err != nil {
				return
			}
			for i := range n {
				frames <- append([]byte(nil), bufs[i][:sizes[i]]...)
			}
		}
	}()
	t.Cleanup(func() {
		d.Close()
		for range frames {
		}
	})
	return d, path, own, frames
}

func bound(t *testing.T, own string) *net.UnixConn {
	t.Helper()
	os.Remove(own)
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func sendTo(t *testing.T, c *net.UnixConn, path string, frame []byte) {
	t.Helper()
	if _, err := c.WriteToUnix(frame, &net.UnixAddr{Name: path, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
}

func awaitStatus(t *testing.T, d *Dgram, what string, ok func(Status) bool) Status {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		s := d.Status()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: never: %+v", what, s)
		}
	}
}

// The end of a guest to which nothing is sent, and one that started anew at its path, are
// found all the same.
func TestDgramLooksForTheGuest(t *testing.T) {
	d, path, own, _ := openDgram(t, false)
	first := bound(t, own)
	sendTo(t, first, path, make([]byte, 60))
	awaitStatus(t, d, "up", func(s Status) bool { return s.Up })
	second := bound(t, own) // the first one has its socket open, and no path
	awaitStatus(t, d, "another", func(s Status) bool { return s.Up && s.Connects == 2 })
	if err := d.Write([][]byte{make([]byte, 60)}); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 100)); n != 60 || err != nil {
		t.Errorf("the second one received %d, %v", n, err)
	}
	second.Close()
	s := awaitStatus(t, d, "down", func(s Status) bool { return !s.Up })
	if s.Fault != "" || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// A guest that starts anew between two frames gets the second one, whoever looks when.
func TestDgramAnotherGuestAtOnce(t *testing.T) {
	path, own := filepath.Join(t.TempDir(), "gw"), filepath.Join(t.TempDir(), "vm")
	d, err := OpenDgram(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	first := bound(t, own)
	sendTo(t, first, path, make([]byte, 60))
	if n, err := d.Read([][]byte{make([]byte, MaxFrame)}, []int{0}); n != 1 || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	first.Close()
	second := bound(t, own)
	if err := d.Write([][]byte{make([]byte, 60), make([]byte, 61)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{60, 61} {
		if n, err := second.Read(make([]byte, 100)); n != want || err != nil {
			t.Errorf("received %d, %v, want %d", n, err, want)
		}
	}
	if s := d.Status(); s.Connects != 2 || !s.Up || s.Sent != 2 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// A guest whose socket is where it is looked for is there before it has sent.
func TestDgramKnownGuest(t *testing.T) {
	d, _, own, _ := openDgram(t, true)
	for i := range 2 {
		guest := bound(t, own)
		awaitStatus(t, d, "up", func(s Status) bool { return s.Up && s.Connects == uint64(i+1) })
		if err := d.Write([][]byte{make([]byte, 60)}); err != nil {
			t.Fatal(err)
		}
		if n, err := guest.Read(make([]byte, 100)); n != 60 || err != nil {
			t.Errorf("received %d, %v", n, err)
		}
		guest.Close()
	}
}

// Who is not the guest is not heard, nor answered.
func TestDgramStrangers(t *testing.T) {
	d, path, own, frames := openDgram(t, false)
	guest := bound(t, own)
	sendTo(t, guest, path, make([]byte, 60))
	<-frames
	stranger := bound(t, own+"2")
	sendTo(t, stranger, path, make([]byte, 61))
	nameless, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer nameless.Close()
	nameless.Write(make([]byte, 62))
	abstract := bound(t, "@"+filepath.Base(t.TempDir())+t.Name())
	sendTo(t, abstract, path, make([]byte, 63))
	sendTo(t, guest, path, make([]byte, 64))
	if f := <-frames; len(f) != 64 {
		t.Errorf("received %d bytes", len(f))
	}
	if s := d.Status(); s.Invalid != 3 || s.Received != 2 || s.Connects != 1 {
		t.Errorf("%+v", s)
	}
}

// With strangers and rubbish between a guest's frames in one system call, those keep their
// order.
func TestDgramMixed(t *testing.T) {
	path, own := filepath.Join(t.TempDir(), "gw"), filepath.Join(t.TempDir(), "vm")
	d, err := OpenDgram(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	guest, stranger := bound(t, own), bound(t, own+"2")
	sendTo(t, guest, path, make([]byte, 60))
	sendTo(t, stranger, path, make([]byte, 61))
	sendTo(t, guest, path, nil)
	sendTo(t, guest, path, make([]byte, MaxFrame+1))
	sendTo(t, guest, path, []byte("a frame of twenty-six bytes"))
	bufs, sizes := make([][]byte, batchSize), make([]int, batchSize)
	for i := range bufs {
		bufs[i] = make([]byte, MaxFrame)
	}
	n, err := d.Read(bufs, sizes)
	if n != 2 || err != nil || sizes[0] != 60 || string(bufs[1][:sizes[1]]) != "a frame of twenty-six bytes" {
		t.Errorf("read %d, %v, %v", n, sizes[:2], err)
	}
	if s := d.Status(); s.Invalid != 3 {
		t.Errorf("%+v", s)
	}
}

// A guest that can be heard and not answered is a fault that status tells.
func TestDgramUnreachableGuest(t *testing.T) {
	d, path, own, frames := openDgram(t, false)
	guest := bound(t, own)
	os.Remove(own)
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	sendTo(t, guest, path, make([]byte, 60))
	awaitStatus(t, d, "invalid", func(s Status) bool { return s.Invalid == 1 })
	os.Remove(own)
	l, err := net.Listen("unix", own) // a socket of another kind
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sendTo(t, guest, path, make([]byte, 60))
	s := awaitStatus(t, d, "invalid", func(s Status) bool { return s.Invalid == 2 })
	if s.Up || !strings.Contains(s.Fault, own) || len(frames) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gw")
	if _, err := OpenDgram(Config{Path: path, Dial: true}); !errors.Is(err, ErrPath) {
		t.Errorf("dgram that dials: %v", err)
	}
	if _, err := OpenDgram(Config{Path: path, Guest: "@abstract"}); !errors.Is(err, ErrPath) {
		t.Errorf("dgram to an abstract name: %v", err)
	}
	if _, err := OpenPasst(Config{Path: path, Dial: true}); !errors.Is(err, ErrPath) {
		t.Errorf("passt that dials: %v", err)
	}
	for _, dial := range []bool{false, true} {
		if _, err := OpenStream(Config{Path: "@abstract", Dial: dial}); !errors.Is(err, ErrPath) {
			t.Errorf("stream, dial %v, of an abstract name: %v", dial, err)
		}
	}
}
