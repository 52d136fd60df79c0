package vhostuser

import (
	"encoding/binary"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"sheaf/netstack/vhostuser/vhosttest"
	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// quiet is a front's events that nobody looks at.
type quiet struct{}

func (quiet) up(bool)     {}
func (quiet) fault(error) {}

// bareNIC returns a NIC without a socket, and a front that serves it.
func bareNIC() (*NIC, *front) {
	n := newNIC()
	n.offer.Features |= featureMTU
	n.offer.Config, n.offer.MTU = make([]byte, configLen), testMTU
	return n, newFront((*nicDevice)(n), quiet{})
}

// conversation is what QEMU says until a NIC's rings run, as messages.
func conversation(m *virtiotest.Memory, rings [2]virtiotest.Ring) (all [][]byte) {
	say := func(request uint32, payload []byte) {
		all = append(all, vhosttest.Message(request, vhosttest.FlagNeedReply, payload))
	}
	say(vhosttest.SetProtocolFeatures, vhosttest.U64(vhosttest.ProtocolReplyAck|vhosttest.ProtocolMTU|vhosttest.ProtocolConfig))
	say(vhosttest.SetFeatures, vhosttest.U64(virtio.FeaturesOfRings|virtio.FeatureMergeable|vhosttest.FeatureProtocol))
	table, _ := vhosttest.TableOf(m)
	say(vhosttest.SetMemTable, table)
	for i, r := range rings {
		n := uint32(i)
		say(vhosttest.SetVringEnable, vhosttest.State(n, 1))
		say(vhosttest.SetVringNum, vhosttest.State(n, uint32(r.Config.Size)))
		say(vhosttest.SetVringBase, vhosttest.State(n, 0))
		say(vhosttest.SetVringAddr, vhosttest.Address(n, m, r))
		say(vhosttest.SetVringKick, vhosttest.U64(uint64(i)))
		say(vhosttest.SetVringCall, vhosttest.U64(uint64(i)))
	}
	return all
}

// machine makes a guest's memory with two small rings in it.
func machine(t testing.TB) (m *virtiotest.Memory, rings [2]virtiotest.Ring) {
	t.Helper()
	m, err := virtiotest.NewMemory(1<<13, 1<<13)
	must(t, err)
	t.Cleanup(func() { m.Close() })
	for i := range rings {
		rings[i], err = virtiotest.NewRing(m, 8, virtio.FeaturesOfRings|virtio.FeatureMergeable)
		must(t, err)
	}
	return m, rings
}

// files returns copies of as many descriptors as a message is to have, of the kinds that fit.
func files(t testing.TB, m *virtiotest.Memory, event *vhosttest.Eventfd, message []byte, n int) (fds []int) {
	for i := range n {
		from := event.FD()
		if len(message) > 0 && message[0] == vhosttest.SetMemTable {
			from = int(m.Files()[i%len(m.Files())].Fd())
		}
		fd, err := unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
		must(t, err)
		fds = append(fds, fd)
	}
	return fds
}

// FuzzFrontEnd is a connection with whatever is sent into it: pieces of a byte for the number
// of descriptors, two for a length, and so many bytes. It ends, and leaves nothing behind.
func FuzzFrontEnd(f *testing.F) {
	m, rings := machine(f)
	var whole []byte
	for _, message := range conversation(m, rings) {
		fds := map[byte]byte{vhosttest.SetMemTable: 2, vhosttest.SetVringKick: 1, vhosttest.SetVringCall: 1}[message[0]]
		piece := binary.LittleEndian.AppendUint16([]byte{fds}, uint16(len(message)))
		piece = append(piece, message...)
		f.Add(piece)
		whole = append(whole, piece...)
	}
	f.Add(whole)
	event, err := vhosttest.NewEventfd()
	must(f, err)
	f.Cleanup(func() { event.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := socketPair(t)
		before := descriptors(t)
		_, device := bareNIC()
		done := make(chan struct{})
		go func() {
			defer close(done)
			device.serve(newSocket(there), func(error) {})
			there.Close()
		}()
		drained := make(chan struct{})
		go func() { // its replies
			defer close(drained)
			buf := make([]byte, 4096)
			for {
				if _, err := here.Read(buf); err != nil {
					return
				}
			}
		}()
		for len(b) >= 3 {
			n, size := int(b[0])%(maxFDs+3), int(binary.LittleEndian.Uint16(b[1:]))
			b = b[3:]
			piece := b[:min(size, len(b))]
			b = b[len(piece):]
			fds := files(t, m, event, piece, n)
			_, _, err := here.WriteMsgUnix(piece, unix.UnixRights(fds...), nil)
			for _, fd := range fds {
				unix.Close(fd)
			}
			if err != nil {
				break // it was given up
			}
		}
		here.CloseWrite()
		<-done
		<-drained
		here.Close()
		if after := descriptors(t); after > before-2 {
			t.Errorf("%d descriptors with the connection, %d afterwards", before, after)
		}
	})
}

func socketPair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	for i, c := range []**net.UnixConn{&a, &b} {
		file := os.NewFile(uintptr(fds[i]), "pair")
		conn, err := net.FileConn(file)
		file.Close()
		must(t, err)
		*c = conn.(*net.UnixConn)
	}
	return a, b
}

func descriptors(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(names)
}

// FuzzDevice is a NIC whose rings run, under a guest that writes into its memory what it
// likes and a front end that says what it likes. Each step is a byte that says which, and
// what it takes of the rest.
func FuzzDevice(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 2, 3})
	f.Add([]byte{4, 4, 4, 1, 5, 5, 2, 1, 3, 2})
	f.Add([]byte{6, vhosttest.SetVringEnable, 8, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 6, vhosttest.GetVringBase, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	event, err := vhosttest.NewEventfd()
	must(f, err)
	f.Cleanup(func() { event.Close() })
	f.Fuzz(func(t *testing.T, b []byte) {
		before := descriptors(t)
		m, rings := machine(t)
		n, device := bareNIC()
		for _, message := range conversation(m, rings) {
			fds := map[byte]int{vhosttest.SetMemTable: 2, vhosttest.SetVringKick: 1, vhosttest.SetVringCall: 1}[message[0]]
			deliver(t, device, message, files(t, m, event, message, fds))
		}
		if n.rings == nil {
			t.Fatal("the rings do not run")
		}
		s := &steps{b: b}
		for len(s.b) > 0 {
			step(t, s, m, event, n, device)
		}
		device.close()
		m.Close()
		if after := descriptors(t); after > before {
			t.Errorf("%d descriptors before, %d afterwards", before, after)
		}
	})
}

// steps are bytes that are taken, and zeros behind them.
type steps struct{ b []byte }

func (s *steps) take(n int) []byte {
	out := make([]byte, n)
	s.b = s.b[copy(out, s.b):]
	return out
}

// step does what the next bytes say.
func step(t *testing.T, s *steps, m *virtiotest.Memory, event *vhosttest.Eventfd, n *NIC, device *front) {
	bufs, sizes := fuzzBufs, fuzzSizes
	n.reader.bufs, n.reader.sizes, n.reader.n, n.reader.invalid = bufs, sizes, 0, 0
	n.writer.frames, n.writer.n, n.writer.unfit = fuzzFrames, 0, 0
	switch op := s.take(1)[0] % 7; op {
	case 0, 4, 5: // the guest writes: a few bytes anywhere, or into a ring's indexes
		at := uint64(binary.LittleEndian.Uint16(s.take(2))) % (1 << 14)
		if op != 0 {
			at %= 512 // where the rings are
		}
		m.Write(virtiotest.Origin+at, s.take(1+int(s.take(1)[0])%24))
	case 1:
		if n.rings != nil {
			n.rings[transmitQueue].Do(n.reader.take)
		}
	case 2:
		if n.rings != nil {
			n.writer.merge = n.merge
			n.rings[receiveQueue].Do(n.writer.give)
		}
	case 3:
		for _, r := range n.rings {
			r.arm()
		}
	case 6:
		request, size := s.take(1)[0]%32, int(s.take(1)[0])
		message := vhosttest.Message(uint32(request), 0, s.take(size))
		deliver(t, device, message, files(t, m, event, message, int(s.take(1)[0])%4))
	}
	select {
	case fault := <-device.faults:
		device.mu.Lock()
		if device.rings[fault.number].ring == fault.ring {
			device.breakDown(fault.err)
		}
		device.mu.Unlock()
	default:
	}
}

var (
	fuzzBufs, fuzzSizes = buffers()
	fuzzFrames          = [][]byte{frame(60, 1), frame(1514, 2), frame(4000, 3)}
)

// deliver hands a message to a front as if it had come by its socket.
func deliver(t *testing.T, device *front, b []byte, fds []int) {
	h, err := parseHeader(b[:headerLen])
	must(t, err)
	message := &message{header: h, payload: b[headerLen:], fds: fds}
	device.handle(message)
	message.close()
}
