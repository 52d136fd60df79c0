package main

import (
	"io"
	"net"

	"github.com/mdlayher/vsock"

	"sheaf/e2e/order"
)

// dialHost connects with a port of the host (vsock(7)).
func dialHost(port uint32) (net.Conn, error) { return vsock.Dial(vsock.Host, port, nil) }

// relay does what order.Relay says, until the guest ends.
func relay(a order.Relay) (any, error) {
	l, err := vsock.Listen(a.Vsock, nil)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go carry(c.(*vsock.Conn), a.To.String())
		}
	}()
	return nil, nil
}

// carry carries bytes between a connection and a TCP server until both directions end.
func carry(c *vsock.Conn, to string) {
	defer c.Close()
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer s.Close()
	server := s.(*net.TCPConn)
	up := make(chan bool)
	go func() {
		defer close(up)
		_, _ = io.Copy(server, c)
		_ = server.CloseWrite()
	}()
	_, _ = io.Copy(c, server)
	_ = c.CloseWrite()
	<-up
}
