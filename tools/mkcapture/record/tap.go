package record

import (
	"io"
	"sync"

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
	t.rec.take(p)
	t.Endpoint.DeliverNetworkPacket(protocol, p)
}

// WritePackets implements stack.LinkWriter: packets go out.
func (t *tap) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for _, p := range packets.AsSlice() {
		t.rec.take(p)
	}
	return t.Endpoint.WritePackets(packets)
}

// A recorder writes packets to a capture. It begins and ends when told.
type recorder struct {
	clock   *clock
	mu      sync.Mutex
	w       *pcap.Writer
	on      bool
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

// take moves the clock and records a packet. Packets lie in the capture in the
// order of their times.
func (r *recorder) take(p *stack.PacketBuffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen++
	now := r.clock.tick()
	if !r.on || r.err != nil {
		return
	}
	b := p.ToBuffer()
	defer b.Release()
	r.err = r.w.Write(now, b.Flatten())
	r.packets++
}
