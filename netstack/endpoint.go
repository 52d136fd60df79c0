package netstack

import (
	"os"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// An endpoint is the stack's interface, what gVisor calls a link endpoint: a queue
// of the packets that the stack emits. gVisor's own channel endpoint drops when it is
// full; here, who writes waits, so that a slow tunnel slows the sockets down.
//
// What the stack says while a packet is being put into it must not wait, or the
// two directions of two gateways could wait for each other in a ring. Those are
// ICMP messages, which are dropped when there is no room, and the resets of
// reset.go. What caused them is repeated by somebody, and answered then.
type endpoint struct {
	mtu     uint32
	queue   chan *stack.PacketBuffer
	closing chan struct{} // closed: writers no longer wait
	closed  chan struct{} // closed: nothing more comes
	dropped atomic.Uint64

	mu         sync.RWMutex // guards dispatcher
	dispatcher stack.NetworkDispatcher
}

var _ stack.LinkEndpoint = (*endpoint)(nil)

func newEndpoint(mtu, queue int) *endpoint {
	return &endpoint{
		mtu:     uint32(mtu),
		queue:   make(chan *stack.PacketBuffer, queue),
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
	}
}

// read is Stack.Read. Once the endpoint is closed it gives out what is left.
func (e *endpoint) read(bufs [][]byte, sizes []int) (int, error) {
	var p *stack.PacketBuffer
	select {
	case p = <-e.queue:
	default:
		select {
		case p = <-e.queue:
		case <-e.closed:
			select {
			case p = <-e.queue:
			default:
				return 0, os.ErrClosed
			}
		}
	}
	for n := 0; ; {
		sizes[n] = copyPacket(bufs[n], p)
		p.DecRef()
		n++
		if n == len(bufs) {
			return n, nil
		}
		select {
		case p = <-e.queue:
		default:
			return n, nil
		}
	}
}

func copyPacket(dst []byte, p *stack.PacketBuffer) int {
	n := 0
	views, skip := p.AsViewList()
	for v := views.Front(); v != nil; v = v.Next() {
		b := v.AsSlice()
		if skip >= len(b) {
			skip -= len(b)
			continue
		}
		n += copy(dst[n:], b[skip:])
		skip = 0
	}
	return n
}

// WritePackets implements stack.LinkWriter.
func (e *endpoint) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for _, p := range packets.AsSlice() {
		q := p.Clone() // TCP keeps the original to send it again
		if !e.push(q, !expendable(p)) {
			q.DecRef()
			e.dropped.Add(1)
		}
	}
	return packets.Len(), nil
}

func (e *endpoint) push(p *stack.PacketBuffer, wait bool) bool {
	select {
	case e.queue <- p:
		return true
	default:
	}
	if !wait {
		return false
	}
	select {
	case e.queue <- p:
		return true
	case <-e.closing:
		return false
	}
}

// expendable reports whether a packet that the stack emits may be dropped rather
// than waited for.
func expendable(p *stack.PacketBuffer) bool {
	return p.TransportProtocolNumber != header.TCPProtocolNumber && p.TransportProtocolNumber != header.UDPProtocolNumber
}

// deliver puts a packet into the stack.
func (e *endpoint) deliver(protocol tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	e.mu.RLock()
	d := e.dispatcher
	e.mu.RUnlock()
	if d != nil {
		d.DeliverNetworkPacket(protocol, p)
	}
}

// Attach implements stack.LinkEndpoint.
func (e *endpoint) Attach(d stack.NetworkDispatcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dispatcher = d
}

// IsAttached implements stack.LinkEndpoint.
func (e *endpoint) IsAttached() bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.dispatcher != nil
}

// The rest of stack.LinkEndpoint: an endpoint without link-layer headers.

func (e *endpoint) MTU() uint32                                  { return e.mtu }
func (e *endpoint) SetMTU(uint32)                                {}
func (e *endpoint) MaxHeaderLength() uint16                      { return 0 }
func (e *endpoint) LinkAddress() tcpip.LinkAddress               { return "" }
func (e *endpoint) SetLinkAddress(tcpip.LinkAddress)             {}
func (e *endpoint) Capabilities() stack.LinkEndpointCapabilities { return stack.CapabilityNone }
func (e *endpoint) Wait()                                        {}
func (e *endpoint) ARPHardwareType() header.ARPHardwareType      { return header.ARPHardwareNone }
func (e *endpoint) AddHeader(*stack.PacketBuffer)                {}
func (e *endpoint) ParseHeader(*stack.PacketBuffer) bool         { return true }
func (e *endpoint) Close()                                       {}
func (e *endpoint) SetOnCloseAction(func())                      {}
