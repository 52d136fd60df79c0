package link

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// An mmsghdr is struct mmsghdr of recvmmsg(2) and sendmmsg(2), which golang.org/x/sys
// does not have.
type mmsghdr struct {
	msg unix.Msghdr
	n   uint32 // bytes received or sent
}

// messages are what one recvmmsg or sendmmsg moves: a datagram each. Slices and names
// stay where they are, so that no call allocates.
type messages struct {
	headers []mmsghdr
	vectors []unix.Iovec
	names   []unix.RawSockaddrUnix // of who has sent
	count   int                    // of headers in use
	flags   int
	call    uintptr // SYS_RECVMMSG or SYS_SENDMMSG
	done    int     // of count, after a call
	err     error   // of the call, but for EAGAIN
	try     func(fd uintptr) bool
}

func newMessages(call uintptr, n int) *messages {
	m := &messages{
		headers: make([]mmsghdr, n),
		vectors: make([]unix.Iovec, n),
		names:   make([]unix.RawSockaddrUnix, n),
		flags:   unix.MSG_DONTWAIT,
		call:    call,
	}
	m.try = m.once // a method value made anew for each call would be allocated
	return m
}

// add adds a datagram: the bytes that it has, or the room for it.
func (m *messages) add(b []byte) {
	i := m.count
	m.count++
	m.vectors[i].Base = unsafe.SliceData(b)
	m.vectors[i].SetLen(len(b))
	h := &m.headers[i].msg
	*h = unix.Msghdr{Iov: &m.vectors[i]}
	h.SetIovlen(1)
	if m.call == unix.SYS_RECVMMSG {
		h.Name = (*byte)(unsafe.Pointer(&m.names[i]))
		h.Namelen = uint32(unsafe.Sizeof(m.names[i]))
	}
}

// clear forgets the datagrams, and their bytes, which are borrowed.
func (m *messages) clear() {
	clear(m.vectors[:m.count])
	m.count, m.done, m.err = 0, 0, nil
}

// move receives or sends, and waits until at least one of the datagrams is done or an
// error is there. The error is the call's, or that of wait: RawConn's Read or Write.
func (m *messages) move(wait func(func(fd uintptr) bool) error) (done int, err error) {
	m.done, m.err = 0, nil
	if err := wait(m.try); err != nil {
		return 0, err
	}
	return m.done, m.err
}

// once makes the system call, and returns false if it is to be made again later.
func (m *messages) once(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(m.call, fd, uintptr(unsafe.Pointer(&m.headers[0])), uintptr(m.count), uintptr(m.flags), 0, 0)
		switch errno {
		case 0:
			m.done = int(n)
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			m.err = errno
			return true
		}
	}
}

// size returns how long datagram i is that was received, and whether all of it is there.
func (m *messages) size(i int) (n int, whole bool) {
	h := &m.headers[i]
	return int(h.n), h.msg.Flags&unix.MSG_TRUNC == 0
}

// name returns the path of the socket that datagram i came from, borrowed until the next
// one is received there. It is empty if that has none in a file system.
func (m *messages) name(i int) []byte {
	const head = unsafe.Offsetof(unix.RawSockaddrUnix{}.Path)
	length := int(m.headers[i].msg.Namelen) - int(head)
	if length <= 0 {
		return nil
	}
	path := unsafe.Slice((*byte)(unsafe.Pointer(&m.names[i].Path)), min(length, len(m.names[i].Path)))
	for j, c := range path {
		if c == 0 { // ends a path, and begins an abstract name
			return path[:j]
		}
	}
	return path
}
