package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ipCommand runs lines of ip(8) in the test's namespace: a child has that of the
// thread that starts it.
func ipCommand(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", line, err, out)
		}
	}
}

// keep runs Keep for the length of the test and returns its reports.
func keep(t *testing.T, d *TUN) <-chan Repair {
	t.Helper()
	reports, done := make(chan Repair, 100), make(chan struct{})
	go func() {
		defer close(done)
		d.Keep(func(r Repair) { reports <- r })
	}()
	t.Cleanup(func() {
		d.Close()
		<-done
	})
	return reports
}

// whole waits until nothing is amiss with a device.
func whole(t *testing.T, d *TUN, limit time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		faults, err := d.Faults()
		if err == nil && len(faults) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v, %v", limit, faults, err)
		}
	}
}

func TestKeep(t *testing.T) {
	for _, tt := range []struct {
		damage []string
		gone   string // what a fault or more say
	}{
		{[]string{"link set sheaf0 down"}, "the device is down; address fd99::1/64 is missing; route 10.2.0.0/24 is missing; route fd02::/64 is missing"},
		{[]string{"link set sheaf0 down", "link set sheaf0 up"}, "address fd99::1/64 is missing; route 10.2.0.0/24 is missing; route fd02::/64 is missing"},
		{[]string{"route flush dev sheaf0"}, "route 10.99.0.0/24 is missing; route 10.2.0.0/24 is missing"},
		{[]string{"-6 route flush dev sheaf0"}, "route fd99::/64 is missing; route fd02::/64 is missing"},
		{[]string{"addr flush dev sheaf0"}, "address 10.99.0.1/24 is missing; address fd99::1/64 is missing; route 10.2.0.0/24 is missing"},
		{[]string{"addr del fd99::1/64 dev sheaf0"}, "address fd99::1/64 is missing"},
		{[]string{"route del 10.2.0.0/24"}, "route 10.2.0.0/24 is missing"},
	} {
		t.Run(strings.Join(tt.damage, ", "), func(t *testing.T) {
			noLeaks(t)
			enterNamespace(t)
			d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24", "fd99::1/64")})
			for _, p := range prefixes("10.2.0.0/24", "fd02::/64") {
				if err := d.AddRoute(p); err != nil {
					t.Fatal(err)
				}
			}
			ipCommand(t, tt.damage...)
			faults, err := d.Faults()
			var gone []string
			for _, f := range faults {
				gone = append(gone, f.What)
			}
			if got := strings.Join(gone, "; "); got != tt.gone || err != nil {
				t.Errorf("faults %s, %v\nwant   %s", got, err, tt.gone)
			}
			reports := keep(t, d) // begins with what was done before
			whole(t, d, time.Second)
			ipCommand(t, tt.damage...)
			whole(t, d, 2*time.Second)
			for range 2 {
				if r := <-reports; r.Err != nil || len(r.Mended) == 0 || r.Pause < firstPause {
					t.Errorf("%+v", r)
				}
			}
			link, err := netlink.LinkByName("sheaf0")
			if err != nil {
				t.Fatal(err)
			}
			if got := kernelRoutes(t, link); got != "10.2.0.0/24 10.99.0.0/24 fd02::/64 fd99::/64" {
				t.Errorf("the kernel's routes: %s", got)
			}
		})
	}
}

// What is not the device's to mend it names and leaves.
func TestKeepLeaves(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	openTestTUN(t, TUNConfig{Name: "other", Addresses: prefixes("10.5.0.1/24")})
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
	for _, p := range prefixes("10.2.0.0/24", "10.3.0.0/24", "fd02::/64") {
		if err := d.AddRoute(p); err != nil {
			t.Fatal(err)
		}
	}
	reports := keep(t, d)
	ipCommand(t, "route add 10.2.0.128/25 dev other", "route replace 10.3.0.0/24 dev other", "route add fd02::/64 dev other metric 2000")
	r := <-reports
	if len(r.Mended) != 0 || !errors.Is(r.Err, unix.EEXIST) || !strings.Contains(r.Err.Error(), "route 10.3.0.0/24") {
		t.Errorf("%+v", r)
	}
	faults, err := d.Faults()
	var got []string
	for _, f := range faults {
		got = append(got, fmt.Sprintf("%v: %s", f.Route, f.What))
	}
	want := []string{
		"10.2.0.0/24: " + (&OverlapError{netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("10.2.0.128/25"), "other"}).Error(),
		"10.3.0.0/24: route 10.3.0.0/24 is missing",
		"10.3.0.0/24: " + (&OverlapError{netip.MustParsePrefix("10.3.0.0/24"), netip.MustParsePrefix("10.3.0.0/24"), "other"}).Error(),
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || err != nil {
		t.Errorf("faults %q, %v\nwant   %q", got, err, want)
	}
	ipCommand(t, "route del 10.3.0.0/24 dev other", "route del 10.2.0.128/25 dev other")
	whole(t, d, 2*time.Second)
}

// A device that is gone, or is in another namespace, ends the reads.
func TestKeepGone(t *testing.T) {
	for _, how := range []string{"link del sheaf0", "link set sheaf0 netns "} {
		t.Run(how, func(t *testing.T) {
			noLeaks(t)
			enterNamespace(t)
			d := openTestTUN(t, TUNConfig{Name: "sheaf0"})
			if strings.HasSuffix(how, "netns ") {
				elsewhere := exec.Command("sleep", "60")
				elsewhere.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
				if err := elsewhere.Start(); err != nil {
					t.Fatal(err)
				}
				defer elsewhere.Wait()
				defer elsewhere.Process.Kill()
				how += strconv.Itoa(elsewhere.Process.Pid)
			}
			reports := keep(t, d)
			read := make(chan error, 1)
			go func() {
				bufs, sizes := buffers(d)
				for {
					if _, err := d.Read(bufs, sizes); err != nil {
						read <- err
						return
					}
				}
			}()
			ipCommand(t, how)
			if err := <-read; !errors.Is(err, ErrGone) {
				t.Errorf("Read: %v", err)
			}
			select {
			case r := <-reports:
				if !errors.Is(r.Err, ErrGone) {
					t.Errorf("%+v", r)
				}
			case <-time.After(5 * time.Second):
				t.Error("no report")
			}
		})
	}
}

// Messages that the kernel had no room for may have told of damage.
func TestKeepLosesNothing(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	openTestTUN(t, TUNConfig{Name: "other", Addresses: prefixes("10.5.0.1/24")})
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
	changed := make(chan struct{}, 1)
	go d.listen(changed)
	for drained := false; !drained; {
		select {
		case <-changed:
		case <-time.After(200 * time.Millisecond):
			drained = true
		}
	}
	d.Close()
	if _, ok := <-changed; ok {
		t.Fatal("a message about another device counted")
	}

	d = openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
	for {
		if messages, _, err := d.events.Receive(); err != nil || len(messages) > 0 && messages[0].Header.Type == unix.RTM_NEWROUTE {
			break
		}
	}
	if err := d.events.SetReceiveBufferSize(2048, false); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		ipCommandFast(t, i)
	}
	changed = make(chan struct{}, 1)
	go d.listen(changed)
	select {
	case _, ok := <-changed:
		if !ok {
			t.Error("it ended")
		}
	case <-time.After(5 * time.Second):
		t.Error("what was lost does not count")
	}
	d.Close()
	for range changed { // until it is closed
	}
}

// ipCommandFast adds a route to the device other.
func ipCommandFast(t *testing.T, i int) {
	t.Helper()
	link, err := netlink.LinkByName("other")
	if err == nil {
		err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(i), 0}), 24))})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	if got := p.delay(now); got != settle {
		t.Errorf("the first repair after %v", got)
	}
	var waits []time.Duration
	for range 10 { // somebody breaks it again at once
		p.mended(now)
		d := p.delay(now)
		waits = append(waits, d)
		now = now.Add(d)
	}
	if got := fmt.Sprint(waits); got != "[250ms 500ms 1s 2s 4s 8s 16s 30s 30s 30s]" {
		t.Errorf("pauses %s", got)
	}
	p.mended(now)
	if got := p.delay(now.Add(20 * time.Second)); got != 10*time.Second {
		t.Errorf("after 20 s: %v", got)
	}
	if got := p.delay(now.Add(keepQuiet)); got != settle || p.pause != lastPause {
		t.Errorf("after a minute: %v, %v", got, p.pause)
	}
	if got := p.delay(now.Add(keepQuiet + 1)); got != settle || p.pause != 0 {
		t.Errorf("after more than a minute: %v, %v", got, p.pause)
	}
}
