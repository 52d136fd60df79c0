package vhostuser

import (
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// A message is one of the front end's. It is valid until the next receive.
type message struct {
	header
	payload []byte
	fds     []int // the message's until taken; close closes what was not
}

// take returns the only file descriptor of the message, which then is the caller's.
func (m *message) take() (int, error) {
	if len(m.fds) != 1 {
		return -1, fmt.Errorf("%d file descriptors, not 1", len(m.fds))
	}
	fd := m.fds[0]
	m.fds = nil
	return fd, nil
}

// close closes the file descriptors of which nobody took possession.
func (m *message) close() {
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	m.fds = nil
}

// A socket is the connection with a front end. receive and reply are each for one goroutine at a time.
type socket struct {
	conn *net.UnixConn
	buf  [maxPayload]byte
	oob  []byte // room for the file descriptors of one message, and no more
	out  []byte
}

func newSocket(conn *net.UnixConn) *socket {
	return &socket{conn: conn, oob: make([]byte, unix.CmsgSpace(maxFDs*4))}
}

// receive waits for the next message. Its file descriptors come with the first byte of its
// header; those that come with others are closed by the kernel, as nobody asks for them. The error
// is io.EOF if the front end has gone between two messages, and a *violation if it broke a rule.
func (s *socket) receive() (m message, err error) {
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	head := s.buf[:headerLen]
	n, oobn, flags, _, err := s.conn.ReadMsgUnix(head, s.oob)
	if err != nil {
		return m, err
	}
	if m.fds, err = parseFDs(s.oob[:oobn]); err != nil {
		return m, &violation{err}
	}
	switch {
	case n == 0:
		return m, io.EOF
	case flags&unix.MSG_CTRUNC != 0:
		return m, violate("more than %d file descriptors in a message, or more than this process may open", maxFDs)
	}
	if _, err := io.ReadFull(s.conn, head[n:]); err != nil {
		return m, fmt.Errorf("the rest of a header: %w", err)
	}
	if m.header, err = parseHeader(head); err != nil {
		return m, &violation{err}
	}
	m.payload = s.buf[:m.size]
	if _, err := io.ReadFull(s.conn, m.payload); err != nil {
		return m, fmt.Errorf("%v: its payload: %w", m.request, err)
	}
	return m, nil
}

// parseFDs returns the file descriptors of a control message. With an error it returns those that it found.
func parseFDs(oob []byte) (fds []int, err error) {
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.Header.Level != unix.SOL_SOCKET || c.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		rights, err := unix.ParseUnixRights(&c)
		if err != nil {
			return fds, err
		}
		fds = append(fds, rights...)
	}
	return fds, nil
}

// reply sends a reply.
func (s *socket) reply(r request, payload []byte) error {
	s.out = appendReply(s.out[:0], r, payload)
	_, err := s.conn.Write(s.out)
	return err
}

// A violation is a breach of the protocol by a front end, which ends its connection.
type violation struct{ err error }

func (v *violation) Error() string { return v.err.Error() }
func (v *violation) Unwrap() error { return v.err }

func violate(format string, args ...any) error {
	return &violation{fmt.Errorf(format, args...)}
}

// A refusal is of something that a front end may ask for and does not get; it may go on.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
