package tunnel

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// A call repeats itself for a while, and a sparing one not at all, until anything
// comes back.
func TestCallSocket(t *testing.T) {
	for _, sparing := range []bool{false, true} {
		far, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		near, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		var answers atomic.Int32
		c := newCallSocket(newSocket(near, false), func() { answers.Add(1) }, sparing)
		send := func(b byte) {
			t.Helper()
			if n, _, err := c.WriteMsgUDP([]byte{b}, nil, far.LocalAddr().(*net.UDPAddr)); n != 1 || err != nil {
				t.Errorf("sent %d: %v", n, err)
			}
		}
		wants := func(want byte) {
			t.Helper()
			var b [2]byte
			far.SetReadDeadline(time.Now().Add(patience))
			if n, err := far.Read(b[:]); n != 1 || b[0] != want || err != nil {
				t.Errorf("sparing %v: got %q, %v; want %q", sparing, b[:n], err, want)
			}
		}
		send('1')
		wants('1')
		c.first = c.first.Add(-sparingTime)
		send('2')
		if !sparing {
			wants('2')
		}
		c.first = c.first.Add(-repeatTime)
		send('-')
		far.WriteToUDP([]byte("answer"), near.LocalAddr().(*net.UDPAddr))
		ms := []ipv4.Message{{Buffers: [][]byte{make([]byte, 10)}}}
		if n, err := c.ReadBatch(ms, 0); n != 1 || err != nil || answers.Load() != 1 {
			t.Errorf("read %d: %v; %d answers", n, err, answers.Load())
		}
		send('3')
		wants('3')
		c.establish()
		far.WriteToUDP([]byte("more"), near.LocalAddr().(*net.UDPAddr))
		if n, err := c.ReadBatch(ms, 0); n != 1 || err != nil || answers.Load() != 1 {
			t.Errorf("read %d: %v; %d answers once the call was made", n, err, answers.Load())
		}
	}
}

// The time for repetitions has an end.
func TestCallInVain(t *testing.T) {
	for _, end := range []time.Duration{repeatTime, sparingTime} {
		c := &callSocket{repeat: end}
		begin := time.Now()
		for _, after := range []time.Duration{0, end, end + 1} {
			if got := c.inVain(begin.Add(after)); got != (after > end) {
				t.Errorf("%v after the first: %v", after, got)
			}
		}
	}
}
