package demo

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// datagramHeaders is what IPv4 and UDP add to a datagram's payload, bytes.
const datagramHeaders = 20 + 8

// A relay passes UDP datagrams between one caller and a server, and counts what
// crosses: it stands for the link.
type relay struct {
	front, back *net.UDPConn
	caller      atomic.Pointer[netip.AddrPort]
	up, down    atomic.Uint64 // bytes of IP packets, from the caller and to it
	packets     atomic.Uint64
	running     sync.WaitGroup
}

func newRelay(server net.Addr) (*relay, error) {
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	to, ok := server.(*net.UDPAddr)
	if !ok {
		front.Close()
		return nil, errors.New("the server does not listen on UDP")
	}
	back, err := net.DialUDP("udp", nil, to)
	if err != nil {
		front.Close()
		return nil, err
	}
	r := &relay{front: front, back: back}
	r.running.Go(r.forward)
	r.running.Go(r.backward)
	return r, nil
}

func (r *relay) address() string { return r.front.LocalAddr().String() }

func (r *relay) forward() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := r.front.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // a datagram that could not be delivered is no end
		}
		r.caller.Store(&from)
		r.up.Add(uint64(n + datagramHeaders))
		r.packets.Add(1)
		_, _ = r.back.Write(buf[:n])
	}
}

func (r *relay) backward() {
	buf := make([]byte, 1<<16)
	for {
		n, err := r.back.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		to := r.caller.Load()
		if err != nil || to == nil {
			continue
		}
		r.down.Add(uint64(n + datagramHeaders))
		r.packets.Add(1)
		_, _ = r.front.WriteToUDPAddrPort(buf[:n], *to)
	}
}

func (r *relay) close() {
	r.front.Close()
	r.back.Close()
	r.running.Wait()
}
