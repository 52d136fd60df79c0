package tunnel

import (
	"net"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A lane over TCP sends no packets that are larger than the first ones of QUIC.
func TestSegments(t *testing.T) {
	for _, c := range []Carrier{TLS, Plain} {
		t.Run(c.String(), func(t *testing.T) {
			p := newPair(t, []Carrier{c}, nil)
			a, b := p.lanes(t, ClassMessages)
			say(t, a, b, "x")
			say(t, b, a, "x")
			for _, l := range []*Lane{a, b} {
				info := l.stream.(*tcpStream).info()
				if info == nil {
					t.Fatal("the kernel does not tell")
				}
				if mss := int(info.Snd_mss); mss > maxSegment || mss < maxSegment-20 { // with options or without
					t.Errorf("segments of %d bytes, not %d", mss, maxSegment)
				}
			}
		})
	}
}

// The kernel tells what the devices on the way take, and where there is no way.
func TestPathMTU(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("needs root for a network namespace: %v", err)
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("needs ip of iproute2")
	}
	to4, to6 := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 9), Port: 4747}, &net.UDPAddr{IP: net.IPv6loopback, Port: 4747}
	if got := pathMTU(to4); got != 0 {
		t.Errorf("%d without a route", got)
	}
	for _, mtu := range []string{"1500", "1300"} {
		if out, err := exec.Command("ip", "link", "set", "lo", "up", "mtu", mtu).CombinedOutput(); err != nil {
			t.Fatalf("ip: %v\n%s", err, out)
		}
		for _, to := range []net.Addr{to4, to6} {
			if got := pathMTU(to); (mtu == "1500") != (got == 1500) || (mtu == "1300") != (got == 1300) {
				t.Errorf("%d to %v, not %s", got, to, mtu)
			}
		}
	}
}
