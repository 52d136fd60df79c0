package vhostuser_test

import (
	"testing"
	"time"

	"sheaf/netstack/link"
	"sheaf/netstack/link/linktest"
	"sheaf/netstack/vhostuser"
	"sheaf/netstack/vhostuser/vhosttest"
	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// kind is vhost-user with a driver that does not take these features.
func kind(dial bool, without uint64) linktest.Kind {
	return linktest.Kind{
		Open: func(path string) (link.Link, error) {
			return vhostuser.OpenNIC(vhostuser.NICConfig{Path: path, Dial: dial})
		},
		Start: func(path string) (linktest.Guest, error) {
			return vhosttest.Start(path, vhosttest.Options{Listen: dial, Without: without})
		},
		Dials:        dial,
		Outlives:     true,
		SecondServed: true,
		Rubbish: map[string]func(linktest.Guest) error{
			"an index far ahead": broken(func(d *virtiotest.Driver) {
				d.SetAvailIndex(d.AvailIndex() + uint16(d.Config.Size) + 1)
			}),
			"a buffer outside the memory": broken(func(d *virtiotest.Driver) {
				d.SetDescriptor(0, virtiotest.Descriptor{Addr: 1 << 60, Len: 72})
				d.SetAvail(d.AvailIndex(), 0)
				d.SetAvailIndex(d.AvailIndex() + 1)
			}),
			"a chain without end": broken(func(d *virtiotest.Driver) {
				d.SetDescriptor(0, virtiotest.Descriptor{Addr: virtiotest.Origin, Len: 1, Flags: virtiotest.Next})
				d.SetAvail(d.AvailIndex(), 0)
				d.SetAvailIndex(d.AvailIndex() + 1)
			}),
			"a buffer to be written": broken(func(d *virtiotest.Driver) {
				d.SetDescriptor(0, virtiotest.Descriptor{Addr: virtiotest.Origin, Len: 72, Flags: virtiotest.Write})
				d.SetAvail(d.AvailIndex(), 0)
				d.SetAvailIndex(d.AvailIndex() + 1)
			}),
		},
		Torn: map[string]func(linktest.Guest) error{
			"a header": settled(func(g *vhosttest.Guest) error {
				return g.FrontEnd().Raw([]byte{1, 0})
			}),
			"a payload": settled(func(g *vhosttest.Guest) error {
				return g.FrontEnd().Raw(vhosttest.Message(vhosttest.SetVringNum, 0, vhosttest.State(0, 256))[:15])
			}),
			"a frame that is not shown yet": settled(func(g *vhosttest.Guest) error {
				g.Driver(vhosttest.Transmit).Send(make([]byte, virtio.NetHeaderLen), make([]byte, 60))
				return nil
			}),
		},
	}
}

// settled does something when the gateway has taken what was sent: what is in the ring of
// a guest that dies, or that breaks it, is lost.
func settled(do func(*vhosttest.Guest) error) func(linktest.Guest) error {
	return func(g linktest.Guest) error {
		guest := g.(*vhosttest.Guest)
		d := guest.Driver(vhosttest.Transmit)
		for guest.FrontEnd() == nil || d.UsedIndex() != d.AvailIndex() {
			time.Sleep(time.Millisecond)
		}
		return do(guest)
	}
}

// broken writes something into the transmit ring, and kicks.
func broken(write func(*virtiotest.Driver)) func(linktest.Guest) error {
	return settled(func(g *vhosttest.Guest) error {
		write(g.Driver(vhosttest.Transmit))
		g.Kick(vhosttest.Transmit).Signal()
		return nil
	})
}

func TestConformance(t *testing.T) {
	t.Run("listen", func(t *testing.T) { linktest.Run(t, kind(false, 0)) })
	t.Run("dial", func(t *testing.T) { linktest.Run(t, kind(true, 0)) })
	t.Run("plain", func(t *testing.T) {
		linktest.Run(t, kind(false, virtio.FeatureEventIndex|virtio.FeatureIndirect|virtio.FeatureMergeable))
	})
}

func BenchmarkNIC(b *testing.B) {
	b.Run("up", func(b *testing.B) { linktest.BenchmarkUp(b, kind(false, 0)) })
	b.Run("down", func(b *testing.B) { linktest.BenchmarkDown(b, kind(false, 0)) })
}
