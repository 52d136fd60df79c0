package netstack

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const idleSession = 60 * time.Second

// serveUDP is called for a datagram that belongs to no session. It reports false
// if there is nobody for it, and the stack then says so to the client.
func (s *Stack) serveUDP(r *udp.ForwarderRequest) bool {
	id := r.ID()
	server := addrPort(id.LocalAddress, id.LocalPort)
	t := s.terminator(server.Addr())
	if t == nil {
		return false
	}
	t.mu.Lock()
	full := t.sessions >= t.cfg.Limits.Sessions
	if !full {
		t.sessions++
	}
	t.mu.Unlock()
	if full || !s.terminals.begin() { // full, or closed
		return true
	}
	// Here and now, so that the datagrams that follow find the session.
	queue := new(waiter.Queue)
	ep, err := r.CreateEndpoint(queue)
	if err != nil {
		t.endSession()
		return true
	}
	client := addrPort(id.RemoteAddress, id.RemotePort)
	go func() {
		defer t.endSession()
		near := gonet.NewUDPConn(queue, ep)
		defer near.Close()
		ctx, cancel := context.WithTimeout(t.ctx, t.cfg.Limits.DialTimeout)
		far, err := t.connect(ctx, "udp", t.cfg.Map(server))
		cancel()
		if err != nil {
			s.terminals.failed.Add(1)
			return
		}
		var before []byte
		if t.cfg.ProxyProtocol {
			before = appendProxyHeader(nil, proxyUDP4, proxyUDP6, client, server)
		}
		s.terminals.opened.Add(1)
		t.exchange(near, far, before)
	}()
	return true
}

func (t *Terminator) endSession() {
	t.mu.Lock()
	t.sessions--
	t.mu.Unlock()
	t.stack.terminals.done()
}

// exchange carries datagrams between a client and a server until there have been
// none for the idle time. Each one to the server begins with before.
func (t *Terminator) exchange(near, far net.Conn, before []byte) {
	stop := context.AfterFunc(t.ctx, func() { near.Close(); far.Close() })
	defer stop()
	defer far.Close()
	defer near.Close()
	var (
		start = time.Now()
		last  atomic.Int64 // when there was a datagram, in nanoseconds since start
		ended atomic.Bool
	)
	idle := func() bool { return time.Since(start)-time.Duration(last.Load()) >= t.cfg.Limits.Idle }
	carry := func(dst, src net.Conn, before []byte) {
		c := make([]byte, len(before)+MaxPacket)
		copy(c, before)
		for {
			src.SetReadDeadline(start.Add(time.Duration(last.Load()) + t.cfg.Limits.Idle))
			if ended.Load() {
				return
			}
			n, err := src.Read(c[len(before):])
			switch {
			case err == nil:
				last.Store(int64(time.Since(start)))
				dst.Write(c[:len(before)+n]) // what is lost is lost, as datagrams are
			case errors.Is(err, unix.ECONNREFUSED): // an earlier one was; the server may come back
			case isTimeout(err) && !idle(): // the other direction was busy
			default:
				ended.Store(true)
				dst.SetReadDeadline(start) // in the past: wakes the other direction
				return
			}
		}
	}
	var back sync.WaitGroup
	back.Go(func() { carry(near, far, nil) })
	carry(far, near, before)
	back.Wait()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
