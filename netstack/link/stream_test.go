package link

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func openStream(t *testing.T, dial bool) (*Stream, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "port")
	s, err := OpenStream(Config{Path: path, Dial: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

func call(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// read returns the length of the one frame that a Read gives.
func read(t *testing.T, s *Stream) int {
	t.Helper()
	sizes := []int{0}
	if n, err := s.Read([][]byte{make([]byte, MaxFrame)}, sizes); n != 1 || err != nil {
		t.Fatalf("Read: %d, %v", n, err)
	}
	return sizes[0]
}

// A guest that takes no frames has gone: what it had sent is read, and its connection is
// ended, so that the next one is served.
func TestStreamGuestThatTakesNothing(t *testing.T) {
	s, path := openStream(t, false)
	guest := call(t, path)
	guest.Write(wired(make([]byte, 60), make([]byte, 61)))
	if n := read(t, s); n != 60 {
		t.Fatalf("read %d bytes", n)
	}
	guest.CloseRead()
	if err := s.Write([][]byte{make([]byte, 60)}); err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.Up || st.Dropped != 1 {
		t.Errorf("%+v", st)
	}
	if _, err := guest.Write(wired(make([]byte, 62))); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the guest's frame afterwards: %v", err)
	}
	next := call(t, path)
	next.Write(wired(make([]byte, 63)))
	if n := read(t, s); n != 61 {
		t.Errorf("read %d bytes", n)
	}
	if n := read(t, s); n != 63 {
		t.Errorf("read %d bytes", n)
	}
	if st := s.Status(); !st.Up || st.Connects != 2 {
		t.Errorf("%+v", st)
	}
}

// The connection of a guest at fault is ended.
func TestStreamFaultEndsConnection(t *testing.T) {
	s, path := openStream(t, false)
	guest := call(t, path)
	guest.Write(binary.BigEndian.AppendUint32(nil, maxLength+1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Read([][]byte{make([]byte, MaxFrame)}, []int{0})
	}()
	guest.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := guest.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the guest's end: %v", err)
	}
	s.Close()
	<-done
	if st := s.Status(); st.Fault != "length 69633: no length of a frame" {
		t.Errorf("%+v", st)
	}
}

// Why a hypervisor cannot be reached is in the status, but that it is not there.
func TestStreamDialFault(t *testing.T) {
	s, path := openStream(t, true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Read([][]byte{make([]byte, MaxFrame)}, []int{0})
	}()
	time.Sleep(redial + redial/2) // dialed twice
	if st := s.Status(); st.Up || st.Fault != "" {
		t.Errorf("nobody there: %+v", st)
	}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(20 * time.Second); s.Status().Fault == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a socket for datagrams: %+v", s.Status())
		}
	}
	if st := s.Status(); !strings.Contains(st.Fault, path) {
		t.Errorf("%+v", st)
	}
	s.Close()
	<-done
}

// A hypervisor that lets go at once is not called more often than one that is not there.
func TestStreamDialPauses(t *testing.T) {
	s, path := openStream(t, true)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	calls := make(chan time.Time, 1000)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			calls <- time.Now()
			c.Close()
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Read([][]byte{make([]byte, MaxFrame)}, []int{0})
	}()
	first := <-calls
	<-calls
	if third := <-calls; third.Sub(first) < redial {
		t.Errorf("three calls in %v", third.Sub(first))
	}
	s.Close()
	<-done
}
