package netstack

import (
	"os"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// A link is the stack's interface: a queue of the packets that the stack emits.
// gVisor's own channel endpoint drops when it is full; here, who writes waits, so
// that a slow tunnel slows the sockets down.
//
// What the stack says while a packet is being put into it must not wait, or the
// two directions of two gateways could wait for each other in a ring. Those are
// ICMP messages, which are dropped when there is no room, and the resets of
// reset.go. What caused them is repeated by somebody, and answered then.
type link struct {
	mtu     uint32
	queue   chan *stack.PacketBuffer
	closing chan struct{} // closed: writers no longer wait
	closed  chan struct{} // closed: nothing more comes
	dropped atomic.Uint64

	mu         sync.RWMutex // guards dispatcher
	dispatcher stack.NetworkDispatcher
}

var _ stack.LinkEndpoint = (*link)(nil)

func newLink(mtu, queue int) *link {
	return &link{
		mtu:     uint32(mtu),
		queue:   make(chan *stack.PacketBuffer, queue),
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
	}
}

// read implements Port.Read. Once the link is closed it gives out what is left.
func (l *link) read(bufs [][]byte, sizes []int) (int, error) {
	var p *stack.PacketBuffer
	select {
	case p = <-l.queue:
	default:
		select {
		case p = <-l.queue:
		case <-l.closed:
			select {
			case p = <-l.queue:
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
		case p = <-l.queue:
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
func (l *link) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for _, p := range packets.AsSlice() {
		q := p.Clone() // TCP keeps the original to send it again
		if !l.push(q, !expendable(p)) {
			q.DecRef()
			l.dropped.Add(1)
		}
	}
	return packets.Len(), nil
}

func (l *link) push(p *stack.PacketBuffer, wait bool) bool {
	select {
	case l.queue <- p:
		return true
	default:
	}
	if !wait {
		return false
	}
	select {
	case l.queue <- p:
		return true
	case <-l.closing:
		return false
	}
}

// expendable reports whether a packet that the stack emits may be dropped rather
// than waited for.
func expendable(p *stack.PacketBuffer) bool {
	return p.TransportProtocolNumber != header.TCPProtocolNumber && p.TransportProtocolNumber != header.UDPProtocolNumber
}

// deliver puts a packet into the stack.
func (l *link) deliver(protocol tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	l.mu.RLock()
	d := l.dispatcher
	l.mu.RUnlock()
	if d != nil {
		d.DeliverNetworkPacket(protocol, p)
	}
}

// Attach implements stack.LinkEndpoint.
func (l *link) Attach(d stack.NetworkDispatcher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dispatcher = d
}

// IsAttached implements stack.LinkEndpoint.
func (l *link) IsAttached() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.dispatcher != nil
}

// The rest of stack.LinkEndpoint: a link without link-layer headers.

func (l *link) MTU() uint32                                  { return l.mtu }
func (l *link) SetMTU(uint32)                                {}
func (l *link) MaxHeaderLength() uint16                      { return 0 }
func (l *link) LinkAddress() tcpip.LinkAddress               { return "" }
func (l *link) SetLinkAddress(tcpip.LinkAddress)             {}
func (l *link) Capabilities() stack.LinkEndpointCapabilities { return stack.CapabilityNone }
func (l *link) Wait()                                        {}
func (l *link) ARPHardwareType() header.ARPHardwareType      { return header.ARPHardwareNone }
func (l *link) AddHeader(*stack.PacketBuffer)                {}
func (l *link) ParseHeader(*stack.PacketBuffer) bool         { return true }
func (l *link) Close()                                       {}
func (l *link) SetOnCloseAction(func())                      {}
