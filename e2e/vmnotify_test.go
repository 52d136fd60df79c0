package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sheaf/e2e/order"
)

// together has all guests do something at once, and fails the test with what one could not.
func (h *hypervisor) together(f func(number int, g *guest) error) {
	h.t.Helper()
	var all sync.WaitGroup
	faults := make([]error, len(h.guests))
	for i, g := range h.guests {
		all.Go(func() { faults[i] = f(i+1, g) })
	}
	all.Wait()
	for _, err := range faults {
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// use has all guests use their NIC of a kind.
func (h *hypervisor) use(k kind) {
	h.t.Helper()
	h.together(func(number int, g *guest) error { return g.try("net", seat{1, number}.net(k), nil) })
}

// A conversation is of guests that publish readings and are notified of those of all.
type conversation struct {
	h      *hypervisor
	broker netip.AddrPort
	topic  string // less the last level
	qos    byte
	sent   int // by each guest
}

// converse connects a client in each guest; its IPv6 is used where QoS is 1.
func (h *hypervisor) converse(topic string, qos byte) *conversation {
	h.t.Helper()
	host := h.broker().host4
	if qos == 1 {
		host = h.broker().host6
	}
	c := &conversation{h: h, broker: netip.AddrPortFrom(host, 1883), topic: topic, qos: qos}
	c.connect()
	return c
}

func (c *conversation) connect() {
	c.h.t.Helper()
	c.h.together(func(number int, g *guest) error {
		return g.try("connect", order.Client{Name: c.client(number), Broker: c.broker, Topic: c.topic + "/+", QoS: c.qos}, nil)
	})
}

func (c *conversation) client(number int) string { return fmt.Sprintf("%s-%d", c.topic, number) }

// publish has all guests publish, a message in every such time each, and the guests one
// after the other.
func (c *conversation) publish(count int, every time.Duration) {
	c.h.t.Helper()
	c.h.together(func(number int, g *guest) error {
		time.Sleep(time.Duration(number) * every / guestCount)
		return g.try("publish", order.Publish{Name: c.client(number), Topic: fmt.Sprintf("%s/%d", c.topic, number), QoS: c.qos, First: c.sent, Count: count, Every: every}, nil)
	})
	c.sent += count
}

// brisk is how often a guest publishes where no bytes are counted.
const brisk = 50 * time.Millisecond

// settled waits until all that was published came to all, then fails the test unless it
// came once, in order, and over connections that never broke. It returns how long the
// guests' own messages took.
func (c *conversation) settled(limit time.Duration) []order.Quantiles {
	t := c.h.t
	t.Helper()
	var got []order.Received
	eventually(t, limit, func() string {
		got = make([]order.Received, len(c.h.guests))
		c.h.together(func(number int, g *guest) error {
			return g.try("received", order.Name{Name: c.client(number)}, &got[number-1])
		})
		for i, r := range got {
			if r.Lost != "" {
				t.Fatalf("guest %d: %s", i+1, r.Lost)
			}
			for number := range c.h.guests {
				if s := r.Topics[fmt.Sprintf("%s/%d", c.topic, number+1)]; s.Count < c.sent {
					return fmt.Sprintf("guest %d has %d messages of guest %d, of %d: %+v", i+1, s.Count, number+1, c.sent, r.Topics)
				}
			}
		}
		return ""
	})
	var own []order.Quantiles
	for i, r := range got {
		own = append(own, r.Own)
		for topic, s := range r.Topics {
			if s != (order.Sequence{Count: c.sent, Last: c.sent - 1}) {
				t.Errorf("guest %d: %s: %+v of %d messages", i+1, topic, s, c.sent)
			}
		}
		if len(r.Topics) != len(c.h.guests) {
			t.Errorf("guest %d: %d topics", i+1, len(r.Topics))
		}
	}
	return own
}

func (c *conversation) end() {
	c.h.t.Helper()
	c.h.together(func(number int, g *guest) error {
		return g.try("disconnect", order.Name{Name: c.client(number)}, nil)
	})
}

// Where bytes are counted each guest publishes so many messages, so far apart that all which
// comes of one, delayed acknowledgements too (40 ms in Linux), has gone before the next: what
// coincides, and so takes fewer packets, would be a matter of how fast the guests are.
const (
	messages = 24
	slow     = 250 * time.Millisecond
)

// notify has the guests converse over their NICs of a kind, and returns the WAN's bytes for
// each delivered message.
func (h *hypervisor) notify(k kind, qos byte) float64 {
	t := h.t
	t.Helper()
	h.use(k)
	h.talks++
	c := h.converse(fmt.Sprintf("%s-%d-%d", k.name, qos, h.talks), qos)
	c.publish(2, brisk) // which acquaints the gateways with the topics
	c.settled(10 * time.Second)
	s := h.host.site
	if k == device {
		s = h.device.site
	}
	time.Sleep(500 * time.Millisecond)
	up0, down0 := s.wanCount()
	c.publish(messages, slow)
	own := c.settled(10 * time.Second)
	time.Sleep(500 * time.Millisecond)
	up1, down1 := s.wanCount()
	c.end()
	up, down := up1.sub(up0), down1.sub(down0)
	bytes := float64(up.bytes+down.bytes) / float64(messages*len(h.guests)*len(h.guests))
	t.Logf("%s, QoS %d: %.2f bytes per delivered message; WAN up %d packets %d bytes, down %d packets %d bytes; from publish to notification:",
		k.name, qos, bytes, up.packets, up.bytes, down.packets, down.bytes)
	for i, q := range own {
		t.Logf("  guest %d: p50 %.2f ms, p99 %.2f ms, max %.2f ms", i+1, ms(q.P50), ms(q.P99), ms(q.Max))
	}
	return bytes
}

// TestGuests is about virtual machines at ports of each kind, whose gateway has neither
// a device nor root. The guests are booted once, since that takes longer than most else.
func TestGuests(t *testing.T) {
	h := newHypervisor(t)
	begin := time.Now()
	h.bootGuests()
	t.Logf("%d guests booted after %v", guestCount, time.Since(begin).Round(time.Millisecond))
	h.wantNobody()
	var traffic *capture
	h.outside(func() { traffic = h.host.site.captureOn("any", 128) })
	for _, qos := range []byte{0, 1} {
		for _, k := range kinds {
			h.part(fmt.Sprintf("%s, QoS %d", k.name, qos), func(*testing.T) { h.compareWithDevice(k, qos) })
		}
	}
	h.part("apart", h.apart)
	h.part("names", h.names)
	h.part("spoofed", h.spoofs)
	h.part("floods", h.floods)
	h.part("ports by command", h.portsByCommand)
	h.part("gateway killed", h.gatewayKilled)
	h.part("guest killed", h.guestKilled)
	h.part("capture", func(*testing.T) { h.wantOnlyCarrier(traffic) })
	reportGateways(t, h.gateways...)
}

// A message is delivered once to each guest, and takes at most 5 % more bytes on the link
// than the same guests need behind a gateway with a device.
func (h *hypervisor) compareWithDevice(k kind, qos byte) {
	h.t.Helper()
	again := false
	judge(h.t, func(a *attempt) {
		if _, measured := h.behind[qos]; !measured || again {
			h.behind[qos] = h.notify(device, qos)
		}
		again = true
		a.atMost(k.name, h.notify(k, qos), 1.05*h.behind[qos])
	})
}

// wantNobody fails the test if the hypervisor's gateway is root or has a device.
func (h *hypervisor) wantNobody() {
	h.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.host.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, line := range []string{"Uid:\t65534\t65534\t65534\t65534\n", "CapEff:\t0000000000000000\n"} {
		if !strings.Contains(string(b), line) {
			h.t.Errorf("the gateway's process is not one with %q:\n%s", line, b)
		}
	}
	if s := h.host.mustStatus(); s.Device != "" {
		h.t.Errorf("the gateway has a device %s", s.Device)
	}
}

// wantOnlyCarrier fails the test if a packet of a guest was on an interface of the
// hypervisor's namespace, or anything but the carrier and what hosts of a link tell one
// another.
func (h *hypervisor) wantOnlyCarrier(c *capture) {
	t := h.t
	t.Helper()
	packets, complete := c.stop()
	if !complete {
		t.Errorf("the capture is not complete: %s", tail(c.log.String(), 4))
	}
	raw, err := os.ReadFile(c.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range append([]kind{device}, kinds...) {
		for number := range h.guests {
			mac, _ := net.ParseMAC(seat{1, number + 1}.mac(k))
			if bytes.Contains(raw, mac) {
				t.Errorf("the MAC %v of guest %d was seen", mac, number+1)
			}
		}
	}
	carrier := 0
	for _, p := range packets {
		f, _ := flowOf(p)
		outside := []netip.Addr{h.host.site.wan4, h.far.site.wan4}
		switch {
		case f.protocol == syscall.IPPROTO_UDP && slices.Contains(outside, f.src) && slices.Contains(outside, f.dst) && (f.sport == 4747 || f.dport == 4747):
			carrier++
		case f.protocol == syscall.IPPROTO_ICMP && f.src == outside[0] && f.dst == outside[1]: // of the carrier, while no gateway runs
		case f.src == beside.At.Addr() && f.dst == beside.At.Addr(): // the gateway's own queries to the host's resolver
		case f.dst.IsLinkLocalMulticast(): // neighbours, and who listens to which group
		default:
			t.Errorf("%v", f)
		}
	}
	t.Logf("%d packets, %d of the carrier", len(packets), carrier)
	if carrier == 0 {
		t.Error("the capture has no packet of the carrier")
	}
}
