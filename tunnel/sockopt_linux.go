package tunnel

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/sys/unix"
)

// limitUnsent keeps the kernel from taking more than n bytes that it cannot send
// yet, so that a writer notices a full network. Where it fails, writers notice later.
func limitUnsent(conn *net.TCPConn, n int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n)
	})
}

// limitSegment has a socket that is about to call agree with the other end on segments
// of at most maxSegment bytes, both ways. Where it fails, segments are as large as the
// devices take.
func limitSegment(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, maxSegment)
	})
}

// pathMTU returns the largest IP packet to an address that the host knows to pass:
// what its route and device take or, less, what a router has told (RFC 1191, RFC
// 8201). 0 is not known.
func pathMTU(to net.Addr) (mtu int) {
	conn, err := net.Dial("udp", to.String()) // sends nothing
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err != nil {
		return 0
	}
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if isIPv6(conn.RemoteAddr()) {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	raw.Control(func(fd uintptr) {
		if n, err := unix.GetsockoptInt(int(fd), level, option); err == nil {
			mtu = n
		}
	})
	return mtu
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

// A tcpProbed is a stream as a pulse sees it.
type tcpProbed struct{ *tcpStream }

func (s *tcpStream) probed() probed { return tcpProbed{s} }

// Context ends with the stream.
func (p tcpProbed) Context() context.Context { return p.over }

// ConnectionStats returns the kernel's counts of segments and its smoothed
// round-trip time; nothing else.
func (p tcpProbed) ConnectionStats() (stats quic.ConnectionStats) {
	if info := p.info(); info != nil {
		stats.PacketsSent, stats.PacketsReceived = uint64(info.Segs_out), uint64(info.Segs_in)
		stats.SmoothedRTT = time.Duration(info.Rtt) * time.Microsecond
	}
	return stats
}

// SendDatagram has the kernel ask the other end for a sign of life: at once, and
// until the pulse has judged the answer.
func (p tcpProbed) SendDatagram([]byte) error {
	now := keepTCP
	now.Idle = now.Interval
	time.AfterFunc(loseAfter, func() { p.tcp.SetKeepAliveConfig(keepTCP) })
	return p.tcp.SetKeepAliveConfig(now)
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
