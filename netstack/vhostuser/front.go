package vhostuser

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"sheaf/netstack/virtio"
)

// featureProtocol is VHOST_USER_F_PROTOCOL_FEATURES: the front end may negotiate protocol
// features, and rings begin disabled. QEMU 7.2 leaves a NIC dead without it.
const featureProtocol = 1 << 30

// Protocol features that are offered ("Protocol features" of the protocol).
const (
	protocolReplyAck = 1 << 3 // a reply to each message that asks for one
	protocolMTU      = 1 << 4 // NET_SET_MTU
	protocolConfig   = 1 << 9 // GET_CONFIG
)

// A vring is what a front end has said of one queue.
type vring struct {
	size            int
	address         ringAddress
	addressed       bool
	kick, call, err *event // nil: none
	enabled         bool
	base            uint16
	broken          bool  // the guest's fault; until the front end stops it
	ring            *Ring // while all run
}

// A front is one connection with a front end. Its state changes under mu: by messages, and
// when a guest is found at fault.
type front struct {
	offer  Offer
	device Device
	events frontEvents
	faults chan ringFault // noticed in methods of rings

	mu       sync.Mutex
	features uint64 // taken by the driver
	protocol uint64 // taken by the front end
	memory   *memory
	rings    []vring
	running  bool // between Start and Stop
}

// frontEvents are what a front tells about, with mu held.
type frontEvents interface {
	up(bool)     // whether the device runs with all rings enabled
	fault(error) // why it does not any more
}

func newFront(d Device, events frontEvents) *front {
	offer := d.Offer()
	return &front{
		offer: offer, device: d, events: events,
		faults: make(chan ringFault, 1),
		rings:  make([]vring, len(offer.Queues)),
	}
}

// serve acts on what the front end sends until it goes or breaks a rule, or the connection
// is closed. Without a fault of the front end the error is io.EOF or that of the socket.
func (f *front) serve(s *socket, refused func(error)) error {
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		f.watch()
	}()
	defer func() {
		f.close()
		<-watching
	}()
	for {
		m, err := s.receive()
		if err != nil {
			return err
		}
		reply, err := f.handle(&m)
		m.close()
		if reply == nil && m.flags&flagNeedReply != 0 && f.acknowledges() {
			reply = appendU64(0)
			if err != nil {
				reply = appendU64(1) // any number but 0 will do
			}
		}
		if r := (*refusal)(nil); errors.As(err, &r) {
			refused(err)
			err = nil
		}
		if reply != nil {
			err = errors.Join(err, s.reply(m.request, reply))
		}
		if err != nil {
			return err
		}
	}
}

// acknowledges reports whether the front end took REPLY_ACK.
func (f *front) acknowledges() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.protocol&protocolReplyAck != 0
}

// virtioFeatures are what GET_FEATURES offers.
func (f *front) virtioFeatures() uint64 {
	return f.offer.Features | virtio.FeaturesOfRings | featureProtocol
}

// protocolFeatures are what GET_PROTOCOL_FEATURES offers.
func (f *front) protocolFeatures() uint64 {
	p := uint64(protocolReplyAck)
	if f.offer.MTU > 0 {
		p |= protocolMTU
	}
	if f.offer.Config != nil {
		p |= protocolConfig
	}
	return p
}

// handle acts on a message and returns the payload of its reply, nil if it has none of its
// own. It takes the file descriptors that it keeps out of m.
func (f *front) handle(m *message) (reply []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply, err = f.dispatch(m)
	if err == nil && len(m.fds) > 0 {
		err = fmt.Errorf("%d file descriptors, more than it needs", len(m.fds))
	}
	if err == nil {
		f.proceed()
		return reply, nil
	}
	err = fmt.Errorf("%v: %w", m.request, err)
	if r := (*refusal)(nil); errors.As(err, &r) {
		return nil, &refusal{err}
	}
	return nil, &violation{err}
}

func (f *front) dispatch(m *message) (reply []byte, err error) {
	switch m.request {
	case getFeatures:
		return appendU64(f.virtioFeatures()), exactly(m.payload, 0)
	case getProtocolFeatures:
		return appendU64(f.protocolFeatures()), exactly(m.payload, 0)
	case setFeatures:
		return nil, f.setFeatures(m.payload)
	case setProtocolFeatures:
		return nil, f.setProtocolFeatures(m.payload)
	case setOwner:
		return nil, exactly(m.payload, 0)
	case resetOwner:
		f.stopAll()
		return nil, exactly(m.payload, 0)
	case setMemTable:
		return nil, f.setMemory(m)
	case setVringNum, setVringBase, setVringEnable:
		return nil, f.setState(m)
	case setVringAddr:
		return nil, f.setAddress(m.payload)
	case getVringBase:
		return f.getBase(m.payload)
	case setVringKick, setVringCall, setVringErr:
		return nil, f.setEvent(m)
	case netSetMTU:
		return nil, f.setMTU(m.payload)
	case getConfig:
		return f.getConfig(m.payload)
	case setConfig:
		return nil, &refusal{errors.New("nothing in the configuration space can be written")}
	}
	return nil, errors.New("of a feature that is not offered")
}

func appendU64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// setFeatures takes what the driver and the front end took of the features.
func (f *front) setFeatures(payload []byte) error {
	v, err := parseU64(payload)
	if err != nil {
		return err
	}
	if extra := v &^ f.virtioFeatures(); extra != 0 {
		return fmt.Errorf("feature %d%s is not offered", bits.TrailingZeros64(extra), featureName(extra))
	}
	if f.running && v != f.features {
		return fmt.Errorf("features %#x while rings run with %#x", v, f.features)
	}
	f.features = v
	return nil
}

// featureName says what the first of some features is, if a front end may think that it is usual.
func featureName(features uint64) string {
	switch first := features & -features; {
	case first == virtio.FeaturePacked:
		return " (packed rings)"
	case first == virtio.FeatureAccess:
		return " (addresses behind an IOMMU)"
	case first == 1<<22:
		return " (several queues)"
	case first == 1<<26:
		return " (logging, for migration)"
	case first <= 1<<14:
		return " (an offload)"
	}
	return ""
}

func (f *front) setProtocolFeatures(payload []byte) error {
	v, err := parseU64(payload)
	if err != nil {
		return err
	}
	if extra := v &^ f.protocolFeatures(); extra != 0 {
		return fmt.Errorf("protocol feature %d is not offered", bits.TrailingZeros64(extra))
	}
	f.protocol = v
	return nil
}

func (f *front) setMTU(payload []byte) error {
	v, err := parseU64(payload)
	switch {
	case err != nil:
		return err
	case f.protocol&protocolMTU == 0:
		return errors.New("of a feature that was not taken")
	case v > uint64(f.offer.MTU):
		return &refusal{fmt.Errorf("an MTU of %d, more than %d", v, f.offer.MTU)}
	}
	return nil
}

// getConfig returns a part of the configuration space, behind a copy of what it asks for. Beyond its
// end there are zeros, as the front end's may have later fields.
func (f *front) getConfig(payload []byte) ([]byte, error) {
	offset, size, err := parseConfig(payload)
	if err == nil && f.protocol&protocolConfig == 0 {
		err = errors.New("of a feature that was not taken")
	}
	if err != nil {
		return nil, err
	}
	var space [maxConfig]byte
	copy(space[:], f.offer.Config)
	reply := append([]byte(nil), payload[:configHeaderLen]...)
	return append(reply, space[offset:offset+size]...), nil
}
