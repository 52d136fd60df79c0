package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// oddities is what the odd role does: it sends packets that no ordinary client
// sends, wrong ones among them.
type oddities struct {
	From, To   netip.Addr
	From6, To6 netip.Addr
	Count      int
}

func sendOdd(a oddities) (sent int, err error) {
	raw4, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return 0, err
	}
	raw6, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_RAW)
	if err != nil {
		return 0, err
	}
	sayReady()
	for i := range a.Count {
		p := oddPacket(i, a.From, a.To)
		err = unix.Sendto(raw4, p, 0, &unix.SockaddrInet4{Addr: a.To.As4()})
		if err == nil {
			err = unix.Sendto(raw6, oddPacket6(i, a.From6, a.To6), 0, &unix.SockaddrInet6{Addr: a.To6.As16()})
		}
		if err != nil {
			return sent, fmt.Errorf("packet %d: %w", i, err)
		}
		sent += 2
		if i%10 == 9 {
			time.Sleep(5 * time.Millisecond) // no faster than a device's queue
		}
	}
	return sent, nil
}

func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// oddPayload returns a transport header and payload, and its protocol.
func oddPayload(i int) (protocol byte, b []byte) {
	switch i % 8 {
	case 0: // GRE
		return unix.IPPROTO_GRE, append([]byte{0, 0, 8, 0}, noise(rand.IntN(1400))...)
	case 1: // for experiments, RFC 3692
		return 253, noise(rand.IntN(1400))
	case 2: // SCTP in name only
		return unix.IPPROTO_SCTP, noise(64)
	case 3, 4: // TCP to the broker in the middle of nothing, the checksum wrong
		options := noise(rand.IntN(11) * 4)
		b = append(noise(20), options...)
		binary.BigEndian.PutUint16(b, uint16(40000+i%3))
		binary.BigEndian.PutUint16(b[2:], 1883)
		b[12] = byte(len(b)/4) << 4
		return unix.IPPROTO_TCP, append(b, noise(rand.IntN(1300))...)
	case 5: // TCP cut short
		b = noise(12)
		return unix.IPPROTO_TCP, b
	case 6: // UDP without or with a wrong checksum
		b = noise(8 + rand.IntN(600))
		binary.BigEndian.PutUint16(b, uint16(41000+i%2))
		binary.BigEndian.PutUint16(b[2:], 9)
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
		if i%16 == 6 {
			clear(b[6:8])
		}
		return unix.IPPROTO_UDP, b
	}
	return 59, nil // nothing at all
}

func oddPacket(i int, from, to netip.Addr) []byte {
	protocol, payload := oddPayload(i)
	ihl := 5 + i/8%3
	p := append(make([]byte, ihl*4), payload...)
	p[0] = 0x40 | byte(ihl)
	p[1] = byte(rand.Uint32()) // DSCP and ECN
	binary.BigEndian.PutUint16(p[4:], uint16(rand.Uint32()|1))
	switch i % 5 {
	case 0:
		p[6] = 0x40 // do not fragment
	case 1: // a fragment whose others never come
		p[6] = 0x20
		p[7] = byte(i % 2 * 100)
	}
	p[8] = byte(16 + rand.IntN(200))
	p[9] = protocol
	copy(p[12:], from.AsSlice())
	copy(p[16:], to.AsSlice())
	for o := 20; o < ihl*4; o++ {
		p[o] = 1 // NOP
	}
	return p // the kernel puts in length and checksum
}

func oddPacket6(i int, from, to netip.Addr) []byte {
	next, payload := oddPayload(i)
	if i%3 == 0 { // destination options before it, padding only
		payload = append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, payload...)
		next = unix.IPPROTO_DSTOPTS
	}
	p := append(make([]byte, 40), payload...)
	binary.BigEndian.PutUint32(p, 6<<28|rand.Uint32N(1<<28)) // class and flow label
	binary.BigEndian.PutUint16(p[4:], uint16(len(payload)))
	p[6] = next
	p[7] = byte(16 + rand.IntN(200))
	copy(p[8:], from.AsSlice())
	copy(p[24:], to.AsSlice())
	return p
}

// connections is what the connect role does: it opens MQTT connections, as many
// as it is told, and keeps them.
type connections struct {
	Broker  netip.AddrPort
	First   netip.Addr
	Sources int // addresses to connect from
	Count   int
}

// connected is its result.
type connected struct {
	Open int
	Took time.Duration
	Lost int // closed by the time the test ended
}

func connectMany(a connections) (*connected, error) {
	conns := make([]net.Conn, a.Count)
	addresses := make([]netip.Addr, a.Sources)
	for i := range addresses {
		addresses[i] = addressAfter(a.First, i)
	}
	start := time.Now()
	err := inParallel(a.Count, func(i int) error {
		c, err := dialerFrom(addresses[i%a.Sources]).Dial("tcp", a.Broker.String())
		if err != nil {
			return err
		}
		conns[i] = c
		id := fmt.Sprintf("c%06d", i)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		hello := append([]byte{0x10, byte(12 + len(id)), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, byte(len(id))}, id...)
		if _, err := c.Write(hello); err != nil {
			return err
		}
		var answer [4]byte
		if _, err := io.ReadFull(c, answer[:]); err != nil || answer[3] != 0 {
			return fmt.Errorf("connection %d: %x, %v", i, answer, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r := &connected{Open: len(conns), Took: time.Since(start)}
	sayReady()
	untilTold()
	past := time.Now().Add(50 * time.Millisecond)
	for _, c := range conns {
		var b [1]byte
		_ = c.SetReadDeadline(past)
		if _, err := c.Read(b[:]); err != nil && !isTimeout(err) {
			r.Lost++
		}
	}
	return r, nil
}

func isTimeout(err error) bool {
	n, ok := err.(net.Error)
	return ok && n.Timeout()
}
