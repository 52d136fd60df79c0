//go:build !linux

package tunnel

import (
	"net"
	"time"
)

// limitUnsent does nothing: the kernel's send buffer is what bounds unsent bytes.
func limitUnsent(*net.TCPConn, int) {}

// rtt is not known.
func (s *tcpStream) rtt() time.Duration { return 0 }

// wasReset tells what the writing side was told.
func (s *tcpStream) wasReset() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}
