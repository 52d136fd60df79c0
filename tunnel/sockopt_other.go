//go:build !linux

package tunnel

import (
	"net"
	"syscall"
	"time"
)

// limitUnsent does nothing: the kernel's send buffer is what bounds unsent bytes.
func limitUnsent(*net.TCPConn, int) {}

// limitSegment does nothing: segments are as large as the devices at both ends take.
func limitSegment(_, _ string, _ syscall.RawConn) error { return nil }

// pathMTU is not known.
func pathMTU(net.Addr) int { return 0 }

// probed is nil: what came is not counted.
func (s *tcpStream) probed() probed { return nil }

// rtt is not known.
func (s *tcpStream) rtt() time.Duration { return 0 }

// wasReset tells what the writing side was told.
func (s *tcpStream) wasReset() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}
