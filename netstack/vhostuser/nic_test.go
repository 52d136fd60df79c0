package vhostuser

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser/vhosttest"
	"sheaf/netstack/virtio"
)

func TestNICConfig(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		config NICConfig
		word   string
	}{
		"a group's address":    {NICConfig{MAC: net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}}, "of one station"},
		"EUI-64":               {NICConfig{MAC: make(net.HardwareAddr, 8)}, "of one station"},
		"the least MTU less 1": {NICConfig{MTU: 67}, "an MTU of 67"},
		"the least MTU":        {NICConfig{MTU: 68}, ""},
		"the greatest MTU":     {NICConfig{MTU: link.MaxMTU}, ""},
		"more than that":       {NICConfig{MTU: link.MaxMTU + 1}, "an MTU of 65522"},
		"less than none":       {NICConfig{MTU: -1}, "an MTU of -1"},
		"a file in the way":    {NICConfig{Path: file}, link.ErrOccupied.Error()},
		"no path":              {NICConfig{Path: strings.Repeat("x", 200)}, link.ErrPath.Error()},
	} {
		if c.config.Path == "" {
			c.config.Path = filepath.Join(dir, "s")
		}
		n, err := OpenNIC(c.config)
		if c.word == "" && err == nil {
			n.Close()
			continue
		}
		if err == nil || c.word == "" || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v, want %q", name, err, c.word)
		}
	}
}

// Packets that the guest leaves unfinished were not offered to be finished, and go no further.
func TestOffloadsAreInvalid(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	d := g.Driver(vhosttest.Transmit)
	send := func(at int, v byte) {
		header := make([]byte, virtio.NetHeaderLen)
		header[at] = v
		d.Send(header, frame(60, int(v)))
	}
	send(headerFlags, flagNeedsPartial)
	send(headerGSO, 1)   // VIRTIO_NET_HDR_GSO_TCPV4
	send(headerFlags, 2) // VIRTIO_NET_HDR_F_DATA_VALID, which asks for nothing
	d.Kick()
	g.Kick(vhosttest.Transmit).Signal()
	r.expect(frame(60, 2))
	if s := r.nic.Status(); s.Invalid != 2 || s.Received != 1 || !s.Up {
		t.Errorf("status %+v", s)
	}
}

// More invalid frames than a Read takes are no reason to wait for one more kick.
func TestManyInvalid(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{})
	d := g.Driver(vhosttest.Transmit)
	for range 3 * batchSize {
		d.Send(make([]byte, virtio.NetHeaderLen+link.MinFrame-1))
	}
	d.Send(make([]byte, virtio.NetHeaderLen), frame(60, 3))
	d.Kick()
	g.Kick(vhosttest.Transmit).Signal()
	r.expect(frame(60, 3))
	if s := r.nic.Status(); s.Invalid != 3*batchSize || s.Received != 1 {
		t.Errorf("status %+v", s)
	}
}

// A driver that does not merge buffers gets frames that fit into one, with the number of
// buffers set, and the others are dropped.
func TestWithoutMerging(t *testing.T) {
	r := newRig(t)
	g := r.guest(vhosttest.Options{Without: virtio.FeatureMergeable})
	const size = 128
	base(t, g.FrontEnd(), 0)
	base(t, g.FrontEnd(), 1)
	must(t, g.Reset(size))
	d := g.Driver(vhosttest.Receive)
	r.until("up", func(s link.Status) bool { return s.Up })
	fits, not := frame(size-virtio.NetHeaderLen, 1), frame(size-virtio.NetHeaderLen+1, 2)
	must(t, r.nic.Write([][]byte{not, fits, not}))
	p, ok, err := d.Reap()
	if err != nil || !ok || len(p) != size || p[headerBuffers] != 1 || string(p[virtio.NetHeaderLen:]) != string(fits) {
		t.Errorf("%x, %v, %v", p, ok, err)
	}
	if s := r.nic.Status(); s.Dropped != 2 || s.Sent != 1 {
		t.Errorf("status %+v", s)
	}
}

// While the hypervisor that is to be called is not there, the NIC waits, and finds it soon.
func TestDialLater(t *testing.T) {
	noLeaks(t)
	path := filepath.Join(t.TempDir(), "s")
	n, err := OpenNIC(NICConfig{Path: path, Dial: true})
	must(t, err)
	defer n.Close()
	time.Sleep(300 * time.Millisecond) // some pauses
	g, err := vhosttest.Start(path, vhosttest.Options{Listen: true})
	must(t, err)
	defer g.Kill()
	start := time.Now()
	bufs, sizes := buffers()
	must(t, g.Send(frame(60, 1)))
	if k, err := n.Read(bufs, sizes); k != 1 || err != nil {
		t.Errorf("Read: %d, %v", k, err)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("found after %v", d)
	}
}

// A path that cannot be a socket's is an error also where the hypervisor makes it.
func TestDialPath(t *testing.T) {
	if n, err := OpenNIC(NICConfig{Path: strings.Repeat("x", 200), Dial: true}); err == nil {
		n.Close()
		t.Error("a path of 200 bytes has no error")
	} else if !errors.Is(err, link.ErrPath) {
		t.Error(err)
	}
}
