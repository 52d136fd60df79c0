package e2e

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// wire is what the relay role does: it carries frames between two ports, as a
// long or narrow cable would.
type wire struct {
	A, B    string
	Delay   time.Duration // each way
	Loss    float64       // of frames
	Rate    int           // bits a second of IP packets, each way; 0 for any
	Backlog time.Duration // at Rate, past which frames are dropped
	NoUDP   bool
}

// wireCounts is its result.
type wireCounts struct{ Carried, Lost, Full, Filtered int64 }

// A frame waits for its turn.
type frame struct {
	due  time.Time
	data []byte
}

func relay(w wire) (*wireCounts, error) {
	c := &wireCounts{}
	a, err := openPort(w.A)
	if err != nil {
		return nil, err
	}
	b, err := openPort(w.B)
	if err != nil {
		return nil, err
	}
	for _, way := range [][2]int{{a, b}, {b, a}} {
		queue := make(chan frame, 1<<16)
		go w.read(way[0], queue, c)
		go func() {
			for f := range queue {
				sleepUntil(f.due)
				if _, err := unix.Write(way[1], f.data); err == nil {
					atomic.AddInt64(&c.Carried, 1)
				}
			}
		}()
	}
	sayReady()
	untilTold()
	return c, nil
}

// sleepUntil waits more precisely than a sleep alone on a busy machine.
func sleepUntil(at time.Time) {
	if d := time.Until(at); d > 0 {
		time.Sleep(d)
	}
}

// read queues the frames that the wire does not lose.
func (w *wire) read(fd int, queue chan<- frame, c *wireCounts) {
	buf := make([]byte, 1<<16)
	free := time.Now() // when the wire has sent all it took
	for {
		n, err := unix.Read(fd, buf)
		if err != nil {
			if err == unix.EINTR || err == unix.ENETDOWN {
				continue
			}
			return
		}
		now := time.Now()
		switch {
		case w.NoUDP && isUDP(buf[:n]):
			atomic.AddInt64(&c.Filtered, 1)
			continue
		case w.Loss > 0 && rand.Float64() < w.Loss:
			atomic.AddInt64(&c.Lost, 1)
			continue
		}
		if free.Before(now) {
			free = now
		}
		if w.Rate > 0 {
			if free.Sub(now) > w.Backlog {
				atomic.AddInt64(&c.Full, 1)
				continue
			}
			free = free.Add(time.Duration(n-ethernet) * 8 * time.Second / time.Duration(w.Rate))
		}
		queue <- frame{free.Add(w.Delay), append([]byte(nil), buf[:n]...)}
	}
}

func isUDP(b []byte) bool {
	switch {
	case len(b) >= 34 && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IP:
		return b[23] == unix.IPPROTO_UDP
	case len(b) >= 54 && binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IPV6:
		return b[20] == unix.IPPROTO_UDP
	}
	return false
}

// openPort opens a device for whole frames, received ones only.
func openPort(name string) (int, error) {
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
	device, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("packet socket: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return 0, fmt.Errorf("packet socket: %w", err)
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index}); err != nil {
		return 0, fmt.Errorf("packet socket: %s: %w", name, err)
	}
	return fd, nil
}

// relay puts a wire in the place of the bridge between the first two sites. The
// function returned puts the bridge back.
func (l *lab) relay(w wire) (remove func()) {
	l.t.Helper()
	w.A, w.B = l.sites[0].port, l.sites[1].port
	h := l.wan.help("relay", w)
	l.wan.ip("link set "+w.A+" nomaster", "link set "+w.B+" nomaster")
	var once sync.Once
	return func() {
		once.Do(func() {
			var c wireCounts
			l.wan.ip("link set "+w.A+" master br0", "link set "+w.B+" master br0")
			h.finish(&c)
			l.t.Logf("relay: %+v", c)
		})
	}
}
