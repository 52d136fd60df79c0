package vhostuser

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// eventName is what /proc calls an eventfd(2).
const eventName = "anon_inode:[eventfd]"

// one is what signals an eventfd: a 64-bit number to be added, in the host's byte order.
var one = [8]byte{1}

// An event is an eventfd that the front end has, too: a kick is waited for, a call or an
// error is signalled. The front end may do to it whatever it likes at any time, as make
// it block or fill it, and must not be able to hold a goroutine.
type event struct {
	file *os.File
	raw  syscall.RawConn

	buf     [8]byte
	iovs    [][]byte           // buf, in the form of Preadv2
	consume func(uintptr) bool // prepared, as wait must not allocate
	post    func(uintptr) bool

	closing atomic.Bool
	posting atomic.Int32 // goroutines in signal
}

// newEvent takes fd over, and closes it if it is no eventfd.
func newEvent(fd int) (*event, error) {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil && name != eventName {
		err = fmt.Errorf("it is %s and no eventfd", name)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true) // so that Go's poller takes it
	}
	if err == nil {
		err = canDrain(fd)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	e := &event{file: os.NewFile(uintptr(fd), eventName)}
	if e.raw, err = e.file.SyscallConn(); err != nil {
		e.file.Close()
		return nil, err
	}
	e.iovs = [][]byte{e.buf[:]}
	e.consume = func(fd uintptr) bool { return e.drain(int(fd)) }
	e.post = func(fd uintptr) bool {
		unix.Write(int(fd), one[:]) // if it is full, whoever waits for it has enough to read
		return true
	}
	return e, nil
}

// drain resets the counter, and tells whether it was not 0. The front end shares the
// file's flags, so that O_NONBLOCK is no promise; RWF_NOWAIT is.
func (e *event) drain(fd int) bool {
	_, err := unix.Preadv2(fd, e.iovs, -1, unix.RWF_NOWAIT)
	return !errors.Is(err, unix.EAGAIN)
}

// canDrain returns an error if the kernel cannot do what drain needs. The read is one byte
// short of what an eventfd gives, and so changes nothing.
func canDrain(fd int) error {
	_, err := unix.Preadv2(fd, [][]byte{make([]byte, len(one)-1)}, -1, unix.RWF_NOWAIT)
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return fmt.Errorf("reading an eventfd without waiting, which takes Linux 5.8: %w", err)
}

// wait returns when the eventfd was signalled, interrupted or closed; not which of them.
func (e *event) wait() {
	if err := e.raw.Read(e.consume); errors.Is(err, os.ErrDeadlineExceeded) {
		e.file.SetReadDeadline(time.Time{})
	}
}

// interrupt has the wait return that is under way, or else the next one.
func (e *event) interrupt() {
	e.file.SetReadDeadline(time.Unix(1, 0))
}

// signal adds one to the eventfd. It does nothing after close.
func (e *event) signal() {
	e.posting.Add(1)
	defer e.posting.Add(-1)
	if !e.closing.Load() {
		e.raw.Write(e.post)
	}
}

// close closes the file, and wait and signal return. Of a nil event it does nothing.
func (e *event) close() {
	if e == nil {
		return
	}
	e.closing.Store(true)
	for e.posting.Load() != 0 {
		// A write blocks only if the front end has cleared O_NONBLOCK and filled the
		// counter since; what we read makes room for it.
		e.raw.Control(func(fd uintptr) { unix.Preadv2(int(fd), [][]byte{make([]byte, 8)}, -1, unix.RWF_NOWAIT) })
		time.Sleep(time.Millisecond)
	}
	e.file.Close()
}
