package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guestSuffix makes of the gateway's path that of the guest's socket, unless another one is
// named or the guest's first datagram comes from another one.
const guestSuffix = ".guest"

// probe is how long the end of a guest may stay unnoticed while nothing is sent to it:
// each time costs five system calls.
const probe = time.Second

// A Dgram is the Link to QEMU's -netdev dgram on unix sockets: each datagram is a frame.
// The gateway has a socket, QEMU's remote.path, and the guest one of its own, QEMU's
// local.path. The gateway finds that at Config.Guest, or at Config.Path and ".guest", as
// soon as it is there, and at any other path by what the guest sends: there a gateway that
// starts anew cannot reach a guest that is silent. It has to be an absolute path, and the
// gateway has to be allowed to write to it.
//
// Datagrams have no connection, and a guest that dies says nothing. A guest is there from
// its first datagram, or from when its socket is found, until nobody has that socket
// open any more: sending says so at once, and Read looks once in a second. One that
// started anew at the same path by then is another guest. While a guest is there,
// datagrams from other sockets are counted as invalid; so are those of sockets without a
// path, which nothing could be sent to.
//
// The kernel keeps net.unix.max_dgram_qlen datagrams for a socket, 10 unless the host
// says otherwise, and then the sender waits: QEMU and the gateway wake up for every
// tenth frame. Higher values help; they are taken over when a socket is made.
type Dgram struct {
	tally
	config Config
	conn   *net.UnixConn // at Config.Path; only reads
	raw    syscall.RawConn
	file   os.FileInfo // of Config.Path
	in     *messages   // Read's own
	out    *messages   // Write's own

	mu     sync.Mutex // guards what follows
	guest  *corresponding
	closed bool
}

// A corresponding is a guest's socket, and one of the gateway's that is connected to it.
// The socket that reads is connected to none: a guest that started anew could not send
// to it. Being connected costs less for each frame than the path, and EPOLLOUT tells of
// the guest's room.
type corresponding struct {
	path string
	file os.FileInfo
	conn *net.UnixConn
	raw  syscall.RawConn
}

// OpenDgram makes a Dgram. Config.Dial has to be false: the guest's socket is found by
// Config.Guest. Errors are those of [Listen].
func OpenDgram(c Config) (*Dgram, error) {
	if c.Dial {
		return nil, fmt.Errorf("dgram: %w: there is nobody to dial", ErrPath)
	}
	if c.Guest == "" && len(c.Path)+len(guestSuffix) <= maxPath {
		c.Guest = c.Path + guestSuffix
	} else if err := checkPath(c.Guest); c.Guest != "" && err != nil {
		return nil, fmt.Errorf("dgram: the guest's %w", err)
	}
	conn, err := listenPacket(c.Path)
	if err != nil {
		return nil, fmt.Errorf("dgram: %w", err)
	}
	d := &Dgram{config: c, conn: conn, in: newMessages(unix.SYS_RECVMMSG, batchSize), out: newMessages(unix.SYS_SENDMMSG, batchSize)}
	_ = conn.SetReadDeadline(time.Now()) // the first Read looks for the guest
	if d.raw, err = conn.SyscallConn(); err == nil {
		d.file, err = os.Lstat(c.Path)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("dgram: %w", err)
	}
	return d, nil
}

// BatchSize implements Link.
func (d *Dgram) BatchSize() int { return batchSize }

// Read implements Link. It takes as many datagrams as there are with one system call.
func (d *Dgram) Read(bufs [][]byte, sizes []int) (int, error) {
	defer d.in.clear()
	for {
		d.in.clear()
		for _, b := range bufs[:min(len(bufs), batchSize)] {
			d.in.add(b[:MaxFrame])
		}
		n, err := d.in.move(d.raw.Read)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			d.probe()
		case d.isClosed():
			return 0, d.ended()
		case err != nil:
			time.Sleep(redial) // the host is out of memory
		}
		if n = d.sort(bufs, sizes, n); n > 0 {
			d.received.Add(uint64(n))
			return n, nil
		}
	}
}

// sort keeps the guest's frames of n datagrams, and returns how many they are.
func (d *Dgram) sort(bufs [][]byte, sizes []int, n int) (kept int) {
	for i := range n {
		size, whole := d.in.size(i)
		if !whole || size < MinFrame || !d.isGuest(d.in.name(i)) {
			d.invalid.Add(1)
			continue
		}
		if kept < i {
			copy(bufs[kept], bufs[i][:size])
		}
		sizes[kept] = size
		kept++
	}
	return kept
}

// isGuest says whether the socket at path is the guest's, which it may become by that.
func (d *Dgram) isGuest(path []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.guest != nil && d.guest.path == string(path) {
		return true
	}
	if len(path) == 0 || d.closed {
		return false
	}
	if d.guest != nil && !d.guest.gone() {
		return false
	}
	return d.greet(string(path))
}

// greet makes the socket at path the guest's, and returns false if it cannot be reached.
// d.mu is held.
func (d *Dgram) greet(path string) bool {
	d.lose()
	guest, err := correspond(path)
	if err != nil {
		if !isGone(err) {
			d.down(fmt.Sprintf("the guest's socket: %v", err))
		}
		return false
	}
	d.guest = guest
	d.up()
	return true
}

// lose forgets the guest, if there is one. d.mu is held.
func (d *Dgram) lose() {
	if d.guest == nil {
		return
	}
	d.guest.conn.Close()
	d.guest = nil
	d.down("")
}

// probe looks whether the guest's socket is still the one that it was.
func (d *Dgram) probe() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	_ = d.conn.SetReadDeadline(time.Now().Add(probe))
	if d.guest == nil {
		if d.config.Guest != "" {
			d.greet(d.config.Guest)
		}
		return
	}
	if d.guest.gone() {
		d.greet(d.guest.path)
	}
}

// correspond returns the socket at path, if somebody has it open.
func correspond(path string) (*corresponding, error) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	c := &corresponding{path: path, conn: conn}
	if c.raw, err = conn.SyscallConn(); err == nil {
		c.file, err = os.Stat(path)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// gone says whether nobody has the socket open any more, or another is at its path. The
// number of a file that was removed may be the next one's, at another time.
func (c *corresponding) gone() bool {
	info, err := os.Stat(c.path)
	return err != nil || !os.SameFile(info, c.file) || !info.ModTime().Equal(c.file.ModTime()) || errors.Is(touch(c.path), unix.ECONNREFUSED)
}

// isGone says whether an error of a socket is that nobody has the other one open.
func isGone(err error) bool {
	return errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// Write implements Link. It gives the kernel up to BatchSize frames with one system call.
func (d *Dgram) Write(frames [][]byte) error {
	defer d.out.clear()
	for len(frames) > 0 {
		guest := d.current()
		if guest == nil {
			break
		}
		d.out.clear()
		for _, f := range frames[:min(len(frames), batchSize)] {
			if !isFrame(f) {
				break
			}
			d.out.add(f)
		}
		if d.out.count == 0 {
			d.dropped.Add(1)
			frames = frames[1:]
			continue
		}
		n, err := d.out.move(guest.raw.Write)
		d.sent.Add(uint64(n))
		frames = frames[n:]
		switch {
		case err == nil:
		case errors.Is(err, unix.EMSGSIZE) || errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENOMEM):
			// More than this host's sockets hold: the frame, and not the guest.
			d.dropped.Add(1)
			frames = frames[1:]
		default:
			d.refused(guest)
		}
	}
	d.dropped.Add(uint64(len(frames)))
	if d.isClosed() {
		return d.ended()
	}
	return nil
}

// current returns the guest that is there, or nil.
func (d *Dgram) current() *corresponding {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.guest
}

// refused notes that guest took a frame no more. If it is there again, that is another.
func (d *Dgram) refused(guest *corresponding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.guest == guest {
		d.greet(guest.path)
	}
}

func (d *Dgram) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Close implements Link.
func (d *Dgram) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.lose()
	// First the file, as long as nobody can have taken the path for left over.
	if info, err := os.Lstat(d.config.Path); err == nil && os.SameFile(info, d.file) {
		_ = os.Remove(d.config.Path)
	}
	return d.conn.Close()
}

func (d *Dgram) ended() error { return fmt.Errorf("%s: %w", d.config.Path, os.ErrClosed) }
