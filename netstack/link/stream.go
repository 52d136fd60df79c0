package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stagedSize is what Write copies together for one system call. The kernel takes
	// 208 KiB into a unix socket unless it was set up otherwise (net.core.wmem_default),
	// and the longest frame has to fit.
	stagedSize = 128 << 10

	// redial is the least time from one attempt to reach a hypervisor to the next, and
	// the pause of a socket that cannot accept, for want of descriptors. A guest is back
	// soon after its hypervisor is, and a port without one costs two system calls.
	redial = 200 * time.Millisecond
)

// A Stream is the Link to QEMU's -netdev stream on a unix socket: each frame stands
// behind its length, 4 bytes, big endian.
//
// A guest is there from its connection's beginning to its end. One guest is served at a
// time, and met by Read: another one that connects waits until that one's connection
// ends and all that it sent was read. So a hypervisor that starts anew is not turned
// away by its own last moments, and during a migration the destination follows.
//
// A length of 0, and one longer than QEMU's own buffers (69,632), is the guest's fault:
// nothing after it makes sense, and the connection is ended. Part of a frame at the connection's
// end is no fault; it is dropped.
type Stream struct {
	tally
	config   Config
	listener *net.UnixListener // nil: dials
	handed   bool              // who connects hands a guest over
	done     chan struct{}     // closed by Close
	in       *splitter         // Read's own
	dialed   time.Time         // Read's own: when it dialed last
	out      []byte            // Write's own

	mu     sync.Mutex    // guards what follows
	guest  *net.UnixConn // that Read reads from; nil: nobody is there
	helper *net.UnixConn // who handed guest over, and lives as long
	taking bool          // guest takes frames
	closed bool
}

// OpenStream makes a Stream. It listens at once, or dials with the first Read, until
// Close. Errors are those of [Listen].
func OpenStream(c Config) (*Stream, error) {
	s := &Stream{config: c, done: make(chan struct{}), in: newSplitter(), out: make([]byte, 0, stagedSize)}
	var err error
	if c.Dial {
		err = checkPath(c.Path)
	} else {
		s.listener, err = Listen(c.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	return s, nil
}

// BatchSize implements Link.
func (s *Stream) BatchSize() int { return batchSize }

// Read implements Link. It takes what the socket has with one system call, for several
// Reads if that were many frames.
func (s *Stream) Read(bufs [][]byte, sizes []int) (int, error) {
	for {
		n, fault := s.split(bufs, sizes)
		if n > 0 {
			s.received.Add(uint64(n))
			return n, nil
		}
		guest, err := s.meet()
		if err != nil {
			return 0, err
		}
		if fault == nil {
			n, err = guest.Read(s.in.room())
			s.in.filled(n)
		}
		if fault != nil || err != nil {
			s.part(guest, fault)
		}
	}
}

// split copies frames that are there out. The error is the guest's fault.
func (s *Stream) split(bufs [][]byte, sizes []int) (n int, err error) {
	before := s.in.invalid
	for n < len(bufs) {
		var frame []byte
		if frame, err = s.in.next(); frame == nil {
			break
		}
		sizes[n] = copy(bufs[n], frame)
		n++
	}
	if left := s.in.invalid - before; left > 0 {
		s.invalid.Add(left)
	}
	return n, err
}

// meet returns the guest, and waits for one if there is none.
func (s *Stream) meet() (*net.UnixConn, error) {
	for {
		s.mu.Lock()
		guest, closed := s.guest, s.closed
		s.mu.Unlock()
		switch {
		case closed:
			return nil, s.ended()
		case guest != nil:
			return guest, nil
		}
		guest, err := s.connect()
		var helper *net.UnixConn
		if err == nil && s.handed {
			guest, helper, err = takeOver(guest)
		}
		if err == nil {
			s.welcome(guest, helper)
		}
	}
}

// connect returns the connection to the next guest. Where there is none, the error comes
// with a pause behind it.
func (s *Stream) connect() (*net.UnixConn, error) {
	if s.listener != nil {
		c, err := s.listener.AcceptUnix()
		if err != nil {
			s.pause(redial)
		}
		return c, err
	}
	s.pause(time.Until(s.dialed.Add(redial)))
	s.dialed = time.Now()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.config.Path, Net: "unix"})
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ECONNREFUSED) {
		s.down(err.Error()) // more than nobody there
	}
	return c, err
}

// pause waits for d, or until Close.
func (s *Stream) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-s.done:
	case <-time.After(d):
	}
}

// welcome makes guest the one that is there.
func (s *Stream) welcome(guest, helper *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		hangUp(guest, helper)
		return
	}
	s.guest, s.helper, s.taking = guest, helper, true
	s.up()
}

// hangUp closes connections that are there.
func hangUp(connections ...*net.UnixConn) {
	for _, c := range connections {
		if c != nil {
			c.Close()
		}
	}
}

// part ends the connection to guest, of which nothing more is to be read.
func (s *Stream) part(guest *net.UnixConn, fault error) {
	s.in.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	hangUp(guest, s.helper)
	s.guest, s.helper, s.taking = nil, nil, false
	if fault != nil {
		s.down(fault.Error())
	} else {
		s.down("")
	}
}

// Write implements Link. It copies frames together for one system call, as many as
// stagedSize has room for.
func (s *Stream) Write(frames [][]byte) error {
	s.mu.Lock()
	guest := s.guest
	if !s.taking {
		guest = nil
	}
	s.mu.Unlock()
	for guest != nil && len(frames) > 0 {
		staged, n := stage(s.out[:0], frames)
		s.out = staged
		written, err := guest.Write(staged)
		sent := whole(frames[:n], written)
		s.sent.Add(uint64(sent))
		s.dropped.Add(uint64(n - sent))
		frames = frames[n:]
		if err != nil {
			s.refused(guest)
			guest = nil
		}
	}
	s.dropped.Add(uint64(len(frames)))
	select {
	case <-s.done:
		return s.ended()
	default:
		return nil
	}
}

// stage appends frames behind their lengths to dst while they fit, and returns how many
// of frames it is done with: it leaves out what is no frame.
func stage(dst []byte, frames [][]byte) ([]byte, int) {
	for i, f := range frames {
		if !isFrame(f) {
			continue
		}
		if len(dst)+lengthSize+len(f) > cap(dst) {
			return dst, i
		}
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f)))
		dst = append(dst, f...)
	}
	return dst, len(frames)
}

// whole returns how many frames there are in the first written bytes of what stage made
// of them.
func whole(frames [][]byte, written int) (n int) {
	for _, f := range frames {
		if !isFrame(f) {
			continue
		}
		if written -= lengthSize + len(f); written < 0 {
			break
		}
		n++
	}
	return n
}

func isFrame(f []byte) bool { return len(f) >= MinFrame && len(f) <= MaxFrame }

// refused notes that guest takes no more frames. What it has sent is still read; nothing
// can be added to that.
func (s *Stream) refused(guest *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guest != guest {
		return
	}
	s.taking = false
	s.down("")
	_ = guest.CloseWrite()
	_ = guest.CloseRead()
}

// Close implements Link.
func (s *Stream) Close() error {
	s.mu.Lock()
	guest, helper, closed := s.guest, s.helper, s.closed
	s.guest, s.helper, s.taking, s.closed = nil, nil, false, true
	s.mu.Unlock()
	if closed {
		return nil
	}
	close(s.done)
	s.down("")
	hangUp(guest, helper)
	if s.listener == nil {
		return nil
	}
	return s.listener.Close()
}

func (s *Stream) ended() error { return fmt.Errorf("%s: %w", s.config.Path, os.ErrClosed) }
