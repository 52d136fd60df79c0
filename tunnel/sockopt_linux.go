package tunnel

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnsent keeps the kernel from taking more than n bytes that it cannot send
// yet, so that a writer notices a full network. Where it fails nothing but that
// is lost.
func limitUnsent(conn *net.TCPConn, n int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
	})
}

// info asks the kernel about the connection; nil where it does not say.
func (s *tcpStream) info() (info *unix.TCPInfo) {
	raw, err := s.tcp.SyscallConn()
	if err != nil {
		return nil
	}
	raw.Control(func(fd uintptr) {
		if i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			info = i
		}
	})
	return info
}

// rtt returns the kernel's smoothed round-trip time, or 0.
func (s *tcpStream) rtt() time.Duration {
	if info := s.info(); info != nil {
		return time.Duration(info.Rtt) * time.Microsecond
	}
	return 0
}

// wasReset reports whether the connection is gone altogether, rather than closed
// by the other end in its direction only.
func (s *tcpStream) wasReset() bool {
	const tcpClose = 7 // TCP_CLOSE in the kernel's tcp_states.h
	info := s.info()
	return info != nil && info.State == tcpClose
}
