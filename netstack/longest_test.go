package netstack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The longest packet passes a device both ways. A longer one the kernel does not
// give, and Write refuses it, counts it and goes on.
func TestTUNLongest(t *testing.T) {
	eachMode(t, func(t *testing.T, offload bool) {
		enterNamespace(t)
		d := openTestTUN(t, TUNConfig{MTU: MaxPacket, Offload: offload, Addresses: prefixes("10.99.0.1/24")})
		packet := func(length int) []byte {
			p := testSegment{src: client4, dst: server4, payload: make([]byte, length-40)}.bytes()
			p[9] = 253 // of no protocol, so that nobody joins or checks it
			binary.BigEndian.PutUint16(p[2:], uint16(length))
			return p
		}
		link, err := net.InterfaceByName(d.Name())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(raw)
		to := &unix.SockaddrLinklayer{Ifindex: link.Index, Protocol: 8} // ETH_P_IP, in network order
		long := packet(MaxPacket)
		if err := unix.Sendto(raw, append(long, 0), 0, to); !errors.Is(err, unix.EMSGSIZE) {
			t.Errorf("a byte more: %v", err)
		}
		if err := unix.Sendto(raw, long, 0, to); err != nil {
			t.Fatal(err)
		}
		bufs, sizes := buffers(d)
		for {
			n, err := d.Read(bufs, sizes)
			if err != nil {
				t.Fatal(err)
			}
			if n == 1 && sizes[0] > 1000 {
				break // before it IPv6 may have announced itself
			}
		}
		if !bytes.Equal(bufs[0][:sizes[0]], long) {
			t.Errorf("read %d bytes, or others", sizes[0])
		}
		if err := d.Write([][]byte{long}); err != nil || d.Stats().Refused != 0 {
			t.Errorf("written: %v", err)
		}
		err = d.Write([][]byte{nil, append(long, 0)[:MaxPacket+1], packet(100)})
		if got := d.Stats().Refused; err == nil || got != map[bool]uint64{true: 2, false: 1}[offload] {
			t.Errorf("%d refused, %v", got, err) // without offload the kernel takes the longer one, and drops it
		}
	})
}
