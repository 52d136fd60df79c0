package record

import (
	"io"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/nested"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"sheaf/pcap"
)

// A tap is an interface whose packets are recorded both ways.
type tap struct {
	nested.Endpoint
	rec *recorder
}

func newTap(lower stack.LinkEndpoint, rec *recorder) *tap {
	t := &tap{rec: rec}
	t.Init(lower, t)
	return t
}

// DeliverNetworkPacket implements stack.NetworkDispatcher: a packet comes in.
func (t *tap) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, p *stack.PacketBuffer) {
	if t.rec.take(p) {
		t.Endpoint.DeliverNetworkPacket(protocol, p)
	}
}

// WritePackets implements stack.LinkWriter: packets go out. Who sends them is not told of
// those that are lost.
func (t *tap) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	var arriving stack.PacketBufferList
	for _, p := range packets.AsSlice() {
		if t.rec.take(p) {
			arriving.PushBack(p)
		}
	}
	if _, err := t.Endpoint.WritePackets(arriving); err != nil {
		return 0, err
	}
	return packets.Len(), nil
}

// A packetWriter takes packets, borrowed for the call.
type packetWriter interface {
	Write(at time.Time, packet []byte) error
}

// A recorder writes packets to a capture. It begins and ends when told.
type recorder struct {
	clock   *clock
	mu      sync.Mutex
	w       packetWriter
	on      bool
	loses   int // of so many packets with data, while recorded, one is lost behind the tap; 0: none
	data    int // of those, how many there were
	seen    int // packets
	packets int // of them recorded
	err     error
}

// newRecorder returns a recorder to w, which has not begun.
func newRecorder(w io.Writer, c *clock) (*recorder, error) {
	pw, err := pcap.NewWriter(w)
	return &recorder{clock: c, w: pw}, err
}

func (r *recorder) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = true
}

// stop ends the capture and returns how many packets it has.
func (r *recorder) stop() (packets int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return r.packets, r.err
}

// count returns how many packets went through, recorded or not.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// take moves the clock and records a packet, and reports whether it arrives. Packets lie
// in the capture in the order of their times.
func (r *recorder) take(p *stack.PacketBuffer) (arrives bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	now := r.clock.tick()
	if !r.on || r.err != nil {
		return true
	}
	b := p.ToBuffer()
	defer b.Release()
	r.err = r.w.Write(now, b.Flatten())
	r.packets++
	if r.loses == 0 || b.Size() < withData {
		return true
	}
	r.data++
	return r.data%r.loses != 0
}

// withData is from which length on, in bytes, a packet has data: past headers with all
// options.
const withData = 120
