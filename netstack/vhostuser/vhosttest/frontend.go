// Package vhosttest is the front end of the vhost-user protocol and a guest behind it: a
// hypervisor without a machine, by which back ends are tested and measured over a real
// socket, with shared memory and eventfds. It says what QEMU says, in QEMU's order; and
// whatever else a test wants to be said.
package vhosttest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"sheaf/netstack/virtio/virtiotest"
)

// Messages ("Front-end message types" of the protocol), as VhostUserRequest has them.
const (
	GetFeatures         = 1
	SetFeatures         = 2
	SetOwner            = 3
	ResetOwner          = 4
	SetMemTable         = 5
	SetLogBase          = 6
	SetVringNum         = 8
	SetVringAddr        = 9
	SetVringBase        = 10
	GetVringBase        = 11
	SetVringKick        = 12
	SetVringCall        = 13
	SetVringErr         = 14
	GetProtocolFeatures = 15
	SetProtocolFeatures = 16
	GetQueueNum         = 17
	SetVringEnable      = 18
	NetSetMTU           = 20
	GetConfig           = 24
	SetConfig           = 25
)

// Features and flags of messages.
const (
	FeatureProtocol  = 1 << 30 // VHOST_USER_F_PROTOCOL_FEATURES
	ProtocolReplyAck = 1 << 3
	ProtocolMTU      = 1 << 4
	ProtocolConfig   = 1 << 9
	Version          = 1
	FlagReply        = 1 << 2
	FlagNeedReply    = 1 << 3
	NoFD             = 1 << 8 // in the number of a ring
)

// A FrontEnd is a connection with a back end. Its methods may be called from several goroutines.
type FrontEnd struct {
	conn    *net.UnixConn
	mu      sync.Mutex  // of a message and its reply
	replies chan []byte // with their headers; closed when the connection has ended
	ended   chan struct{}
}

// unasked is how many replies that nobody waits for are kept.
const unasked = 16

// Dial connects to a back end that listens.
func Dial(path string) (*FrontEnd, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, err
	}
	return newFrontEnd(c), nil
}

func newFrontEnd(c *net.UnixConn) *FrontEnd {
	f := &FrontEnd{conn: c, replies: make(chan []byte, unasked), ended: make(chan struct{})}
	go f.read()
	return f
}

// read takes replies until the connection ends.
func (f *FrontEnd) read() {
	defer close(f.ended)
	defer close(f.replies)
	for {
		b := make([]byte, 12)
		if _, err := io.ReadFull(f.conn, b); err != nil {
			return
		}
		b = append(b, make([]byte, binary.LittleEndian.Uint32(b[8:]))...)
		if _, err := io.ReadFull(f.conn, b[12:]); err != nil {
			return
		}
		select {
		case f.replies <- b:
		default: // they show as replies to what is asked for next
		}
	}
}

// Close ends the connection.
func (f *FrontEnd) Close() error { return f.conn.Close() }

// Raw sends bytes and file descriptors as they are.
func (f *FrontEnd) Raw(b []byte, fds ...int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.raw(b, fds...)
}

func (f *FrontEnd) raw(b []byte, fds ...int) error {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	_, _, err := f.conn.WriteMsgUnix(b, oob, nil)
	return err
}

// Message returns the bytes of a message of version 1.
func Message(request, flags uint32, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, request)
	b = binary.LittleEndian.AppendUint32(b, flags|Version)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// Send sends a message that has no reply.
func (f *FrontEnd) Send(request uint32, payload []byte, fds ...int) error {
	return f.Raw(Message(request, 0, payload), fds...)
}

// Call sends a message and returns its reply.
func (f *FrontEnd) Call(request, flags uint32, payload []byte, fds ...int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.raw(Message(request, flags, payload), fds...); err != nil {
		return nil, err
	}
	b, ok := <-f.replies
	if !ok {
		return nil, fmt.Errorf("vhosttest: the connection has ended, without a reply to message %d", request)
	}
	if r, fl := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]); r != request || fl != Version|FlagReply {
		return nil, fmt.Errorf("vhosttest: message %d, flags %#x, as reply to %d", r, fl, request)
	}
	return b[12:], nil
}

// Get sends a message whose reply is a number, and returns that.
func (f *FrontEnd) Get(request uint32) (uint64, error) {
	reply, err := f.Call(request, 0, nil)
	if err != nil {
		return 0, err
	}
	if len(reply) != 8 {
		return 0, fmt.Errorf("vhosttest: a reply of %d bytes to message %d", len(reply), request)
	}
	return binary.LittleEndian.Uint64(reply), nil
}

// Acknowledged sends a message and asks for its acknowledgement: nil says that the back end is content.
func (f *FrontEnd) Acknowledged(request uint32, payload []byte, fds ...int) error {
	reply, err := f.Call(request, FlagNeedReply, payload, fds...)
	if err != nil {
		return err
	}
	if len(reply) != 8 {
		return fmt.Errorf("vhosttest: an acknowledgement of %d bytes to message %d", len(reply), request)
	}
	if n := binary.LittleEndian.Uint64(reply); n != 0 {
		return &RefusedError{request, n}
	}
	return nil
}

// A RefusedError is an acknowledgement that is none.
type RefusedError struct {
	Request uint32
	Result  uint64
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("vhosttest: message %d has the result %d", e.Request, e.Result)
}

// Gone waits until the connection has ended. The error is of a reply that nobody asked for.
func (f *FrontEnd) Gone() error {
	<-f.ended
	if b, ok := <-f.replies; ok {
		return fmt.Errorf("vhosttest: a reply that nobody asked for: %x", b)
	}
	return nil
}

// Negotiate does what QEMU does with a new back end: it takes the protocol features that
// are wanted of those offered. The error says which of the virtio features that are needed are not offered.
func (f *FrontEnd) Negotiate(features, protocol uint64) error {
	offered, err := f.Get(GetFeatures)
	if err != nil {
		return err
	}
	if missing := (features | FeatureProtocol) &^ offered; missing != 0 {
		return fmt.Errorf("vhosttest: features %#x are not offered", missing)
	}
	have, err := f.Get(GetProtocolFeatures)
	if err != nil {
		return err
	}
	return errors.Join(f.Send(SetProtocolFeatures, U64(have&protocol)), f.Send(SetOwner, nil))
}

// U64 is a payload of one number.
func U64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// State is a payload of a ring and a number.
func State(ring, n uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, ring), n)
}

// A Region is one of a memory table.
type Region struct{ Guest, Size, User, Offset uint64 }

// Table is the payload of SetMemTable.
func Table(regions ...Region) []byte {
	b := State(uint32(len(regions)), 0)
	for _, r := range regions {
		for _, v := range []uint64{r.Guest, r.Size, r.User, r.Offset} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

// TableOf is Table of a guest's memory, with the files that go along.
func TableOf(m *virtiotest.Memory) (payload []byte, fds []int) {
	var regions []Region
	for i, r := range m.Regions() {
		regions = append(regions, Region{Guest: r.Guest, Size: uint64(len(r.Data)), User: r.User})
		fds = append(fds, int(m.Files()[i].Fd()))
	}
	return Table(regions...), fds
}

// Address is the payload of SetVringAddr for a ring that is in a guest's memory.
func Address(number uint32, m *virtiotest.Memory, r virtiotest.Ring) []byte {
	b := State(number, 0)
	for _, guest := range []uint64{r.Config.Desc, r.Config.Used, r.Config.Avail} {
		b = binary.LittleEndian.AppendUint64(b, user(m, guest))
	}
	return binary.LittleEndian.AppendUint64(b, 0)
}

// user returns the hypervisor's address of what the guest has at an address.
func user(m *virtiotest.Memory, guest uint64) uint64 {
	for _, r := range m.Regions() {
		if offset := guest - r.Guest; offset < uint64(len(r.Data)) {
			return r.User + offset
		}
	}
	return 0
}

var one = [8]byte{1}

// An Eventfd is one end of an eventfd that is shared with a back end.
type Eventfd struct {
	file *os.File
	buf  [8]byte
}

// NewEventfd makes one.
func NewEventfd() (*Eventfd, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return &Eventfd{file: os.NewFile(uintptr(fd), "eventfd")}, nil
}

// FD returns its number, valid until Close.
func (e *Eventfd) FD() (fd int) {
	raw, err := e.file.SyscallConn()
	if err != nil {
		return -1
	}
	raw.Control(func(f uintptr) { fd = int(f) })
	return fd
}

// Signal adds one.
func (e *Eventfd) Signal() {
	e.file.Write(one[:])
}

// Wait waits until it was signalled, and resets it; the error is os.ErrClosed after Close.
func (e *Eventfd) Wait() error {
	_, err := e.file.Read(e.buf[:])
	return err
}

// Close closes it.
func (e *Eventfd) Close() error { return e.file.Close() }
