package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket/pcapgo"
	"golang.org/x/sys/unix"
)

// injection is what the inject role does: it puts bytes into a device as they are, as
// only root can, with lengths that no kernel would give them.
type injection struct {
	Device string
	From   netip.Addr // IPv4
	To     netip.Addr
}

// injected are the packets, and which of them have the header of an IP packet.
func injected(from, to netip.Addr) (whole, junk [][]byte) {
	packet := func(length, says int) []byte {
		p := make([]byte, length)
		for i := range p {
			p[i] = byte(i)
		}
		h := append(append([]byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 253, 0, 0}, from.AsSlice()...), to.AsSlice()...)
		binary.BigEndian.PutUint16(h[2:], uint16(says))
		copy(p, h)
		return p
	}
	for _, l := range [][2]int{{20, 20}, {21, 20}, {20, 21}, {100, 60}, {60, 100}, {100, 0}, {100, 19}, {100, 65535}, {1500, 1500}, {1500, 1499}} {
		whole = append(whole, packet(l[0], l[1]))
	}
	options := packet(24, 24)
	options[0] = 0x4F // says 60 bytes of header
	whole = append(whole, options)
	short6 := append([]byte{0x60}, make([]byte, 38)...)
	junk = [][]byte{{0x45}, packet(19, 19), short6, append([]byte{0x75}, make([]byte, 60)...), make([]byte, 1500)}
	return whole, junk
}

func inject(a injection) (sent int, err error) {
	link, err := net.InterfaceByName(a.Device)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	sayReady()
	whole, junk := injected(a.From, a.To)
	for _, p := range append(junk, whole...) {
		to := unix.SockaddrLinklayer{Ifindex: link.Index, Protocol: 8} // ETH_P_IP, in network order
		if err := unix.Sendto(fd, p, 0, &to); err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}

// raw returns the packets of a capture that has ended as they were at the device,
// where stop goes by what they say of their length.
func (c *capture) raw() (packets [][]byte) {
	c.t.Helper()
	f, err := os.Open(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		p, _, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return packets
		}
		if err != nil {
			c.t.Fatal(err)
		}
		packets = append(packets, p)
	}
}

// What the device gives is carried as it is, whatever it says of its length; what is
// no IP packet is counted.
func TestLengthsFromTheDevice(t *testing.T) {
	for _, offload := range []bool{true, false} {
		t.Run(map[bool]string{true: "offload", false: "plain"}[offload], func(t *testing.T) {
			l := newLab(t, 2)
			gateways := l.tunnel(tunnelOptions{offload: offload})
			a, b := l.clients(), l.broker()
			at := b.capture(2048)
			whole, junk := injected(a.host4, b.host4)
			var sent int
			a.gw.help("inject", injection{"sheaf0", a.host4, b.host4}).wait(&sent)
			if sent != len(whole)+len(junk) {
				t.Fatalf("%d sent", sent)
			}
			eventually(t, 5*time.Second, func() string {
				s := gateways[1].mustStatus().Peers[0].Received
				return missingUnless(s.Packets >= uint64(len(whole)), "packets have not come")
			})
			time.Sleep(100 * time.Millisecond) // until tcpdump has them
			at.stop()
			packets := at.raw()
			for i, want := range whole {
				found := false
				for _, p := range packets {
					found = found || bytes.Equal(p, want)
				}
				if !found {
					t.Errorf("packet %d, % x... of %d bytes, did not come out", i, want[:20], len(want))
				}
			}
			if got := gateways[0].mustStatus(); got.Losses.Malformed != uint64(len(junk)) || got.Losses.Unsplit != 0 {
				t.Errorf("losses %+v, want %d malformed", got.Losses, len(junk))
			}
			a.lan.ping(true, b.host4.String())
			wantNothingLost(t, gateways...)
		})
	}
}

// Super-segments of more than 64 KiB (BIG TCP), which a LAN's driver may make, come
// to the device in pieces that it can take.
func TestBigTCP(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.tunnel(tunnelOptions{offload: true})
	a, b := l.clients(), l.broker()
	for n, device := range map[*node]string{a.lan: "eth0", a.gw: "lan0"} {
		n.run("ethtool", "-K", device, "tx", "on", "rx", "on", "sg", "on", "tso", "on", "gso", "on", "gro", "on")
		if out, err := n.try("ip", "link", "set", device, "gso_max_size", "185000", "gro_max_size", "185000"); err != nil {
			t.Skipf("needs a kernel and ip(8) with BIG TCP: %v\n%s", err, out)
		}
	}
	if out, err := a.gw.try("ip", "link", "set", "sheaf0", "gso_max_size", "185000"); err == nil {
		t.Logf("the device may be told of more: %s", out)
	}
	seen := launch(t, "tcpdump on lan0", a.gw.command("tcpdump", "-i", "lan0", "-n", "-l", "-c", "1", "--immediate-mode", "ip6 and greater 65600"))
	eventually(t, 10*time.Second, func() string {
		return missingUnless(strings.Contains(seen.log.String(), "listening on"), "tcpdump")
	})
	server := launch(t, "iperf3 server", b.lan.command("iperf3", "-s", "-1", "-B", b.host6.String()))
	eventually(t, 5*time.Second, func() string {
		return missingUnless(b.lan.command("sh", "-c", "ss -ltn | grep -q :5201").Run() == nil, "iperf3 does not listen")
	})
	out, err := runFor(a.lan.command("iperf3", "-6", "-c", b.host6.String(), "-B", a.host6.String(), "-n", "40M", "-l", "1M"), 40*time.Second)
	if err != nil {
		t.Fatalf("iperf3: %v\n%s", err, out)
	}
	<-server.done
	for i, g := range gateways {
		if s := g.mustStatus(); s.Losses.Malformed+s.Losses.Unsplit+s.Losses.Truncated > 0 || s.Peers[0].Lanes[0].Epochs+s.Peers[0].Lanes[1].Epochs != 2 {
			t.Errorf("gateway %d: %+v, lanes %+v", i, s.Losses, s.Peers[0].Lanes)
		}
	}
	if seen.running() {
		t.Skip("no super-segment of more than 64 KiB came: this kernel made none, and nothing was judged")
	}
}
